// A small process beside the job: started by a rank, but no child of it, so that the job never waits for one that it does not know.
#pragma once
#include <string>
#include <vector>

#include "base/raw_syscalls.hpp"
#include "base/status.hpp"

namespace holdfast::service {

// The first thing that a program of ours does. Where it was started with one of 0 to 2 closed, nothing of its own gets that number. Calls on it fail as
// before (EBADF), and so they do in what it starts, where the number is closed again.
void hold_standard_numbers();

constexpr int first_helper_descriptor = 3;  // in the helper's process; 0 to 2 are /dev/null

// Starts `executable` in a session of its own with no environment. It gets `descriptors` as 3, 4, ..., and has to fork and end at
// once (live_apart), which is waited for.
Status start_helper(const std::string& executable, const std::vector<std::string>& arguments, const std::vector<int>& descriptors);

// The same for one that is told what to do by its descriptor 3, and says a line there once it has begun.
struct Begun {
  raw::Fd control;   // has an end of file once the helper has closed its end
  std::string said;  // empty: it ended without a word
};
Result<Begun> start_with_orders(const std::string& executable, const std::string& orders);

// In the helper: goes on in a child that nobody has to wait for.
void live_apart();

// As many as the system lets it have. Not for a process that starts programs: they would get the limit, too.
void use_all_descriptors();

// NAME beside the folder that our own library lies in: libexec/holdfast/NAME. Empty where the library's place is not known.
std::string helper_program(const std::string& name);
// Whether it is one of these.
bool is_helper(const std::string& path);

}  // namespace holdfast::service
