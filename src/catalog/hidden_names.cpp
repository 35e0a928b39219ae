#include "catalog/hidden_names.hpp"

#include <dirent.h>
#include <limits.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include <fmt/format.h>

#include "base/raw_syscalls.hpp"
#include "catalog/catalog.hpp"
#include "catalog/entry.hpp"
#include "catalog/sidecar.hpp"
#include "catalog/user_files.hpp"

namespace holdfast::catalog {

namespace {

constexpr std::string_view sidecar_tail = ".holdfast";
constexpr std::string_view removed_head = ".holdfast-removed.";
constexpr std::string_view new_head = ".holdfast-new.";
constexpr std::string_view locks_head = ".holdfast-locks.";

bool is_with_id(std::string_view name, std::string_view head) {
  return name.starts_with(head) && name.size() > head.size() && name.find_first_not_of("0123456789abcdef", head.size()) == std::string_view::npos;
}

bool is_there(int directory, std::string_view name, std::string_view tail = {}) {
  char path[PATH_MAX];
  if (name.size() + tail.size() >= sizeof path) return false;
  *static_cast<char*>(mempcpy(mempcpy(path, name.data(), name.size()), tail.data(), tail.size())) = '\0';
  struct stat state;
  return raw::fstatat(directory, path, &state, AT_SYMLINK_NOFOLLOW) == 0;
}

bool is_own_link_at(int directory, const char* name) {
  char leads_to[PATH_MAX];
  const ssize_t length = raw::readlinkat(directory, name, leads_to, sizeof leads_to);
  return length > 0 && is_own_link({leads_to, size_t(length)});
}

// What a sidecar holds that never got, or no longer has, a manifest.
bool is_of_a_leftover(const std::string& name) { return name == "lock" || name.starts_with("lock.") || name == "locks" || name.starts_with("new."); }

bool is_leftover(int directory, std::string_view sidecar) {
  const raw::Fd opened(raw::openat(directory, std::string(sidecar).c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  const auto names = list_directory(opened.get(), std::string(sidecar));
  return names && std::all_of(names->begin(), names->end(), is_of_a_leftover);
}

bool is_directory_at(int directory, const char* name) {
  struct stat state;
  return raw::fstatat(directory, name, &state, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(state.st_mode);
}

Appearance sidecar_appearance(int directory, std::string_view sidecar, std::string_view file) {
  if (is_removed_name(file)) return Appearance::hidden;
  const bool stands = is_there(directory, file);
  if (is_there(directory, sidecar, "/manifest")) return stands ? Appearance::hidden : Appearance::file_by_sidecar;
  const bool ours = stands ? is_there(directory, sidecar, "/lock") : is_leftover(directory, sidecar);
  return ours ? Appearance::hidden : Appearance::itself;
}

// Whether somebody on this node still reads it.
bool is_held(const std::string& path) {
  const raw::Fd sidecar(raw::openat(AT_FDCWD, sidecar_of(path).c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  return sidecar && raw::flock(sidecar.get(), LOCK_EX | LOCK_NB) != 0;
}

// Its creator holds its lock until the file is there.
bool is_being_made(const std::string& new_sidecar) {
  auto sidecar = Sidecar::open(new_sidecar);
  return sidecar && sidecar->lock("lock").status().kind() == Kind::busy;
}

Status remove_nameless(const std::string& path, const Settings& settings) {
  if (is_held(path)) return Status(Kind::exists, "", ENOTEMPTY);
  const Status removed = remove(path, settings);
  if (removed.kind() != Kind::not_found) return removed;
  HF_TRY(unlink_file(path));
  return Sidecar::remove(sidecar_of(path));
}

// A whole file that was to be moved to its own name from there, by somebody who was killed.
void remove_files_in(const std::string& directory, const Settings& settings) {
  const auto names = list_directory(directory);
  if (!names) return;
  for (const std::string& name : *names) {
    if (const auto file = file_of_sidecar(name)) (void)remove_nameless(directory + "/" + std::string(*file), settings);
    if (is_new_sidecar_name(name)) (void)Sidecar::remove(directory + "/" + name);  // of who died while making a file in there
  }
}

}  // namespace

std::optional<std::string_view> file_of_sidecar(std::string_view name) {
  if (name.size() < sidecar_tail.size() + 2 || name.front() != '.' || !name.ends_with(sidecar_tail)) return std::nullopt;
  return name.substr(1, name.size() - 1 - sidecar_tail.size());
}

std::string removed_name(const std::string& file_id) { return std::string(removed_head) + file_id; }

bool is_removed_name(std::string_view name) { return is_with_id(name, removed_head); }

std::string locks_name(const std::string& file_id) { return std::string(locks_head) + file_id; }

bool is_locks_name(std::string_view name) { return is_with_id(name, locks_head); }

std::string new_sidecar_beside(const std::string& path) {
  const std::string parent = parent_of(path);
  return (parent == "/" ? "" : parent) + "/" + new_sidecar_name();
}

std::string new_sidecar_name() { return std::string(new_head) + layout::random_id(); }

bool is_new_sidecar_name(std::string_view name) { return is_with_id(name, new_head); }

Appearance appearance_of(int directory, const char* name, unsigned char type) {
  const int error = errno;
  Appearance appearance = Appearance::itself;
  const auto is_directory = [&] { return type == DT_DIR || (type == DT_UNKNOWN && is_directory_at(directory, name)); };
  if (is_removed_name(name) || is_locks_name(name) || (is_new_sidecar_name(name) && is_directory())) appearance = Appearance::hidden;
  else if (const auto file = file_of_sidecar(name); file && is_directory()) appearance = sidecar_appearance(directory, name, *file);
  else if (type == DT_LNK && is_own_link_at(directory, name)) appearance = Appearance::file;
  errno = error;
  return appearance;
}

namespace {

template <class Matches>
std::string path_by_sidecar(const std::string& directory, Matches matches) {
  const auto names = list_directory(directory);
  if (!names) return "";
  for (const std::string& name : *names) {
    const auto file = file_of_sidecar(name);
    if (!file) continue;
    const auto manifest = read_sidecar_manifest(directory + "/" + name);
    if (manifest && matches(*manifest)) return directory + "/" + std::string(*file);
  }
  return "";
}

}  // namespace

std::string path_by_id(const std::string& directory, const std::string& file_id) {
  return path_by_sidecar(directory, [&](const layout::Manifest& manifest) { return manifest.file_id == file_id; });
}

std::string path_over_targets(const std::string& directory, const std::vector<std::string>& targets) {
  return path_by_sidecar(directory, [&](const layout::Manifest& manifest) {
    return !manifest.geometry.single_directory && std::any_of(manifest.members.begin(), manifest.members.end(), [&](const auto& member) {
      return std::find(targets.begin(), targets.end(), member.path) != targets.end();
    });
  });
}

void show_change(const std::string& path) {
  if (look_at_entry(path).kind != EntryKind::stub) return;  // a copy has its own
  const timespec times[2] = {{0, UTIME_OMIT}, {0, UTIME_NOW}};
  syscall(SYS_utimensat, AT_FDCWD, path.c_str(), times, 0);
}

int hold_removed(const std::string& path) {
  raw::Fd sidecar(raw::openat(AT_FDCWD, sidecar_of(path).c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!sidecar || raw::flock(sidecar.get(), LOCK_SH | LOCK_NB) != 0) return -1;
  return sidecar.release();
}

Status remove_leftovers(const std::string& path, const Settings& settings) {
  const raw::Fd directory(raw::openat(AT_FDCWD, path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!directory) return Status::from_errno(errno, path);
  auto names = list_directory(path);
  if (!names) return names.status();
  for (const std::string& name : *names)
    if (appearance_of(directory.get(), name.c_str(), DT_UNKNOWN) != Appearance::hidden) return Status(Kind::exists, "", ENOTEMPTY);
  for (const std::string& name : *names) {
    const std::string file(file_of_sidecar(name).value_or(name));
    if (is_new_sidecar_name(name) && is_being_made(path + "/" + name)) return Status(Kind::exists, "", ENOTEMPTY);
    if (is_new_sidecar_name(name)) remove_files_in(path + "/" + name, settings);
    if (is_removed_name(file)) HF_TRY(remove_nameless(path + "/" + file, settings));
    else if (is_locks_name(name)) HF_TRY(unlink_file(path + "/" + name));
    else HF_TRY(Sidecar::remove(path + "/" + name));
  }
  return Status();
}

}  // namespace holdfast::catalog
