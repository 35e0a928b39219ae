// --gather-output: when a rank is loaded, before the program's first line.
#include "base/config.hpp"
#include "intercept/posix/paths.hpp"
#include "intercept/posix/real.hpp"
#include "intercept/posix/settings.hpp"
#include "service/helper_process.hpp"
#include "service/output_gatherer.hpp"

namespace holdfast::intercept::posix {

namespace {

// Launchers are preloaded too: only what one of them started has a rank. A program that a rank starts writes into its pipes.
__attribute__((constructor(102))) void output_at_load() {
  if (environment_variable("HOLDFAST_GATHER_OUTPUT").empty()) return;
  std::string rank = rank_of_environment();
  if (rank.empty()) rank = environment_variable("HOLDFAST_RANK");  // from `holdfast run`, for a serial program
  if (rank.empty()) return;
  const OurCode ours_now;
  const std::string file = settings().gather_output;
  forget_environment_variable("HOLDFAST_GATHER_OUTPUT");
  const Status gathering = service::gather_output(service::helper_program("gather-output"), file, "rank " + rank);
  if (!gathering.ok()) complain("--gather-output", gathering.sentence() + "; the output of rank " + rank + " stays where it would be without");
}

}  // namespace

}  // namespace holdfast::intercept::posix
