#include "target/directory.hpp"

#include <limits.h>
#include <sys/file.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <deque>
#include <functional>
#include <mutex>
#include <set>
#include <utility>

#include "base/coarse_clock.hpp"
#include "base/meter.hpp"
#include "base/own_numbers.hpp"
#include "base/raw_syscalls.hpp"
#include "target/directory_names.hpp"
#include "target/directory_root.hpp"
#include "target/directory_stripes.hpp"
#include "target/kernel_calls.hpp"
#include "target/lock_owner.hpp"
#include "target/lock_reach.hpp"
#include "target/name.hpp"
#include "target/side_by_side.hpp"

namespace holdfast::target {

namespace {

using raw::Fd;

bool same_inode(const struct stat& a, const struct stat& b) { return a.st_dev == b.st_dev && a.st_ino == b.st_ino; }

constexpr int kMostAside = 100;  // things that took the same name, one after another
using Root = DirectoryRoot;

// A stretch of an open file as memory. A forked child has it too, and leaves it alone.
class Mapping {
 public:
  // Null where the file system says no, or has no room.
  static std::unique_ptr<Mapping> make(int fd, uint64_t offset, uint64_t bytes) {
    if (raw::fallocate(fd, 0, offset, bytes) != 0) return nullptr;
    void* at = raw::mmap(bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, offset);
    if (at == MAP_FAILED) return nullptr;
    auto mapping = std::unique_ptr<Mapping>(new Mapping(static_cast<std::byte*>(at), offset, bytes));
    constexpr int populate_write = 23;  // MADV_POPULATE_WRITE, Linux 5.14: an error now instead of a signal later
    if (raw::madvise(at, bytes, populate_write) != 0 && errno != EINVAL) return nullptr;
    return mapping;
  }
  ~Mapping() { raw::munmap(at_, bytes_); }
  // Whether the file still reaches to the end of this. Memory beyond a file's end is a signal to whoever touches it, and anybody who may write
  // the file may cut it. Asking is a call of the system, so it is asked once in a tick of the coarse clock. A program that paused has it asked before
  // its next write, one that writes without pause goes by without. From the first no on nothing of the file is mapped.
  bool is_whole(int fd) {
    if (cut_.load(std::memory_order_relaxed)) return false;
    const int64_t tick = coarse_now_ns();
    if (asked_.exchange(tick, std::memory_order_relaxed) == tick) return true;
    struct stat now;
    if (raw::fstat(fd, &now) != 0 || uint64_t(now.st_size) >= offset_ + bytes_) return true;
    cut_ = true;
    (void)raw::map_nothing_over(at_, bytes_);
    return false;
  }
  // False: not all of it lies in here.
  bool take(uint64_t offset, std::span<const iovec> from) {
    uint64_t bytes = 0;
    for (const iovec& vector : from) bytes += vector.iov_len;
    if (offset < offset_ || bytes > bytes_ || offset - offset_ > bytes_ - bytes) return false;
    std::byte* to = at_ + (offset - offset_);
    for (const iovec& vector : from) {
      if (vector.iov_len != 0) std::memcpy(to, vector.iov_base, vector.iov_len);
      to += vector.iov_len;
    }
    return true;
  }

 private:
  Mapping(std::byte* at, uint64_t offset, uint64_t bytes) : at_(at), offset_(offset), bytes_(bytes) {}
  std::byte* at_;
  uint64_t offset_, bytes_;
  std::atomic<int64_t> asked_{0};
  std::atomic<bool> cut_{false};
};

// What is left of a list of vectors, advanced by what a system call did. The list is the caller's and stays as it is. It is copied
// only where a call ended inside of a vector, so that the plain case takes no memory.
class Vectors {
 public:
  explicit Vectors(std::span<const iovec> all) : rest_(all) { advance(0); }
  bool done() const { return rest_.empty(); }
  const iovec* data() const { return rest_.data(); }
  int count() const { return static_cast<int>(std::min<size_t>(rest_.size(), IOV_MAX)); }
  void advance(size_t bytes) {
    while (!rest_.empty() && bytes >= rest_.front().iov_len) {
      bytes -= rest_.front().iov_len;
      rest_ = rest_.subspan(1);
    }
    if (bytes == 0) return;
    std::vector<iovec> shorter(rest_.begin(), rest_.end());
    iovec& first = shorter.front();
    first.iov_base = static_cast<char*>(first.iov_base) + bytes;
    first.iov_len -= bytes;
    copy_ = std::move(shorter);
    rest_ = copy_;
  }

 private:
  std::span<const iovec> rest_;
  std::vector<iovec> copy_;
};

// All of it from `offset` on, short writes continued. What failed is said, not tried again. A device that takes the second try has
// not kept its word on the first. `label` is called for a sentence only.
template <class Label>
Status write_all(int fd, uint64_t offset, std::span<const iovec> from, const Label& label) {
  Vectors left(from);
  while (!left.done()) {
    const ssize_t written = metered(&Meter::write_calls, &Meter::write_ns, &Meter::write_bytes,
                                    [&] { return restarted([&] { return raw::pwritev(fd, left.data(), left.count(), offset); }); });
    if (written < 0) return failure("cannot write " + label());
    if (written == 0) return Status(Kind::io, "cannot write " + label() + ": the system takes no more bytes", EIO);
    left.advance(written);
    offset += written;
  }
  return {};
}

class DirectoryObject final : public Object {
 public:
  DirectoryObject(std::shared_ptr<const Root> root, Fd fd, std::string name, bool may_be_new)
      : root_(std::move(root)), fd_(raw::out_of_the_way(std::move(fd))), name_(std::move(name)), entry_to_sync_(may_be_new) {}

  Result<size_t> read(uint64_t offset, std::span<const iovec> into) override {
    Vectors left(into);
    size_t done = 0;
    while (!left.done()) {
      ssize_t got = metered(&Meter::read_calls, &Meter::read_ns, &Meter::read_bytes,
                            [&] { return restarted([&] { return raw::preadv(fd_.get(), left.data(), left.count(), offset + done); }); });
      if (got < 0) return failure("cannot read " + label());
      if (got == 0) break;
      left.advance(got);
      done += got;
    }
    return done;
  }

  // RWF_NOWAIT takes bytes from the page cache or none; file systems that do not know it say so. Of those tmpfs is memory itself.
  size_t read_cached(uint64_t offset, std::span<const iovec> into) override {
    const ssize_t got = metered(&Meter::read_calls, &Meter::read_ns, &Meter::read_bytes, [&] {
      return root_->is_memory() ? raw::preadv(fd_.get(), into.data(), int(into.size()), offset)
                                : raw::preadv2(fd_.get(), into.data(), int(into.size()), offset, RWF_NOWAIT);
    });
    return got < 0 ? 0 : size_t(got);
  }

  Status write(uint64_t offset, std::span<const iovec> from) override {
    if (Mapping* mapping = mapping_.load(std::memory_order_acquire)) {
      if (!mapping->is_whole(fd_.get()))
        return Status(Kind::lost,
                      label() + " was cut by somebody else while it was in use: what it held is lost; leave it alone until the job has ended", EIO);
      if (mapping->take(offset, from)) return {};
    }
    return write_all(fd_.get(), offset, from, [this] { return label(); });
  }

  bool map(uint64_t offset, uint64_t bytes) override {
    if (!root_->maps() || mapping_.load() || offset % page_bytes() != 0) return false;
    auto made = Mapping::make(fd_.get(), offset, bytes);
    Mapping* none = nullptr;
    if (!made || !mapping_.compare_exchange_strong(none, made.get())) return false;
    kept_ = std::move(made);
    return true;
  }

  // fdatasync covers the size and what was written through memory; the entry in its directory is made durable once, by
  // whoever may have made it.
  Status sync() override {
    HF_TRY(sync_content());
    if (!entry_to_sync_) return {};
    HF_TRY(root_->sync_directories(directory()));
    entry_to_sync_ = false;
    return {};
  }
  Status sync_content() {
    const int failed = metered(&Meter::sync_calls, &Meter::sync_ns, nullptr, [&] { return restarted([&] { return raw::fdatasync(fd_.get()); }); });
    return failed ? failure("cannot make " + label() + " durable") : Status();
  }
  void start_sync() { (void)raw::sync_file_range(fd_.get(), 0, 0, SYNC_FILE_RANGE_WRITE); }
  std::string directory() const { return split_name(name_).first; }
  bool entry_to_sync() const { return entry_to_sync_; }
  void entry_is_durable() { entry_to_sync_ = false; }

  // What close(2) does, which is when other nodes may expect to see it: a duplicate is closed.
  Status write_back() override {
    const int twin = raw::fcntl(fd_.get(), F_DUPFD_CLOEXEC, 0);
    if (twin < 0) return failure("cannot write " + label());
    const bool closed = raw::close(twin) == 0 || errno == EINTR;
    const Status status = closed ? Status() : failure("cannot write " + label());
    raw::spares.refill();
    return status;
  }

  Status truncate(uint64_t size) override {
    if (restarted([&] { return raw::ftruncate(fd_.get(), size); }) == 0) return {};
    return failure("cannot cut " + label());
  }

  // The last byte is allocated, which never shortens a file and changes no byte of it. Where that cannot be asked for, a file that
  // somebody else makes longer between the look at it and the cut would lose that.
  Status grow(uint64_t size) override {
    if (size == 0) return {};
    if (restarted([&] { return raw::fallocate(fd_.get(), 0, size - 1, 1); }) == 0) return {};
    if (errno != EOPNOTSUPP && errno != ENOSYS) return failure("cannot extend " + label());
    auto now = this->size();
    if (!now.ok()) return now.status();
    return *now < size ? truncate(size) : Status();
  }

  Result<uint64_t> size() override {
    struct stat found;
    if (raw::fstat(fd_.get(), &found) != 0) return failure("cannot ask for the size of " + label());
    return static_cast<uint64_t>(found.st_size);
  }

  Status still_there() override {
    struct stat mine, found;
    const Status lost(Kind::lost, label() + " was deleted or replaced while it was open", ESTALE);
    if (raw::fstat(fd_.get(), &mine) != 0) {
      // FUSE file systems look even an open file up by its name.
      return errno == ENOENT || errno == ESTALE ? lost : failure("cannot look at " + label());
    }
    Fd there = root_->open(name_, O_PATH);
    if (!there && errno != ENOENT && errno != ENOTDIR && errno != ELOOP) return failure("cannot look at " + label());
    if (there && raw::fstat(there.get(), &found) == 0 && mine.st_nlink > 0 && same_inode(mine, found)) return {};
    return lost;
  }

 private:
  std::string label() const { return root_->at(name_); }
  static uint64_t page_bytes() {
    static const auto bytes = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
    return bytes;
  }

  std::shared_ptr<const Root> root_;
  Fd fd_;
  std::string name_;
  std::atomic<bool> entry_to_sync_;
  std::unique_ptr<Mapping> kept_;
  std::atomic<Mapping*> mapping_{nullptr};  // kept_, once it may be used
};

class FileLock final : public Lock {
 public:
  FileLock(Fd fd, bool by_flock) : fd_(raw::out_of_the_way(std::move(fd))), by_flock_(by_flock), owner_(getpid()) {}
  ~FileLock() override {
    // A forked child shares the lock; it may not let go of what its parent holds, nor may its copy hold on to it.
    if (getpid() != owner_) return;
    if (by_flock_) {
      raw::flock(fd_.get(), LOCK_UN);
    } else {
      struct flock all {};
      all.l_type = F_UNLCK;
      raw::fcntl_lock(fd_.get(), F_OFD_SETLK, &all);
    }
  }

 private:
  Fd fd_;
  bool by_flock_;
  pid_t owner_;
};

class DirectoryTarget final : public Target {
 public:
  explicit DirectoryTarget(std::shared_ptr<const Root> root) : root_(std::move(root)) {}

  std::string describe() const override { return root_->label(); }

  bool caches_by_node() const override { return root_->caches_by_node(); }

  std::optional<DirectoryId> directory_id() const override {
    struct stat state;
    if (raw::fstat(root_->fd(), &state) != 0) return {};
    return DirectoryId{boot_of_this_machine(), state.st_dev, state.st_ino};
  }

  Result<std::shared_ptr<Object>> open(const std::string& name, OpenMode mode, Pages pages) override {
    HF_TRY(check_name(name));
    Result<Fd> fd = open_file(name, mode, pages);
    if (!fd.ok()) return fd.status();
    return std::shared_ptr<Object>(std::make_shared<DirectoryObject>(root_, std::move(*fd), name, mode == OpenMode::create));
  }

  // Made under another name, because who opened it to write in between would fix its layout.
  Result<Stripes> make_striped(const std::string& name, const StripeWish& wish) override {
    HF_TRY(check_name(name));
    const std::string what = "cannot make " + root_->at(name);
    Result<Root::Place> place = root_->place(name, "make");
    if (!place.ok()) return place.status();
    const std::string temporary = temporary_name();
    Result<Stripes> stripes = make_empty(place->fd, temporary, wish, what);
    if (!stripes.ok()) return stripes;
    int result = raw::linkat(place->fd, temporary.c_str(), place->fd, place->leaf.c_str());
    if (result != 0 && errno != EEXIST)  // a file system without links
      result = raw::renameat2(place->fd, temporary.c_str(), place->fd, place->leaf.c_str(), RENAME_NOREPLACE);
    const int reason = errno;
    raw::unlinkat(place->fd, temporary.c_str(), 0);
    errno = reason;
    if (result != 0) return failure(what);
    return stripes;
  }

  Result<Stripes> stripes(const std::string& name) override {
    HF_TRY(check_name(name));
    Result<Fd> fd = open_file(name, OpenMode::read);
    if (!fd.ok()) return fd.status();
    return read_stripes(fd->get());
  }

  Status put(const std::string& name, ByteView content, bool durable) override {
    HF_TRY(check_name(name));
    Result<Root::Place> place = root_->place(name, "write");
    if (!place.ok()) return place.status();
    const std::string temporary = temporary_name();
    const StripeWish* wish = root_->wish(name);
    if (wish) (void)make_empty(place->fd, temporary, *wish, name);  // if it cannot, the open says why
    const int flags = O_WRONLY | O_CREAT | (wish ? 0 : O_EXCL) | O_NOFOLLOW | O_CLOEXEC;
    Fd fd(restarted([&] { return raw::openat(place->fd, temporary.c_str(), flags, root_->file_mode()); }));
    if (!fd) return failure("cannot write " + root_->at(name));
    Status status = fill_and_rename(fd.get(), temporary, *place, name, content, durable);
    if (!status.ok()) {
      raw::unlinkat(place->fd, temporary.c_str(), 0);
      return status;
    }
    return durable ? root_->sync_directories(split_name(name).first) : Status();
  }

  bool moves_objects() const override { return true; }

  Status move(const std::string& from, const std::string& to) override {
    HF_TRY(check_name(from));
    HF_TRY(check_name(to));
    const auto [directory, leaf] = split_name(from);
    Result<Root::Place> place = root_->place(to, "write");
    if (!place.ok()) return place.status();
    if (raw::renameat2(place->fd, leaf.c_str(), place->fd, place->leaf.c_str()) != 0) return failure("cannot write " + root_->at(to));
    return root_->sync_directories(directory);
  }

  // Never what a symbolic link leads to: neither name is followed.
  Status link(const std::string& from, const std::string& to) override {
    HF_TRY(check_name(from));
    HF_TRY(check_name(to));
    Result<Root::Place> old = root_->place(from, "link");
    if (!old.ok()) return old.status();
    Result<Root::Place> place = root_->place(to, "write");
    if (!place.ok()) return place.status();
    struct stat found, there;
    if (raw::fstatat(old->fd, old->leaf.c_str(), &found, AT_SYMLINK_NOFOLLOW) != 0) return failure("cannot link " + root_->at(from));
    if (!S_ISREG(found.st_mode)) return Status(Kind::invalid, root_->at(from) + " is no object", EINVAL);
    if (raw::linkat(old->fd, old->leaf.c_str(), place->fd, place->leaf.c_str()) != 0) {
      const int reason = errno;
      const bool same =
          reason == EEXIST && raw::fstatat(place->fd, place->leaf.c_str(), &there, AT_SYMLINK_NOFOLLOW) == 0 && same_inode(found, there);
      // What a file system says that has no links, or for which there are too many.
      const bool never = reason == EPERM || reason == EOPNOTSUPP || reason == ENOSYS || reason == EMLINK || reason == EXDEV;
      errno = reason;
      const Status failed = failure("cannot write " + root_->at(to));
      if (never) return Status(Kind::unsupported, failed.sentence(), reason);
      if (!same) return failed;
    }
    return root_->sync_directories(split_name(to).first);
  }

  Result<Bytes> get(const std::string& name, uint64_t max_bytes) override {
    HF_TRY(check_name(name));
    Result<Fd> fd = open_file(name, OpenMode::read);
    if (!fd.ok()) return fd.status();
    struct stat found;
    if (raw::fstat(fd->get(), &found) != 0) return failure("cannot read " + root_->at(name));
    // The size is a hint (it may change under us); one byte more shows what is too large.
    Bytes content(std::min<uint64_t>(found.st_size, max_bytes) + 1);
    size_t filled = 0;
    for (;;) {
      ssize_t got = restarted([&] { return raw::pread(fd->get(), content.data() + filled, content.size() - filled, filled); });
      if (got < 0) return failure("cannot read " + root_->at(name));
      if (got == 0) break;
      filled += got;
      if (filled > max_bytes) {
        return Status(Kind::corrupt, root_->at(name) + " is larger than the " + std::to_string(max_bytes) + " bytes it may have");
      }
      if (filled == content.size()) content.resize(std::min<uint64_t>(2 * filled, max_bytes) + 1);
    }
    content.resize(filled);
    return content;
  }

  Status make_directory(const std::string& name) override {
    HF_TRY(check_name(name));
    Result<Root::Place> place = root_->place(name, "make the directory");
    if (!place.ok()) return place.status();
    if (raw::mkdirat(place->fd, place->leaf.c_str(), root_->directory_mode()) == 0) return {};
    if (errno != EEXIST) return failure("cannot make the directory " + root_->at(name));
    Fd there = root_->open(name, O_PATH | O_DIRECTORY);
    if (there) return {};
    return Root::unreachable("cannot make the directory " + root_->at(name));
  }

  Status remove(const std::string& name) override {
    HF_TRY(check_name(name));
    Result<Root::Place> place = root_->place(name, "remove");
    if (!place.ok()) return place.status();
    if (raw::unlinkat(place->fd, place->leaf.c_str(), 0) == 0) return {};
    return failure("cannot remove " + root_->at(name));
  }

  Status remove_directory(const std::string& name) override {
    HF_TRY(check_name(name));
    Result<Root::Place> place = root_->place(name, "remove");
    if (!place.ok()) return place.status().kind() == Kind::not_found ? Status() : place.status();
    if (raw::unlinkat(place->fd, place->leaf.c_str(), AT_REMOVEDIR) == 0 || errno == ENOENT) return {};
    if (errno != ENOTEMPTY && errno != EEXIST) return failure("cannot remove " + root_->at(name));
    // First it loses its name, for good: whatever stops us after that, nobody takes what is left for the whole.
    const std::string nameless = temporary_name();
    if (raw::renameat2(place->fd, place->leaf.c_str(), place->fd, nameless.c_str()) != 0)
      return errno == ENOENT ? Status() : failure("cannot remove " + root_->at(name));
    HF_TRY(root_->sync_directories(split_name(name).first));
    return remove_tree(place->fd, nameless, root_->at(name), 0);
  }

  Status set_aside(const std::string& name) override {
    HF_TRY(check_name(name));
    Result<Root::Place> place = root_->place(name, "set aside");
    if (!place.ok()) return place.status().kind() == Kind::not_found ? Status() : place.status();
    struct stat found;
    if (raw::fstatat(place->fd, place->leaf.c_str(), &found, AT_SYMLINK_NOFOLLOW) != 0)
      return errno == ENOENT ? Status() : failure("cannot look at " + root_->at(name));
    if (S_ISREG(found.st_mode)) return {};
    for (int number = 0;; ++number) {
      const std::string aside = "aside." + std::to_string(number) + "." + place->leaf;
      if (raw::renameat2(place->fd, place->leaf.c_str(), place->fd, aside.c_str(), RENAME_NOREPLACE) == 0) return {};
      if (errno != EEXIST || number == kMostAside) return failure("cannot set aside what stands at " + root_->at(name));
    }
  }

  Result<std::vector<std::string>> list(const std::string& directory) override {
    if (!directory.empty()) HF_TRY(check_name(directory));
    Fd fd = root_->open(directory, O_RDONLY | O_DIRECTORY);
    if (!fd) return Root::unreachable("cannot list " + root_->at(directory));
    Result<std::vector<std::string>> all = directory_entries(fd.get(), root_->at(directory));
    if (!all.ok()) return all;
    std::erase_if(*all, [](const std::string& name) { return name.starts_with(kTemporaryPrefix); });
    std::sort(all->begin(), all->end());
    return all;
  }

  Result<Space> space() override {
    struct statfs found;
    if (restarted([&] { return raw::fstatfs(root_->fd(), &found); }) != 0) {
      return failure("cannot ask for the space of " + root_->label());
    }
    const uint64_t block = found.f_frsize ? found.f_frsize : found.f_bsize;
    return Space{found.f_blocks * block, found.f_bavail * block};
  }

  // The device is told of all of it before any is waited for, and the directories once, however many entries of them are new.
  Status settle(Objects written, Objects left, bool durable) override {
    HF_TRY(check_identity());
    for (const auto& object : written) HF_TRY(object->still_there());
    if (!durable) return {};
    HF_TRY(write_begun());
    std::vector<DirectoryObject*> all;
    for (const Objects objects : {written, left})
      for (const auto& object : objects) all.push_back(static_cast<DirectoryObject*>(object.get()));
    if (all.size() > 1)
      for (DirectoryObject* object : all) object->start_sync();
    std::set<std::string> fresh;
    std::vector<std::function<Status()>> waits;
    for (DirectoryObject* object : all) {
      waits.emplace_back([object] { return object->sync_content(); });
      if (object->entry_to_sync()) fresh.insert(object->directory());
    }
    std::vector<uint64_t> inodes;
    for (const std::string& directory : fresh) inodes.push_back(root_->add_waits(directory, waits));
    HF_TRY(side_by_side(waits));
    for (const uint64_t inode : inodes) root_->entry_is_durable(inode);
    for (DirectoryObject* object : all) object->entry_is_durable();
    return {};
  }

  Status check_identity() override {
    struct stat held, there;
    if (root_->options().may_be_renamed && is_at_another_path()) return {};
    if (raw::fstat(root_->fd(), &held) != 0) {
      return Status(Kind::lost, failure("the target " + root_->label() + " does not answer").sentence(), errno);
    }
    if (Status status = root_->look_there(there); !status.ok()) return Status(Kind::lost, status.sentence(), status.sys_errno());
    if (held.st_nlink > 0 && same_inode(held, there)) return {};
    return Status(Kind::lost, root_->label() + " is no longer the directory that was opened: it was unmounted or replaced", ENODEV);
  }

  // The kernel's name for what is open leads to it.
  bool is_at_another_path() const {
    struct stat held, there;
    char now[PATH_MAX];
    const std::string link = "/proc/self/fd/" + std::to_string(root_->fd());
    const ssize_t length = raw::readlinkat(AT_FDCWD, link.c_str(), now, sizeof now - 1);
    if (length <= 0 || raw::fstat(root_->fd(), &held) != 0 || held.st_nlink == 0) return false;
    now[length] = '\0';
    return raw::fstatat(AT_FDCWD, now, &there, 0) == 0 && same_inode(held, there);
  }

  // The kernel's lock first, also where it reaches this node alone: here it orders those who try, and it goes with the process.
  Result<std::unique_ptr<Lock>> try_lock(const std::string& name, Hold hold) override {
    HF_TRY(check_name(name));
    auto [directory, leaf] = split_name(name);
    return also_by_name(
        lock_by_kernel(name, hold), [&] { return root_->locks_reach_all(); },
        [&, in = directory] { return names_of_locks(in, "cannot lock " + root_->at(name)); }, leaf, hold);
  }

  Result<std::vector<std::string>> break_locks(const std::string& directory) override {
    if (!directory.empty()) HF_TRY(check_name(directory));
    auto names = names_of_locks(directory, "cannot look for locks in " + root_->at(directory));
    return names.ok() ? target::break_locks(**names) : names.status();
  }

 private:
  Result<std::shared_ptr<NameStore>> names_of_locks(const std::string& directory, const std::string& doing) const {
    Fd place = root_->open(directory, O_PATH | O_DIRECTORY);
    if (!place) return Root::unreachable(doing);
    return names_in(std::move(place), root_->at(directory), root_->file_mode());
  }

  // An empty file that nobody has opened to write: the layout is fixed by that.
  Result<Stripes> make_empty(int directory, const std::string& name, const StripeWish& wish, const std::string& doing) const {
    auto stripes = make_striped_file(directory, name.c_str(), root_->file_mode(), wish);
    if (!stripes) return failure(doing);
    return std::move(*stripes);
  }

  Result<std::unique_ptr<Lock>> lock_by_kernel(const std::string& name, Hold hold) {
    for (;;) {
      Result<Fd> fd = open_file(name, OpenMode::create);
      if (!fd.ok()) return fd.status();
      bool by_flock = root_->options().without_ofd_locks;
      if (Status status = lock_file(fd->get(), root_->at(name), hold, by_flock); !status.ok()) return status;
      // Whoever held it before may have removed the object: then the lock is on something that nobody else will find.
      struct stat mine, found;
      Fd there = root_->open(name, O_PATH);
      if (raw::fstat(fd->get(), &mine) != 0) return failure("cannot lock " + root_->at(name));
      if (!there || raw::fstat(there.get(), &found) != 0 || !same_inode(mine, found)) continue;
      return std::unique_ptr<Lock>(std::make_unique<FileLock>(std::move(*fd), by_flock));
    }
  }

  // Mounts whose locks stop at the node let a node believe for a while what it has once seen of names and sizes. Before a file can be opened
  // there to see what another node has written, both are asked of the server.
  //
  // What is to be made must not exist: that is never answered from a cache. A directory gets no second link, so nothing is made. FUSE's answer
  // brings the size along; others are asked for it.
  void forget_cached_name(const std::string& name) const {
    auto place = root_->place(name, "open");
    if (place.ok()) (void)raw::linkat(place->fd, ".", place->fd, place->leaf.c_str());
  }
  static void forget_cached_size(int fd) {
    struct statx found;
    (void)raw::statx(fd, "", AT_EMPTY_PATH | AT_STATX_FORCE_SYNC, STATX_SIZE, &found);
  }

  Result<Fd> open_file(const std::string& name, OpenMode mode, Pages pages = Pages::own) {
    if (const StripeWish* wish = mode == OpenMode::create ? root_->wish(name) : nullptr) {
      // One that is there is opened; what else is wrong the open below says.
      if (Fd there = root_->open(name, O_PATH); !there && errno == ENOENT) (void)make_striped(name, *wish);
    }
    int flags = mode == OpenMode::read ? O_RDONLY : O_RDWR | (mode == OpenMode::create ? O_CREAT : 0);
    // NFS makes whole pages of what is written to a page that it has in memory, but not of synchronous writes.
    if (mode != OpenMode::read && pages == Pages::shared && root_->caches_by_node()) flags |= O_DSYNC;
    if (!root_->locks_reach_all()) forget_cached_name(name);
    Fd fd = root_->open(name, flags, root_->file_mode());
    const std::string label = root_->at(name);
    if (!fd) return Root::unreachable("cannot open " + label);
    if (!root_->locks_reach_all()) forget_cached_size(fd.get());
    struct stat found;
    if (raw::fstat(fd.get(), &found) != 0) return failure("cannot open " + label);
    if (!S_ISREG(found.st_mode)) return Status(Kind::invalid, label + " is not a regular file", EISDIR);
    // Some file systems give O_NONBLOCK a meaning on regular files; it was for the open alone.
    raw::fcntl(fd.get(), F_SETFL, raw::fcntl(fd.get(), F_GETFL) & ~O_NONBLOCK);
    return fd;
  }

  static constexpr size_t most_begun = 64;

  // XFS, unlike ext4, keeps a rename in its log before it has written what the file holds. After a power failure the new name stands for an empty
  // file, and the old content is gone. Where there is one, the new one is written first. That is no flush of the device: the log, which is written
  // after it, makes one before it counts.
  //
  // Where there is none nobody waits: before data is made durable settle sees that it is written, and by then it mostly is.
  Status write_before_rename(int fd, const Root::Place& place, const std::string& name) {
    struct stat old;
    if (raw::fstatat(place.fd, place.leaf.c_str(), &old, AT_SYMLINK_NOFOLLOW) != 0) {
      (void)raw::sync_file_range(fd, 0, 0, SYNC_FILE_RANGE_WRITE);
      return note_begun(name);
    }
    constexpr unsigned start_and_wait = SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER;
    if (restarted([&] { return raw::sync_file_range(fd, 0, 0, start_and_wait); }) == 0) return {};
    // Others: it has no such call.
    return errno == EIO || errno == ENOSPC || errno == EDQUOT ? failure("cannot write " + root_->at(name)) : Status();
  }

  // An agent's client has one target for all its files: several may have begun.
  Status note_begun(const std::string& name) {
    std::string oldest;
    {
      const std::lock_guard guard(begun_mutex_);
      if (std::find(begun_.begin(), begun_.end(), name) != begun_.end()) return {};
      if (begun_.size() == most_begun) oldest = std::move(begun_.front()), begun_.pop_front();
      begun_.push_back(name);
    }
    return oldest.empty() ? Status() : write_whole(oldest);
  }

  Status write_begun() {
    std::deque<std::string> names;
    {
      const std::lock_guard guard(begun_mutex_);
      names.swap(begun_);
    }
    Status first;
    for (const std::string& name : names)
      if (Status status = write_whole(name); first.ok()) first = std::move(status);
    return first;
  }

  Status write_whole(const std::string& name) {
    const Fd there = root_->open(name, O_RDONLY);
    constexpr unsigned wait = SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER;
    if (!there || restarted([&] { return raw::sync_file_range(there.get(), 0, 0, wait); }) == 0) return {};
    return errno == EIO || errno == ENOSPC || errno == EDQUOT ? failure("cannot write " + root_->at(name)) : Status();
  }

  Status fill_and_rename(int fd, const std::string& temporary, const Root::Place& place, const std::string& name, ByteView content, bool durable) {
    const std::string label = root_->at(name);
    iovec all{const_cast<std::byte*>(content.data()), content.size()};
    HF_TRY(write_all(fd, 0, std::span<const iovec>(&all, 1), [&] { return label; }));
    if (durable && restarted([&] { return raw::fsync(fd); }) != 0) return failure("cannot make " + label + " durable");
    if (!durable) HF_TRY(write_before_rename(fd, place, name));
    if (raw::renameat2(place.fd, temporary.c_str(), place.fd, place.leaf.c_str()) == 0) return {};
    return failure("cannot write " + label);
  }

  // Unique among threads, processes and nodes that share the directory.
  static std::string temporary_name() {
    static std::atomic<uint64_t> counter{0};
    timespec now{};
    clock_gettime(CLOCK_REALTIME, &now);
    return std::string(kTemporaryPrefix) + std::to_string(getpid()) + "." + std::to_string(counter++) + "." +
           std::to_string(now.tv_sec * 1000000000LL + now.tv_nsec);
  }

  static Status remove_tree(int parent, const std::string& leaf, const std::string& label, int depth) {
    constexpr int kDeepest = 64;  // ours are two deep; a forged one must not exhaust the stack
    if (depth > kDeepest) return Status(Kind::invalid, "cannot remove " + label + ": it is nested too deeply");
    Fd fd(restarted([&] { return raw::openat(parent, leaf.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC); }));
    if (!fd) {
      if (errno == ENOENT) return {};
      return failure("cannot remove " + label);
    }
    Result<std::vector<std::string>> names = directory_entries(fd.get(), label);
    if (!names.ok()) return names.status();
    for (const std::string& name : *names) {
      if (raw::unlinkat(fd.get(), name.c_str(), 0) == 0 || errno == ENOENT) continue;
      if (errno != EISDIR && errno != EPERM) return failure("cannot remove " + label + "/" + name);
      HF_TRY(remove_tree(fd.get(), name, label + "/" + name, depth + 1));
    }
    if (raw::unlinkat(parent, leaf.c_str(), AT_REMOVEDIR) == 0 || errno == ENOENT) return {};
    return failure("cannot remove " + label);
  }

  // OFD locks, because they belong to the open file and not, as POSIX ones, to whoever closes any descriptor of it first. They also hold across nodes
  // where the file system has locks. Where it has none, flock.
  static Status lock_file(int fd, const std::string& label, Hold hold, bool& by_flock) {
    int result = -1;
    if (!by_flock) {
      struct flock all {};
      all.l_type = hold == Hold::shared ? F_RDLCK : F_WRLCK;
      all.l_whence = SEEK_SET;
      result = restarted([&] { return raw::fcntl_lock(fd, F_OFD_SETLK, &all); });
      by_flock = result != 0 && has_no_locks(errno);
    }
    if (by_flock) result = restarted([&] { return raw::flock(fd, (hold == Hold::shared ? LOCK_SH : LOCK_EX) | LOCK_NB); });
    if (result == 0) return {};
    if (errno == EAGAIN || errno == EACCES) {
      return Status(Kind::busy, label + " is locked by another opener", EBUSY);
    }
    return failure("cannot lock " + label);
  }

  std::shared_ptr<const Root> root_;
  std::mutex begun_mutex_;
  std::deque<std::string> begun_;  // what puts that were the first of their names have begun to write
};

// So that the target means the same directory after a chdir.
std::string absolute(const std::string& path) {
  if (path.starts_with('/')) return path;
  char directory[PATH_MAX];
  if (raw::getcwd(directory, sizeof directory) <= 0 || directory[0] != '/') return path;
  std::string base = directory;
  if (path.empty() || path == ".") return base;
  return (base == "/" ? "" : base) + "/" + path;
}

}  // namespace

Result<std::shared_ptr<Target>> open_directory(const std::string& path, const DirectoryOptions& options) {
  if (path.empty()) return Status(Kind::invalid, "the path of a target is empty", EINVAL);
  std::string full = absolute(path);
  while (full.size() > 1 && full.ends_with('/')) full.pop_back();
  auto fd = open_to_hold(full);
  if (!fd.ok()) return fd.status();
  auto root = std::make_shared<const Root>(std::move(*fd), full, options);
  return std::shared_ptr<Target>(std::make_shared<DirectoryTarget>(std::move(root)));
}

Result<Fd> open_to_hold(const std::string& path) {
  Fd fd(restarted([&] { return raw::openat(AT_FDCWD, path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC); }));
  if (!fd) return failure("cannot open the target " + path);
  return fd;
}

std::shared_ptr<Target> hold_directory(Fd directory, const std::string& path, const std::string& label, const DirectoryOptions& options,
                                       LookThere look) {
  return std::make_shared<DirectoryTarget>(std::make_shared<const Root>(std::move(directory), path, label, options, std::move(look)));
}

}  // namespace holdfast::target
