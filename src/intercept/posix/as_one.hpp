// A program's call on a name, made once for all replicas in a redundant job.
#pragma once
#include <string>

#include "base/in_mpi.hpp"
#include "catalog/catalog.hpp"
#include "catalog/user_files.hpp"
#include "file/coordinated/names.hpp"
#include "intercept/posix/descriptor_names.hpp"
#include "intercept/posix/own_failures.hpp"
#include "intercept/posix/paths.hpp"
#include "intercept/posix/real.hpp"
#include "intercept/posix/settings.hpp"
#include "tree/decide.hpp"
#include "tree/mounts.hpp"

namespace holdfast::intercept::posix {

// What lies in the system, is named after this process, or lies on a disk of its node where replicas have nodes of their own.
inline bool is_each_replicas_own(const redundant::Replica& replica, const std::string& full) {
  return tree::is_of_the_system(full) || tree::is_of_this_process(full) ||
         (!replica.shares_node() && tree::sharing_of(full, settings()) == tree::Sharing::node_local);
}

// `native` answers 0, or -1 and errno; `done_before`: what it answers where a leader that was lost had made the call.
template <class Native>
int as_one(file::Call call, int directory, const char* path, const std::string& other, int done_before, Native native) {
  redundant::Replica* const replica = redundant::Replica::now();
  if (!replica || in_mpi_calls > 0 || !path) [[likely]]
    return native();
  const OurCode ours_now;
  const std::string full = catalog::absolute_path(full_path(directory, path));
  if (is_each_replicas_own(*replica, full)) return failure_of_all(directory, path, int(call), native());
  return file::once(*replica, call, full, other, done_before, native);
}

// Of a team that was started again, while it repeats what was done. What no log has, it would do once more over what is there by now. `what` is a
// sentence's end: "it ...".
template <class What>
void refuse_while_behind(What what) {
  redundant::Replica* const replica = redundant::Replica::now();
  if (!replica || in_mpi_calls > 0 || inside > 0) [[likely]]
    return;
  const OurCode ours_now;
  if (replica->is_behind()) replica->cannot_catch_up(what());
}
inline void refuse_a_process_while_behind(const char* command) {
  refuse_while_behind([=] {
    const std::string which = command ? "'" + std::string(command) + "'" : "a process";
    return "it starts " + which + ", and what that writes is not written down";
  });
}

// The second name of a call that has two. Nobody asks without replicas.
inline std::string other_name(int directory, const char* path) {
  if (!redundant::Replica::now() || in_mpi_calls > 0 || !path) [[likely]]
    return "";
  const OurCode ours_now;
  return catalog::absolute_path(full_path(directory, path));
}

}  // namespace holdfast::intercept::posix
