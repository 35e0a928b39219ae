#include "catalog/user_files.hpp"

#include <stdio.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

#include <fmt/format.h>

#include "base/directory_entries.hpp"
#include "base/node_path.hpp"
#include "base/spare_numbers.hpp"
#include "catalog/descriptors.hpp"
#include "catalog/environment.hpp"
#include "target/kernel_calls.hpp"

namespace holdfast::catalog {

namespace {

constexpr long fuse_magic = 0x65735546;

Descriptor open_file(const std::string& path, int flags, uint32_t mode = 0) {
  return Descriptor(environment().openat(AT_FDCWD, path.c_str(), flags | O_CLOEXEC, mode));
}

Result<std::string> read_up_to(int descriptor, const std::string& path, uint64_t bytes) {
  // Nearly all are small, and a limit is large: no memory for all of it.
  constexpr uint64_t first_bytes = 8192, growth = 4;
  std::string content(std::min(bytes, first_bytes), '\0');
  size_t have = 0;
  while (have < bytes) {
    if (have == content.size()) content.resize(std::min(bytes, growth * have));
    const ssize_t got = environment().pread(descriptor, content.data() + have, content.size() - have, have);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return target::failure("reading " + path);
    if (got == 0) break;
    have += size_t(got);
  }
  content.resize(have);
  return content;
}

Result<std::string> read_up_to(const std::string& path, uint64_t bytes) {
  // O_NONBLOCK: a fifo at the path must not hold us. O_NOATIME: to the user nobody has read the file; only its owner may say so.
  constexpr int flags = O_RDONLY | O_NONBLOCK | O_NOCTTY;
  Descriptor file = open_file(path, flags | O_NOATIME);
  if (!file && errno == EPERM) file = open_file(path, flags);
  return file ? read_up_to(file.get(), path, bytes) : target::failure(path);
}

FileState state_from(const struct stat& found) {
  FileState state;
  state.device = found.st_dev;
  state.inode = found.st_ino;
  state.size = uint64_t(found.st_size);
  state.change_ns = found.st_ctim.tv_sec * 1000000000 + found.st_ctim.tv_nsec;
  state.modified_ns = found.st_mtim.tv_sec * 1000000000 + found.st_mtim.tv_nsec;
  state.mode = found.st_mode;
  state.owner = found.st_uid;
  state.group = found.st_gid;
  return state;
}

Result<std::string> at_most(Result<std::string> content, const std::string& path, uint64_t max_bytes) {
  if (content && content->size() > max_bytes)
    return Status(Kind::corrupt, fmt::format("{} is larger than the {} bytes that it can have", path, max_bytes));
  return content;
}

std::string working_directory() {
  char buffer[4096];
  const ssize_t length = environment().getcwd(buffer, sizeof buffer);
  return length > 0 ? std::string(buffer) : "/";
}

}  // namespace

bool FileState::regular() const { return S_ISREG(mode); }
bool FileState::link() const { return S_ISLNK(mode); }
bool FileState::directory() const { return S_ISDIR(mode); }

std::string parent_of(const std::string& absolute) {
  const size_t slash = absolute.rfind('/');
  return slash == 0 || slash == std::string::npos ? "/" : absolute.substr(0, slash);
}

std::string name_of(const std::string& absolute) { return absolute.substr(absolute.rfind('/') + 1); }

std::string sidecar_of(const std::string& absolute) {
  std::string sidecar = absolute + ".holdfast";
  return sidecar.insert(absolute.rfind('/') + 1, 1, '.');
}

std::string absolute_path(const std::string& path) {
  std::string text = path.empty() || path.front() != '/' ? working_directory() + "/" + path : path;
  while (text.size() > 1 && text.back() == '/') text.pop_back();
  const std::string name = name_of(text);
  if (name.empty() || name == "." || name == "..") return std::filesystem::path(text).lexically_normal().string();
  const Descriptor parent = open_file(parent_of(text), O_PATH | O_DIRECTORY);
  if (parent) {
    auto resolved = read_link(fmt::format("/proc/self/fd/{}", parent.get()));
    if (resolved && resolved->front() == '/') return (*resolved == "/" ? "" : *resolved) + "/" + name;
  }
  return std::filesystem::path(text).lexically_normal().string();
}

std::string absolute_target(const std::string& address) { return names_a_node(address) ? plain_address(address) : absolute_path(address); }

std::string resolved_path(const std::string& path) {
  constexpr int most_links = 40;  // as the kernel
  std::string at = absolute_path(path);
  for (int i = 0; i < most_links; ++i) {
    auto link = read_link(at);
    if (!link || link->empty()) return at;
    at = absolute_path(link->front() == '/' ? *link : parent_of(at) + "/" + *link);
  }
  return at;
}

Result<FileState> look(const std::string& path, bool follow_links) {
  struct stat found;
  if (environment().fstatat(AT_FDCWD, path.c_str(), &found, follow_links ? 0 : AT_SYMLINK_NOFOLLOW) != 0) return target::failure(path);
  return state_from(found);
}

Result<FileState> look_at(int descriptor, const std::string& path) {
  struct stat found;
  return environment().fstat(descriptor, &found) == 0 ? Result<FileState>(state_from(found)) : target::failure(path);
}

Result<FileState> look_at(int directory, const std::string& name, const std::string& path) {
  struct stat found;
  if (environment().fstatat(directory, name.c_str(), &found, AT_SYMLINK_NOFOLLOW) != 0) return target::failure(path);
  return state_from(found);
}

Result<std::string> read_small(const std::string& path, uint64_t max_bytes) { return at_most(read_up_to(path, max_bytes + 1), path, max_bytes); }

Result<std::string> read_small(int descriptor, const std::string& path, uint64_t max_bytes) {
  return at_most(read_up_to(descriptor, path, max_bytes + 1), path, max_bytes);
}

Result<std::string> read_beginning(const std::string& path, size_t bytes) { return read_up_to(path, bytes); }

Result<std::string> read_link(const std::string& path) {
  std::string target(4096, '\0');
  const ssize_t length = environment().readlinkat(AT_FDCWD, path.c_str(), target.data(), target.size());
  if (length < 0) return target::failure(path);
  target.resize(size_t(length));
  return target;
}

Result<std::vector<std::string>> list_directory(const std::string& path) {
  const Descriptor directory = open_file(path, O_RDONLY | O_DIRECTORY);
  return directory ? list_directory(directory.get(), path) : target::failure(path);
}

Result<std::vector<std::string>> list_directory(int descriptor, const std::string& path) {
  std::vector<std::string> names;
  alignas(8) char buffer[8192];
  for (;;) {
    const ssize_t got = environment().getdents64(descriptor, buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return target::failure("listing " + path);
    if (got == 0) return names;
    each_name_in(buffer, got, [&](const char* name) { names.emplace_back(name); });
  }
}

Status make_directory(const std::string& path) { return environment().mkdirat(AT_FDCWD, path.c_str(), 0777) == 0 ? Status() : target::failure(path); }

Status make_with_parents(const std::string& path) {
  if (look(path, true)) return {};
  if (const std::string above = parent_of(path); above != path && !above.empty()) HF_TRY(make_with_parents(above));
  const Status made = make_directory(path);
  return made.kind() == Kind::exists ? Status() : made;
}

Status make_file(const std::string& path, uint32_t mode) {
  const Descriptor file = open_file(path, O_WRONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK, mode);
  return file ? Status() : target::failure(path);
}

Status write_all(int descriptor, const std::string& path, const std::string& content) {
  for (size_t done = 0; done < content.size();) {
    const ssize_t put = environment().write(descriptor, content.data() + done, content.size() - done);
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return target::failure("writing " + path);
    done += size_t(put);
  }
  return {};
}

Descriptor open_to_read(const std::string& path) { return open_file(path, O_RDONLY); }

Result<size_t> read_at(int descriptor, const std::string& path, uint64_t offset, ByteSpan into) {
  size_t done = 0;
  while (done < into.size()) {
    const ssize_t got = environment().pread(descriptor, into.data() + done, into.size() - done, offset + done);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return target::failure(path);
    if (got == 0) break;
    done += size_t(got);
  }
  return done;
}

Status write_at(int descriptor, const std::string& path, uint64_t offset, ByteView from) {
  for (size_t done = 0; done < from.size();) {
    const ssize_t put = environment().pwrite(descriptor, from.data() + done, from.size() - done, offset + done);
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return target::failure(path);
    done += size_t(put);
  }
  return {};
}

Status replace_file(const std::string& path, const std::string& scratch, const std::string& content, uint32_t mode, bool durable) {
  auto attempt = [&]() -> Status {
    const Descriptor file = open_file(scratch, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW, mode);
    if (!file) return target::failure(scratch);
    HF_TRY(write_all(file.get(), scratch, content));
    if (durable && environment().fsync(file.get()) != 0) return target::failure("fsync of " + scratch);
    return move(scratch, path);
  };
  Status status = attempt();
  if (!status.ok()) {
    (void)unlink_file(scratch);
    return status;
  }
  return durable ? sync_directory(parent_of(path)) : Status();
}

Status move(const std::string& from, const std::string& to, bool keep_existing) {
  if (keep_existing && environment().renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE) == 0) return {};
  if (keep_existing && errno != EINVAL && errno != ENOSYS) return target::failure(to);  // file systems without the flag
  if (keep_existing && look(to, false)) return Status(Kind::exists, to + " exists", EEXIST);
  return environment().renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), 0) == 0 ? Status()
                                                                                       : target::failure(fmt::format("moving {} to {}", from, to));
}

Status unlink_file(const std::string& path) {
  if (environment().unlinkat(AT_FDCWD, path.c_str(), 0) == 0 || errno == ENOENT) return {};
  return target::failure(path);
}

Status sync_directory(const std::string& path) {
  const Descriptor directory = open_file(path, O_RDONLY | O_DIRECTORY);
  if (!directory) return target::failure(path);
  // Some file systems (and FUSE) know no fsync of directories; their renames are as durable as they get.
  if (environment().fsync(directory.get()) != 0 && errno != EINVAL && errno != ENOSYS) return target::failure("fsync of " + path);
  return {};
}

Descriptor open_to_sync(const std::string& path) {
  constexpr int never_waits = O_NOFOLLOW | O_NONBLOCK | O_NOCTTY;
  Descriptor file = open_file(path, O_RDONLY | never_waits);
  if (!file && errno == EACCES) file = open_file(path, O_WRONLY | never_waits);  // who may write need not be allowed to read
  return file;
}

Status sync_file(const std::string& path) {
  const Descriptor file = open_to_sync(path);
  if (!file) return target::failure(path);
  return environment().fsync(file.get()) == 0 || errno == EINVAL || errno == ENOSYS ? Status() : target::failure("fsync of " + path);
}

bool keeps_inode_numbers(const std::string& path) {
  const Descriptor file = open_file(path, O_RDONLY | O_NONBLOCK);
  struct statfs found;
  return file && environment().fstatfs(file.get(), &found) == 0 && found.f_type != fuse_magic;
}

uint64_t file_system_magic(const std::string& path) {
  const Descriptor directory = open_file(path, O_PATH | O_DIRECTORY);
  struct statfs found;
  return directory && environment().fstatfs(directory.get(), &found) == 0 ? uint32_t(found.f_type) : 0;
}

Status no_descriptors(const std::string& path) {
  return Status(Kind::io, fmt::format("{}: this process has no descriptors left for it; close files, or allow more (ulimit -n)", path), EMFILE);
}

namespace {
// In a commit each member has its lock, its data, its records, a journal and a manifest open.
int in_commit(size_t members) { return int(std::min<size_t>(5 * members + 8, raw::Spares::most)); }
}  // namespace

int least_descriptors(size_t members) { return raw::least_allowed(in_commit(members)); }

Status keep_descriptors(const std::string& path, size_t members) {
  // Not even a file on one target is opened with so few. It was found out by one call after another, for seconds.
  constexpr uint64_t too_few = 8;
  if (raw::allowed_numbers() <= too_few) return no_descriptors(path);
  const raw::Reserve reserve = raw::keep_spares(in_commit(members), raw::Need::to_read);
  return reserve == raw::Reserve::kept ? Status() : no_descriptors(path);
}

Result<Descriptors> keep_descriptors_to_write(const std::string& path, size_t members) {
  Descriptors share = std::make_shared<raw::Share>(in_commit(members));
  switch (raw::keep_spares(in_commit(members), raw::Need::to_write)) {
    case raw::Reserve::kept: return share;
    case raw::Reserve::none: return no_descriptors(path);
    case raw::Reserve::forbidden: break;
  }
  return Status(Kind::io,
                fmt::format("{}: a process that writes it needs {} descriptors, and this one may have {}; allow more (ulimit -n 1024)", path,
                            least_descriptors(members), raw::allowed_numbers()),
                EMFILE);
}

constexpr const char* made_from = "user.holdfast.made_from";

void say_made_from(int descriptor, const std::string& file_id) { (void)raw::fsetxattr(descriptor, made_from, file_id.data(), file_id.size(), 0); }

bool was_made_from(const std::string& path, const std::string& file_id) {
  const raw::Fd file(raw::openat(AT_FDCWD, path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  std::string value(file_id.size() + 1, '\0');
  const ssize_t bytes = file ? raw::fgetxattr(file.get(), made_from, value.data(), value.size()) : -1;
  return bytes == ssize_t(file_id.size()) && value.compare(0, file_id.size(), file_id) == 0;
}

}  // namespace holdfast::catalog
