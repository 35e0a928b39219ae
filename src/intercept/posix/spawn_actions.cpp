#include "intercept/posix/spawn_actions.hpp"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>

#include "base/own_numbers.hpp"
#include "intercept/posix/open.hpp"
#include "intercept/posix/paths.hpp"
#include "intercept/posix/real.hpp"

namespace holdfast::intercept::posix {

// As the C library keeps them, behind the names that its header gives. The same since they are there; later ones were added at the end.
struct SpawnActions::Action {
  enum Kind : int { closes, duplicates, opens, changes_directory, changes_to_descriptor, closes_from, sets_group };
  struct Opening {
    int fd;
    char* path;
    int flags;
    mode_t mode;
  };
  Kind kind;
  union {
    int fd;  // of all that have one
    struct {
      int from, to;
    } numbers;
    Opening opening;
    char* directory;
  };
};

namespace {

// Made of known values by the C library that is there, and looked into. What it keeps otherwise is left alone.
template <class Action>
bool is_kept_as_known() {
  constexpr int fd = 77, from = 78, to = 79;
  constexpr mode_t mode = 0640;
  posix_spawn_file_actions_t probe;
  if (posix_spawn_file_actions_init(&probe) != 0) return false;
  bool as_known = posix_spawn_file_actions_addopen(&probe, fd, "probe", O_WRONLY | O_APPEND, mode) == 0 &&
                  posix_spawn_file_actions_adddup2(&probe, from, to) == 0 && probe.__used == 2;
  if (as_known) {
    const auto* actions = reinterpret_cast<const Action*>(probe.__actions);
    const Action &first = actions[0], &second = actions[1];
    as_known = first.kind == Action::opens && first.opening.fd == fd && first.opening.flags == (O_WRONLY | O_APPEND) && first.opening.mode == mode &&
               std::strcmp(first.opening.path, "probe") == 0 && second.kind == Action::duplicates && second.numbers.from == from &&
               second.numbers.to == to;
  }
  posix_spawn_file_actions_destroy(&probe);
  return as_known;
}

}  // namespace

SpawnActions::SpawnActions(const posix_spawn_file_actions_t* given) : given_(given) {
  if (!given || given->__used <= 0 || inside > 0 || !of_this_process()) return;
  static const bool as_known = is_kept_as_known<Action>();
  if (!as_known) return;
  const auto* first = reinterpret_cast<const Action*>(given->__actions);
  actions_.assign(first, first + given->__used);
  open_protected_files();
  copy_ = *given;
  copy_.__actions = reinterpret_cast<decltype(copy_.__actions)>(actions_.data());
}

SpawnActions::~SpawnActions() {
  const KeepErrno keep;
  for (const int fd : opened_) (void)close(fd);
}

// In their order, with the working directory that the child has by then.
void SpawnActions::open_protected_files() {
  raw::Fd directory;
  bool known = true;  // whether `directory`, or else our own, is the child's
  const auto enter = [&](const char* path) {
    raw::Fd next(raw::openat(directory ? directory.get() : AT_FDCWD, path, O_PATH | O_DIRECTORY | O_CLOEXEC));
    known = (known || *path == '/') && next;
    directory = std::move(next);
  };
  std::vector<int> made;  // numbers that are something else in the child than here
  int closed_from = std::numeric_limits<int>::max();
  for (Action& action : actions_) {
    switch (action.kind) {
      case Action::changes_directory: enter(action.directory); break;
      case Action::changes_to_descriptor:
        known = std::find(made.begin(), made.end(), action.fd) == made.end();
        directory.reset(known ? raw::fcntl(action.fd, F_DUPFD_CLOEXEC, 0) : -1);
        known = known && directory;
        break;
      case Action::closes_from: closed_from = std::min(closed_from, action.fd); break;
      case Action::duplicates: made.push_back(action.numbers.to); break;
      case Action::opens:
        made.push_back(action.opening.fd);
        if (known || *action.opening.path == '/') {
          if (!open_instead(directory ? directory.get() : AT_FDCWD, action)) return;
          if (changed_ && action.kind == Action::duplicates && action.numbers.from >= closed_from) {
            complain("posix_spawn", "a protected file that is opened in the child behind addclosefrom_np cannot be: put addopen before it");
            error_ = EOPNOTSUPP;
            return;
          }
        }
        break;
      default: break;
    }
  }
}

// False: it could not be, and the child is not to be started.
bool SpawnActions::open_instead(int directory, Action& action) {
  const Action::Opening opening = action.opening;
  if (!is_for_protection(directory, opening.path, opening.flags)) return true;
  const KeepErrno keep;
  const int fd = openat(directory, opening.path, opening.flags | O_CLOEXEC, opening.mode);
  if (fd < 0) return error_ = errno, false;
  opened_.push_back(fd);
  own_.emplace_back(raw::duplicate_out_of_the_way(fd));
  if (!own_.back()) return error_ = errno, false;
  action.kind = Action::duplicates;
  action.numbers = {own_.back().get(), opening.fd};
  return changed_ = true;
}

}  // namespace holdfast::intercept::posix
