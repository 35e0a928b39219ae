#include "catalog/sidecar.hpp"

#include <sys/stat.h>

#include <cerrno>

#include <fmt/format.h>

#include "catalog/stub.hpp"
#include "target/directory_names.hpp"
#include "target/kernel_calls.hpp"

namespace holdfast::catalog {

namespace {

constexpr int always = O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY;  // O_NONBLOCK: a fifo must not hold us
constexpr int lock_tries = 3;

// What is there, where a file or directory of ours would be.
Status refused(int directory, const std::string& name, const std::string& path, const char* wanted) {
  struct stat found;
  if (environment().fstatat(directory, name.c_str(), &found, AT_SYMLINK_NOFOLLOW) != 0) return target::failure(path);
  const bool link = S_ISLNK(found.st_mode);
  return Status(Kind::invalid,
                fmt::format("{} is {}not a {} of Holdfast's, so it is not used; look at what it is and move it away, or remove it: rm {}", path,
                            link ? "a symbolic link and " : "", wanted, path),
                link                     ? ELOOP
                : S_ISDIR(found.st_mode) ? EISDIR
                                         : ENOTDIR);
}

Result<Descriptor> open_parent(const std::string& path) {
  Descriptor parent(environment().openat(AT_FDCWD, parent_of(path).c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC, 0));
  if (!parent) return target::failure(parent_of(path));
  return parent;
}

// An O_PATH descriptor reads nothing and cannot be synced; "." of it is the same directory, whatever has its name by now.
Descriptor reopened(const Descriptor& directory) {
  return Descriptor(environment().openat(directory.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0));
}

Status sync(const Descriptor& directory, const std::string& path) {
  const Descriptor readable = reopened(directory);
  // Who may write there need not be allowed to read. The usual file systems take a new entry along with the fsync of its file.
  if (!readable) return errno == EACCES ? Status() : target::failure(path);
  // Some file systems (and FUSE) know no fsync of directories; their renames are as durable as they get.
  if (environment().fsync(readable.get()) != 0 && errno != EINVAL && errno != ENOSYS) return target::failure("fsync of " + path);
  return {};
}

// No other process, thread or node uses it, and no crash has left it.
std::string scratch_name() { return "new." + layout::random_id(); }

Status move_at(int from_directory, const std::string& from, int to_directory, const std::string& to, unsigned flags, const std::string& path) {
  if (environment().renameat2(from_directory, from.c_str(), to_directory, to.c_str(), flags) == 0) return {};
  return target::failure(path);
}

}  // namespace

Result<Sidecar> Sidecar::open(const std::string& path) {
  auto parent = open_parent(path);
  if (!parent) return parent.status();
  const std::string name = name_of(path);
  Descriptor directory(environment().openat(parent->get(), name.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0));
  if (!directory) return errno == ENOTDIR || errno == ELOOP ? refused(parent->get(), name, path, "directory") : target::failure(path);
  return Sidecar(std::move(*parent), std::move(directory), path);
}

Result<Sidecar> Sidecar::open_or_make(const std::string& path) {
  auto there = open(path);
  if (there || there.status().kind() != Kind::not_found) return there;
  HF_TRY(make_directory(path));
  return open(path);
}

Status Sidecar::remove(const std::string& path) {
  auto there = open(path);
  if (there.status().kind() == Kind::not_found) return {};
  if (there.status().sys_errno() == ELOOP) return unlink_file(path);
  const Status removed = there ? there->remove() : there.status();
  // An empty one needs no descriptor.
  if (removed.sys_errno() == EMFILE && environment().unlinkat(AT_FDCWD, path.c_str(), AT_REMOVEDIR) == 0) return {};
  return removed;
}

Status Sidecar::remove() const {
  auto all = names();
  if (!all) return all.status();
  for (const std::string& name : *all) HF_TRY(remove_file(name));
  if (environment().unlinkat(parent_.get(), name_of(path_).c_str(), AT_REMOVEDIR) == 0 || errno == ENOENT) return {};
  return target::failure(path_);
}

Result<FileState> Sidecar::state() const { return look_at(directory_.get(), path_); }

Descriptor Sidecar::descriptor() const { return reopened(directory_); }

Result<std::vector<std::string>> Sidecar::names() const {
  const Descriptor readable = reopened(directory_);
  return readable ? list_directory(readable.get(), path_) : target::failure(path_);
}

Result<Descriptor> Sidecar::open_file(const std::string& name, int flags) const {
  struct stat found;
  // To open a device can do something already.
  const bool there = environment().fstatat(directory_.get(), name.c_str(), &found, AT_SYMLINK_NOFOLLOW) == 0;
  if (there && !S_ISREG(found.st_mode)) return refused(directory_.get(), name, at(name), "regular file");
  Descriptor file(environment().openat(directory_.get(), name.c_str(), flags | always, 0666));
  if (!file) return errno == ELOOP ? refused(directory_.get(), name, at(name), "regular file") : target::failure(at(name));
  if (environment().fstat(file.get(), &found) != 0) return target::failure(at(name));
  if (!S_ISREG(found.st_mode)) return refused(directory_.get(), name, at(name), "regular file");
  return file;
}

Result<std::string> Sidecar::read(const std::string& name, uint64_t max_bytes) const {
  auto file = open_file(name, O_RDONLY);
  return file ? read_small(file->get(), at(name), max_bytes) : file.status();
}

Result<layout::Manifest> Sidecar::manifest(const std::string& name) const {
  auto text = read(name, layout::max_manifest_bytes);
  if (!text) return text.status();
  return layout::decode(std::as_bytes(std::span(text->data(), text->size())));
}

Result<Descriptor> Sidecar::write(const std::string& scratch, const std::string& content) const {
  Descriptor file(environment().openat(directory_.get(), scratch.c_str(), O_WRONLY | O_CREAT | O_EXCL | always, 0666));
  if (!file) return target::failure(at(scratch));
  HF_TRY(write_all(file.get(), at(scratch), content));
  return file;
}

Status Sidecar::fill(const std::string& scratch, const std::string& content, bool durable) const {
  const auto file = write(scratch, content);
  if (!file) return file.status();
  return durable && environment().fsync(file->get()) != 0 ? target::failure("fsync of " + at(scratch)) : Status();
}

Status Sidecar::fill_stub(const std::string& scratch, const std::string& name, const NewStub& stub, bool durable) const {
  const Descriptor file(environment().openat(directory_.get(), scratch.c_str(), O_WRONLY | O_CREAT | O_EXCL | always, stub.mode | 0200));
  if (!file) return target::failure(at(scratch));
  HF_TRY(write_all(file.get(), at(scratch), stub.text));
  if (stub.before) environment().say_as_of(parent_.get(), name.c_str(), file.get(), stub.keeps_times);
  if (stub.before && environment().fchown(file.get(), stub.before->owner, stub.before->group) != 0)
    (void)environment().fchown(file.get(), uid_t(-1), stub.before->group);
  // Behind the owner, whose change takes bits away. Where neither can be changed the stub is as an earlier version made it.
  (void)environment().fchmod(file.get(), mode_of_stub(stub.mode));
  const int kept = durable ? environment().fsync(file.get()) : environment().write_out(file.get());
  return kept != 0 ? target::failure("fsync of " + at(scratch)) : Status();
}

template <class Fill>
Status Sidecar::put_at(int directory, const std::string& name, Fill fill) const {
  const std::string scratch = scratch_name();
  Status status = fill(scratch);
  if (status.ok()) status = move_at(directory_.get(), scratch, directory, name, 0, "writing " + at(name));
  if (!status.ok()) (void)remove_file(scratch);
  return status;
}

Status Sidecar::put(const std::string& name, const std::string& content, bool durable) const {
  HF_TRY(put_at(directory_.get(), name, [&](const std::string& scratch) { return fill(scratch, content, durable); }));
  return durable ? sync(directory_, path_) : Status();
}

Result<Sidecar::Staged> Sidecar::stage(const std::string& content) const {
  Staged staged{scratch_name(), Descriptor()};
  auto file = write(staged.scratch, content);
  if (!file) {
    (void)remove_file(staged.scratch);
    return file.status();
  }
  staged.file = std::move(*file);
  return staged;
}

Status Sidecar::put_staged(const std::string& name, const std::string& scratch) const {
  HF_TRY(move_at(directory_.get(), scratch, directory_.get(), name, 0, "writing " + at(name)));
  return sync(directory_, path_);
}

Status Sidecar::put_stub_beside(const std::string& name, const NewStub& stub, bool durable) const {
  return put_at(parent_.get(), name, [&](const std::string& scratch) { return fill_stub(scratch, name, stub, durable); });
}

Status Sidecar::link_beside(const std::string& name, const std::string& leads_to) const {
  const std::string scratch = scratch_name();
  if (environment().symlinkat(leads_to.c_str(), directory_.get(), scratch.c_str()) != 0) return target::failure(at(scratch));
  Status status = move_at(directory_.get(), scratch, parent_.get(), name, 0, "writing the link " + name);
  if (!status.ok()) (void)remove_file(scratch);
  return status;
}

Status Sidecar::move_beside(const std::string& name, const std::string& beside, bool keep_existing) const {
  const std::string what = fmt::format("moving {} beside {}", at(name), path_);
  if (!keep_existing) return move_at(directory_.get(), name, parent_.get(), beside, 0, what);
  const Status moved = move_at(directory_.get(), name, parent_.get(), beside, RENAME_NOREPLACE, what);
  if (moved.sys_errno() != EINVAL && moved.sys_errno() != ENOSYS) return moved;  // file systems without the flag
  struct stat found;
  if (environment().fstatat(parent_.get(), beside.c_str(), &found, AT_SYMLINK_NOFOLLOW) == 0) return Status(Kind::exists, beside + " exists", EEXIST);
  return move_at(directory_.get(), name, parent_.get(), beside, 0, what);
}

Status Sidecar::remove_file(const std::string& name) const {
  if (environment().unlinkat(directory_.get(), name.c_str(), 0) == 0 || errno == ENOENT) return {};
  return target::failure(at(name));
}

Status Sidecar::sync_parent() const { return sync(parent_, parent_of(path_)); }

Descriptor Sidecar::parent() const { return reopened(parent_); }

namespace {

// The kernel's lock, which goes with its descriptor.
class KernelLock final : public target::Lock {
 public:
  explicit KernelLock(Descriptor file) : file_(std::move(file)) {}

 private:
  Descriptor file_;
};

}  // namespace

Result<std::unique_ptr<target::Lock>> Sidecar::lock(const std::string& name) const {
  auto file = lock_by_kernel(name);
  Result<std::unique_ptr<target::Lock>> kernel(file.status());
  if (file.ok()) kernel = std::unique_ptr<target::Lock>(std::make_unique<KernelLock>(std::move(*file)));
  return target::also_by_name(
      std::move(kernel), [this] { return environment().locks_reach_all_nodes(directory_.get()); }, [this] { return names_of_locks(); }, name,
      target::Hold::alone);
}

Result<std::vector<std::string>> Sidecar::break_locks() const { return target::break_locks(*names_of_locks()); }

// By the kernel's own calls: a simulated sidecar has no locks by name.
std::shared_ptr<target::NameStore> Sidecar::names_of_locks() const {
  return target::names_in(raw::Fd(raw::openat(directory_.get(), ".", O_PATH | O_DIRECTORY | O_CLOEXEC)), path_, 0666);
}

Result<Descriptor> Sidecar::lock_by_kernel(const std::string& name) const {
  for (int i = 0; i < lock_tries; ++i) {
    auto file = open_file(name, O_RDWR | O_CREAT);
    if (!file) return file;
    // Of the open file description: it excludes other openers in this process too, and network file systems carry it.
    if (environment().lock_whole(file->get()) != 0) {
      if (errno == EAGAIN || errno == EACCES) return Status(Kind::busy, at(name) + " is locked by somebody else", EBUSY);
      return target::failure("locking " + at(name));
    }
    // Whoever held it before may have removed it: then the lock is on something that nobody else will find.
    struct stat mine;
    auto there = look_at(directory_.get(), name, at(name));
    if (there && environment().fstat(file->get(), &mine) == 0 && there->inode == mine.st_ino && there->device == mine.st_dev) return file;
  }
  return Status(Kind::busy, at(name) + " is being replaced by somebody else", EBUSY);
}

Result<layout::Manifest> read_sidecar_manifest(const std::string& sidecar) {
  auto opened = Sidecar::open(sidecar);
  return opened ? opened->manifest() : opened.status();
}

}  // namespace holdfast::catalog
