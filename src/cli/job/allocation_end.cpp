#include "cli/job/allocation_end.hpp"

#include <charconv>
#include <ctime>
#include <string>

#include "base/config.hpp"
#include "cli/job/program.hpp"
#include "cli/job/slurm_step.hpp"

namespace holdfast::cli {

std::optional<AllocationEnd::Clock::time_point> parse_end_time(const std::string& text) {
  std::tm when{};
  if (!::strptime(text.c_str(), "%Y-%m-%dT%H:%M:%S", &when)) return {};
  when.tm_isdst = -1;
  return AllocationEnd::Clock::from_time_t(::mktime(&when));
}

// Newer Slurm says it in the environment, as it was when the job began; squeue as it is now.
void AllocationEnd::ask() {
  asked_ = Clock::now();
  if (is_slurm_job()) {
    const auto said = output_of({"squeue", "--noheader", "--jobs=" + environment_variable("SLURM_JOB_ID"), "--format=%e"});
    if (said && (end_ = parse_end_time(*said))) return;
  }
  const std::string text = environment_variable("SLURM_JOB_END_TIME");
  int64_t seconds = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  if (error == std::errc() && end == text.data() + text.size()) end_ = Clock::from_time_t(seconds);
}

bool AllocationEnd::is_within(std::chrono::seconds lead) {
  constexpr auto again_after = std::chrono::seconds(30), rarely = std::chrono::seconds(600);
  const auto is_near = [&] { return end_ && Clock::now() + lead >= *end_; };
  const auto age = Clock::now() - asked_;
  if (age > rarely || (is_near() && age > again_after)) ask();
  return is_near();
}

}  // namespace holdfast::cli
