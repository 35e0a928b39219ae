// Several openers of one file, against the model of what each may read: see openers_world.hpp.
//
//   SIM_SEED=17 SIM_SCHEDULES=1 build/bin/sim_test --gtest_filter='Openers*'    replays one schedule
//   SIM_ONLY=several,tools                                                       leaves out what is not named
#include <gtest/gtest.h>

#include "sim/openers_world.hpp"

namespace holdfast::sim {
namespace {

uint64_t number_from(const char* name, uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text ? std::strtoull(text, nullptr, 10) : otherwise;
}

TEST(Openers, of_one_file_read_what_was_written) {
  const uint64_t count = number_from("SIM_SCHEDULES", 200), most_failures = number_from("SIM_FAILURES", 1);
  const Features features = Features::from(std::getenv("SIM_ONLY"));
  Coverage coverage;
  uint64_t failures = 0, turns = 0;
  for (uint64_t seed = first_seed(); seed < first_seed() + count && failures < most_failures; ++seed) {
    OpenersWorld world(seed, features);
    const std::string failure = world.run();
    turns += world.turns();
    coverage.add(world.coverage());
    if (failure.empty()) continue;
    ++failures;
    ADD_FAILURE() << failure << "\nReplay: SIM_SEED=" << seed << " SIM_SCHEDULES=1 build/bin/sim_test --gtest_filter='Openers*'\n"
                  << (most_failures > 1 ? "" : "The last operations:\n" + world.last_operations());
  }
  std::printf("%llu turns\n", (unsigned long long)turns);
  for (size_t i = 0; i < seen_names.size(); ++i) std::printf("%10llu %s\n", (unsigned long long)coverage.counts[i], seen_names[i]);
}

}  // namespace
}  // namespace holdfast::sim
