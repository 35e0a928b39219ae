#include "catalog/lock_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>

#include <fmt/format.h>

#include "base/raw_syscalls.hpp"
#include "catalog/environment.hpp"
#include "catalog/hidden_names.hpp"
#include "catalog/sidecar.hpp"
#include "catalog/user_files.hpp"

namespace holdfast::catalog {

namespace {

constexpr char lock_name[] = "locks";

std::string locks_beside(const std::string& path, const std::string& file_id) { return fmt::format("{}/{}", parent_of(path), locks_name(file_id)); }

bool is_same(int descriptor, const std::string& there_at, const std::string& path) {
  const auto held = look_at(descriptor, path);
  const auto there = look(there_at, false);
  return held && there && held->device == there->device && held->inode == there->inode;
}

}  // namespace

Result<int> open_lock_file(const std::string& path) {
  const std::string sidecar = sidecar_of(path);
  auto opened = Sidecar::open(sidecar);
  if (opened.status().kind() == Kind::invalid) return Status(Kind::invalid, opened.status().sentence(), ENOLCK);
  auto file = opened ? opened->open_file(lock_name, O_RDWR | O_CREAT) : Result<Descriptor>(opened.status());
  if (opened && (file.status().sys_errno() == EACCES || file.status().sys_errno() == EROFS)) file = opened->open_file(lock_name, O_RDONLY);
  if (file) {
    raw::fcntl(file->get(), F_SETFL, raw::fcntl(file->get(), F_GETFL) & ~O_NONBLOCK);
    return file->release();
  }
  if (file.status().kind() == Kind::invalid) return Status(Kind::invalid, file.status().sentence(), ENOLCK);
  return Status(Kind::io, sidecar + "/" + lock_name + " cannot be opened, so the file cannot be locked; give the program the right to write there",
                ENOLCK);
}

bool is_lock_file(int descriptor, const std::string& path) { return is_same(descriptor, sidecar_of(path) + "/" + lock_name, path); }

// All who may write there may lock it: the file itself has permissions of its own, and nothing is in this one.
Result<int> open_lock_file_of_growing(const std::string& path, const std::string& file_id) {
  constexpr mode_t of_all = 0666;
  const std::string at = locks_beside(path, file_id);
  Descriptor file(environment().openat(AT_FDCWD, at.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, of_all));
  if (!file && (errno == EACCES || errno == EROFS))
    file = Descriptor(environment().openat(AT_FDCWD, at.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW, 0));
  if (file) return file.release();
  return Status(Kind::io, at + " cannot be opened, so the file cannot be locked; give the program the right to write there", ENOLCK);
}

bool is_lock_file_of_growing(int descriptor, const std::string& path, const std::string& file_id) {
  return is_same(descriptor, locks_beside(path, file_id), path);
}

void remove_lock_file_of_growing(const std::string& path, const std::string& file_id) { (void)unlink_file(locks_beside(path, file_id)); }

}  // namespace holdfast::catalog
