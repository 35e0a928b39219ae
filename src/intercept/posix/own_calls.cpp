// A program that loads this library and yet comes through none of its doors, since it makes its system calls itself. It is told at its start,
// by rank 0 in a job.
#include "base/config.hpp"
#include "catalog/executable.hpp"
#include "catalog/user_files.hpp"
#include "intercept/posix/paths.hpp"
#include "intercept/posix/real.hpp"
#include "intercept/posix/settings.hpp"

namespace holdfast::intercept::posix {

namespace {

// After standard error may have been gathered.
__attribute__((constructor(104))) void own_calls_at_load() {
  const OurCode ours_now;
  if (!settings().protects() || !catalog::makes_own_calls("/proc/self/exe")) return;
  const std::string rank = rank_of_environment();
  if (!rank.empty() && rank != "0") return;
  const auto program = catalog::read_link("/proc/self/exe");
  complain(program ? *program : "this program",
           "is a Go program, which Holdfast cannot serve: it reads and would overwrite the notes that stand for protected files; "
           "give it plain files (holdfast export, holdfast import)");
}

}  // namespace

}  // namespace holdfast::intercept::posix
