#include "file/plain_origin.hpp"

#include <fmt/format.h>

#include "base/own_numbers.hpp"
#include "layers/plain/plain_file.hpp"

namespace holdfast::file {

namespace {

constexpr std::string_view prefix = "plain-";

}  // namespace

bool allows(int fd, int access) {
  const int has = raw::fcntl(fd, F_GETFL) & O_ACCMODE;
  return has == O_RDWR || has == access;
}

std::string PlainOrigin::id_of(uint64_t device, uint64_t inode) { return fmt::format("{}{:x}-{:x}", prefix, device, inode); }

bool PlainOrigin::is_id(const std::string& id) { return id.starts_with(prefix); }

bool PlainOrigin::allows(int access) const { return native_ && file::allows(native_.get(), access); }

void PlainOrigin::hand_over(bool yes) const {
  if (native_) (void)raw::fcntl(native_.get(), F_SETFD, yes ? 0 : FD_CLOEXEC);
}

bool PlainOrigin::is_this(int fd) const {
  struct stat state {};
  return raw::fstat(fd, &state) == 0 && S_ISREG(state.st_mode) && id_of(state.st_dev, state.st_ino) == id_;
}

// The descriptor that the process before an exec had of the file.
raw::Fd PlainOrigin::handed_over() const {
  constexpr int most = 1024;
  const int begin = raw::own_numbers_begin();
  for (int fd = begin; fd < begin + most; ++fd) {
    if (raw::is_own(unsigned(fd)) || !is_this(fd)) continue;
    (void)raw::fcntl(fd, F_SETFD, FD_CLOEXEC);
    return raw::Fd(fd);
  }
  return {};
}

Status PlainOrigin::find_after_exec(Writing writing) {
  raw::Fd found = handed_over();
  if (!found || (writing.now && !file::allows(found.get(), O_WRONLY))) {
    const bool holds = inherited_ >= 0 && is_this(inherited_);
    found = layers::open_again(holds ? fmt::format("/proc/self/fd/{}", inherited_) : path_, writing.now || writing.later);
  }
  if (!found) return Status::from_errno(errno, path_);
  if (!is_this(found.get()))
    return Status(Kind::stale, path_ + ": another file has taken its place while it was open; close it and open it again", ESTALE);
  native_ = std::move(found);
  return Status();
}

Result<Bottom> PlainOrigin::reach(Writing writing) {
  if (!native_ || (writing.now && !allows(O_WRONLY))) HF_TRY(find_after_exec(writing));
  Bottom bottom;
  bottom.name = path_;
  bottom.descriptor = native_.get();
  bottom.file = layers::plain_file(native_.get(), path_);
  bottom.reads = allows(O_RDONLY);
  bottom.writes = allows(O_WRONLY);
  return bottom;
}

Result<raw::Fd> PlainOrigin::lock_descriptor(int inherited) {
  if (inherited >= 0 && is_this(inherited)) return raw::Fd(inherited);
  raw::Fd own = layers::open_again(fmt::format("/proc/self/fd/{}", native_.get()), allows(O_WRONLY));
  if (!own) return Status::from_errno(errno, path_);
  return own;
}

}  // namespace holdfast::file
