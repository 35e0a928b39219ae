#include "catalog/lock_file.hpp"

#include <sys/stat.h>

#include "base/raw_syscalls.hpp"
#include "catalog/sidecar.hpp"

namespace holdfast::catalog {

namespace {

constexpr char lock_name[] = "locks";

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

bool is_lock_file(int descriptor, const std::string& path) {
  const auto held = look_at(descriptor, path);
  const auto there = look(sidecar_of(path) + "/" + lock_name, false);
  return held && there && held->device == there->device && held->inode == there->inode;
}

}  // namespace holdfast::catalog
