// Calls that fail on files which each replica of a redundant job has for itself. That may be one node's disk, full or broken. What comes of a call is the
// same in all replicas: who fails alone is ended (redundant/membership/own_failures).
#pragma once
#include <cerrno>
#include <cstdint>

namespace holdfast::intercept::posix {

// Errors that come of storage, not of the call.
inline bool may_be_alone(int error) {
  return error == ENOSPC || error == EDQUOT || error == EIO || error == EROFS || error == ESTALE || error == ENOTCONN || error == EREMOTEIO;
}

// Of a native call that has failed (`answer` -1, and errno), or was cut short: everybody's answer, and errno. The same as it is where this process is no
// replica, or the descriptor is of no regular file. `kind`: a Counter; `place`: where the call begins; negative: the descriptor's position. A checkpoint that
// could not be written is noted as such.
int64_t failure_of_all(int fd, int kind, int64_t place, int64_t answer);
// The same of a call on a name.
int failure_of_all(int directory, const char* path, int kind, int answer);

}  // namespace holdfast::intercept::posix
