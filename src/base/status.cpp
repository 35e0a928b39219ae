#include "base/status.hpp"

#include <cerrno>
#include <cstring>

namespace holdfast {

namespace {
Kind kind_of_errno(int e) {
  switch (e) {
    case 0: return Kind::ok;
    case ENOENT:
    case ENOTDIR: return Kind::not_found;
    case EEXIST: return Kind::exists;
    case EACCES:
    case EPERM: return Kind::access;
    case ENOSPC:
    case EDQUOT: return Kind::no_space;
    case EROFS: return Kind::read_only;
    case ETIMEDOUT: return Kind::timed_out;
    case EINVAL: return Kind::invalid;
    case EBUSY: return Kind::busy;
    case EOPNOTSUPP: return Kind::unsupported;
    default: return Kind::io;
  }
}
}  // namespace

Status Status::from_errno(int e, const std::string& what) {
  char text[128];
  // The GNU strerror_r returns the message, which need not be in `text`.
  return Status(kind_of_errno(e), what + ": " + strerror_r(e, text, sizeof text), e);
}

int Status::to_errno() const {
  if (errno_) return errno_;
  switch (kind_) {
    case Kind::ok: return 0;
    case Kind::not_found: return ENOENT;
    case Kind::exists: return EEXIST;
    case Kind::access: return EACCES;
    case Kind::no_space: return ENOSPC;
    case Kind::read_only: return EROFS;
    case Kind::timed_out: return ETIMEDOUT;
    case Kind::stale: return ESTALE;
    case Kind::busy: return EBUSY;
    case Kind::invalid: return EINVAL;
    case Kind::unsupported:
    case Kind::version: return EOPNOTSUPP;
    default: return EIO;
  }
}

const char* kind_name(Kind kind) {
  static const char* const names[] = {"ok",   "io",      "not-found", "exists", "access",  "no-space",    "read-only", "timed-out",
                                      "lost", "corrupt", "stale",     "busy",   "invalid", "unsupported", "version",   "internal"};
  return names[static_cast<int>(kind)];
}

}  // namespace holdfast
