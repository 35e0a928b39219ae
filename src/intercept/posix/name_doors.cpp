// Doors that change what a name leads to: rename, unlink, truncate. They act on the whole protected file.
#include <fmt/format.h>

#include "catalog/catalog.hpp"
#include "catalog/hidden_names.hpp"
#include "catalog/user_files.hpp"
#include "intercept/posix/descriptor_names.hpp"
#include "intercept/posix/descriptors.hpp"
#include "intercept/posix/observe.hpp"
#include "intercept/posix/paths.hpp"
#include "intercept/posix/real.hpp"
#include "intercept/posix/rename_plain.hpp"
#include "intercept/posix/settings.hpp"

namespace {

using namespace holdfast::intercept::posix;
using holdfast::Kind;
using holdfast::Status;
using holdfast::frontend::posix::OpenFile;
namespace catalog = holdfast::catalog;

int answer(const std::string& path, const Status& status) {
  if (status.ok()) return 0;
  if (status.kind() != Kind::not_found && status.sys_errno() != EXDEV) complain(path, status.sentence());
  return errno = status.to_errno(), -1;
}

// What this process has open of the file at `path`; null where it has not.
std::shared_ptr<OpenFile> opened_here(const std::string& path) {
  catalog::LocateOptions options;
  options.ignore_edits = true;
  auto located = catalog::locate(path, settings(), options);
  return located ? OpenFile::find(located->manifest.file_id) : nullptr;
}

// A file that is open here keeps its content until it is closed.
Status remove_file(const std::string& path) {
  if (auto file = opened_here(path)) return file->unlink();
  return catalog::remove(path, settings());
}

// Kind::not_found from the catalog: what looked protected is a sidecar or stub that leads nowhere; then the entry
// alone is meant.
template <class Native>
int unlink_this(int directory, const char* path, Native native) {
  if (inside > 0 || !path || !is_protected(directory, path, false)) return native();
  const OurCode ours_now;
  const std::string full = full_path(directory, path);
  const Status status = remove_file(full);
  return status.kind() == Kind::not_found ? native() : answer(full, status);
}

// A directory goes where nothing is left in it to be seen.
template <class Native>
int remove_directory(int directory, const char* path, Native native) {
  const int result = native();
  if (result == 0 || inside > 0 || (errno != ENOTEMPTY && errno != EEXIST)) return result;
  const int error = errno;
  const OurCode ours_now;
  const std::string full = catalog::absolute_path(full_path(directory, path));
  OpenFile::leave_directory(full);
  if (!catalog::remove_leftovers(full, settings()).ok()) return errno = error, -1;
  return native();
}

// The same file by both names: nothing is to be done.
bool same_name(const std::string& a, const std::string& b) { return catalog::absolute_path(a) == catalog::absolute_path(b); }

bool is_there(int directory, const char* path) {
  struct stat state;
  return holdfast::raw::fstatat(directory, path, &state, AT_SYMLINK_NOFOLLOW) == 0;
}

template <class Native>
int rename_this(int from_directory, const char* from, int to_directory, const char* to, unsigned flags, Native native) {
  if (inside > 0 || !from || !to) return native();
  const bool from_ours = is_protected(from_directory, from, false), to_ours = is_protected(to_directory, to, false);
  if (!from_ours && !(flags & ~unsigned(RENAME_NOREPLACE)) && becomes_protected(from_directory, from, to_directory, to, to_ours)) {
    if ((flags & RENAME_NOREPLACE) && (to_ours || is_there(to_directory, to))) return errno = EEXIST, -1;
    if (const int done = rename_protected(from_directory, from, to_directory, to, to_ours); done <= 0) return done;
  }
  if (!from_ours && !to_ours) return remove_directory(to_directory, to, native);  // what a directory takes the place of shows nothing
  const OurCode ours_now;
  const std::string full_from = full_path(from_directory, from), full_to = full_path(to_directory, to);
  if (flags & ~unsigned(RENAME_NOREPLACE)) return errno = EINVAL, -1;
  if ((flags & RENAME_NOREPLACE) && (to_ours || catalog::look(full_to, false))) return errno = EEXIST, -1;
  if (!from_ours && !catalog::look(full_from, false)) return errno = ENOENT, -1;
  if (from_ours && same_name(full_from, full_to)) return 0;
  if (to_ours) {
    auto file = opened_here(full_to);
    const Status status = file ? file->unlink() : from_ours ? Status() : catalog::remove(full_to, settings());
    if (!status.ok() && status.kind() != Kind::not_found) return answer(full_to, status);
  }
  if (!from_ours) return native();  // a plain file takes the place of a protected one
  auto file = opened_here(full_from);
  const Status status = file ? file->rename(full_to) : catalog::rename(full_from, full_to, settings());
  return status.kind() == Kind::not_found ? native() : answer(full_from, status);
}

Status set_size(const std::string& path, uint64_t bytes) {
  auto located = catalog::locate(path, settings());
  if (!located) return located.status();
  auto file = OpenFile::open(std::move(*located), {.writes = true}, settings());
  if (!file) return file.status();
  const Status cut = (*file)->set_size(bytes), closed = (*file)->leave(true);
  return cut.ok() ? closed : cut;
}

// A plain file that this process has open with buffers before it.
std::shared_ptr<OpenFile> buffered_here(const char* path) {
  struct stat state;
  if (!OpenFile::any_plain() || holdfast::raw::fstatat(AT_FDCWD, path, &state, 0) != 0) return nullptr;
  return OpenFile::find(OpenFile::plain_id(state.st_dev, state.st_ino));
}

template <class Native>
int truncate_this(const char* path, off_t bytes, Native native) {
  if (inside > 0 || !path || bytes < 0) return native();
  if (const std::string instead = path_instead(path); !instead.empty()) return truncate(instead.c_str(), bytes);  // by the door
  if (auto file = buffered_here(path)) {
    const OurCode ours_now;
    return answer(path, file->set_size(uint64_t(bytes)));
  }
  if (!is_protected(AT_FDCWD, path)) return native();
  if (!is_allowed(AT_FDCWD, path, W_OK)) return -1;
  const OurCode ours_now;
  return answer(path, set_size(path, uint64_t(bytes)));
}

template <class Native>
int unlink_any(int directory, const char* path, Native native) {
  return observed_name(Counter::unlinks, directory, path, [=] { return unlink_this(directory, path, native); });
}

template <class Native>
int rename_any(int from_directory, const char* from, int to_directory, const char* to, unsigned flags, Native native) {
  return observed_name(Counter::renames, from_directory, from, [=] { return rename_this(from_directory, from, to_directory, to, flags, native); });
}

template <class Native>
int truncate_any(const char* path, off_t bytes, Native native) {
  return observed_name(Counter::resizes, AT_FDCWD, path, [=] { return truncate_this(path, bytes, native); });
}

}  // namespace

HF_DOOR int unlink(const char* path) noexcept {
  return unlink_any(AT_FDCWD, path, [=] { return real().unlink(path); });
}
HF_DOOR int unlinkat(int directory, const char* path, int flags) noexcept {
  const auto native = [=] { return real().unlinkat(directory, path, flags); };
  return flags & AT_REMOVEDIR ? remove_directory(directory, path, native) : unlink_any(directory, path, native);
}
HF_DOOR int remove(const char* path) noexcept {
  return unlink_any(AT_FDCWD, path, [=] { return remove_directory(AT_FDCWD, path, [=] { return real().remove(path); }); });
}
HF_DOOR int rmdir(const char* path) noexcept {
  return remove_directory(AT_FDCWD, path, [=] { return real().rmdir(path); });
}

HF_DOOR int rename(const char* from, const char* to) noexcept {
  return rename_any(AT_FDCWD, from, AT_FDCWD, to, 0, [=] { return real().rename(from, to); });
}
HF_DOOR int renameat(int from_directory, const char* from, int to_directory, const char* to) noexcept {
  return rename_any(from_directory, from, to_directory, to, 0, [=] { return real().renameat(from_directory, from, to_directory, to); });
}
HF_DOOR int renameat2(int from_directory, const char* from, int to_directory, const char* to, unsigned flags) noexcept {
  return rename_any(from_directory, from, to_directory, to, flags, [=] { return real().renameat2(from_directory, from, to_directory, to, flags); });
}

HF_DOOR int truncate(const char* path, off_t bytes) noexcept {
  return truncate_any(path, bytes, [=] { return real().truncate(path, bytes); });
}
HF_DOOR int truncate64(const char* path, off64_t bytes) noexcept {
  return truncate_any(path, bytes, [=] { return real().truncate64(path, bytes); });
}
