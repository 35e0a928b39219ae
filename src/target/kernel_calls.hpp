// Calls of the kernel on what lies in a directory target.
#pragma once
#include <cerrno>
#include <string>

#include "base/status.hpp"

namespace holdfast::target {

// The kernel may stop any call for a signal; none of ours changes its meaning by being made again.
template <class Call>
auto restarted(Call call) {
  for (;;) {
    auto result = call();
    if (result != -1 || errno != EINTR) return result;
  }
}

inline Status failure(const std::string& what) { return Status::from_errno(errno, what); }

// The file system has no locks of that kind at all.
inline bool has_no_locks(int reason) { return reason == EINVAL || reason == ENOSYS || reason == EOPNOTSUPP || reason == ENOLCK; }

}  // namespace holdfast::target
