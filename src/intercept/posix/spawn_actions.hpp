// What posix_spawn's file actions open in the child, by system calls of the C library that nobody stands before.
#pragma once
#include <spawn.h>

#include <vector>

#include "base/raw_syscalls.hpp"

namespace holdfast::intercept::posix {

// The actions with the protected files among them opened here already: the child gets their descriptors instead. What is open here for
// that is closed again with the object.
class SpawnActions {
 public:
  // Null where the program gave none.
  explicit SpawnActions(const posix_spawn_file_actions_t* given);
  ~SpawnActions();
  SpawnActions(const SpawnActions&) = delete;
  SpawnActions& operator=(const SpawnActions&) = delete;

  // For the C library's own posix_spawn.
  const posix_spawn_file_actions_t* get() const { return changed_ ? &copy_ : given_; }
  // Why a file could not be opened, as posix_spawn returns it.
  int error() const { return error_; }
  bool gives_any() const { return changed_; }

 private:
  struct Action;
  void open_protected_files();
  bool open_instead(int directory, Action& action);

  const posix_spawn_file_actions_t* const given_;
  posix_spawn_file_actions_t copy_{};
  std::vector<Action> actions_;
  std::vector<int> opened_;   // as the program's own
  std::vector<raw::Fd> own_;  // the same, where no action of the child's reaches
  bool changed_ = false;
  int error_ = 0;
};

}  // namespace holdfast::intercept::posix
