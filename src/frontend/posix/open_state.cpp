#include "frontend/posix/open_state.hpp"

#include <fcntl.h>

#include <cerrno>
#include <cstring>

namespace holdfast::frontend::posix {

bool OpenState::fill(uint32_t open_flags, std::string_view id, std::string_view at_path) {
  if (id.size() >= sizeof file_id || at_path.size() >= sizeof path) return false;
  access = open_flags & O_ACCMODE;
  // Those that concern the open alone are not kept.
  flags = open_flags & ~uint32_t(O_ACCMODE | O_CREAT | O_EXCL | O_TRUNC | O_NOCTTY | O_CLOEXEC | O_NOFOLLOW);
  std::memcpy(file_id, id.data(), id.size());
  std::memcpy(path, at_path.data(), at_path.size());
  pthread_mutexattr_t shared;
  pthread_mutexattr_init(&shared);
  pthread_mutexattr_setpshared(&shared, PTHREAD_PROCESS_SHARED);
  pthread_mutexattr_setrobust(&shared, PTHREAD_MUTEX_ROBUST);
  pthread_mutex_init(&turn, &shared);
  pthread_mutexattr_destroy(&shared);
  std::memcpy(line, open_state_line.data(), open_state_line.size());
  return true;
}

bool OpenState::valid() const { return std::memcmp(line, open_state_line.data(), open_state_line.size()) == 0; }

PositionHeld::PositionHeld(OpenState& state) : state_(state) {
  // A holder that was killed leaves a position that is one of before or after its call: both make sense.
  if (pthread_mutex_lock(&state.turn) == EOWNERDEAD) pthread_mutex_consistent(&state.turn);
}

}  // namespace holdfast::frontend::posix
