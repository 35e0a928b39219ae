#include <algorithm>

#include "advice/advice.hpp"
#include "advice/recognisers.hpp"

namespace holdfast::advice {

namespace {

constexpr Recogniser recognisers[] = {
#define HF_REGISTER(name) recognise_##name,
    HF_RECOGNISERS(HF_REGISTER)
#undef HF_REGISTER
};

bool worth_saying(const Advice& advice, const Report& report, const Limits& limits) {
  return advice.saved() >= limits.least_seconds && advice.saved() >= limits.least_share * report.job_seconds &&
         advice.factor() >= limits.least_factor;
}

}  // namespace

Report advise(const profile::Log& log, const Site& site, const Limits& limits) {
  const Digest seen = digest(log, site);
  const Model model(seen);
  Report report;
  report.job_seconds = seen.job_seconds;
  report.io_seconds = seen.io_seconds;
  find_patterns(seen, report);
  for (const Recogniser recognise : recognisers) recognise(seen, model, report);
  const auto end =
      std::stable_partition(report.advice.begin(), report.advice.end(), [&](const Advice& a) { return worth_saying(a, report, limits); });
  report.too_small = size_t(report.advice.end() - end);
  report.advice.erase(end, report.advice.end());
  std::stable_sort(report.advice.begin(), report.advice.end(), [](const Advice& a, const Advice& b) { return a.saved() > b.saved(); });
  return report;
}

std::vector<Setting> settings_of(const Report& report) {
  std::vector<Setting> all;
  for (const Advice& advice : report.advice) {
    for (const Setting& setting : advice.settings) {
      const auto there = std::find_if(all.begin(), all.end(), [&](const Setting& s) { return s.key == setting.key; });
      if (there == all.end()) all.push_back(setting);
      else if (setting.list)
        for (const std::string& value : setting.values)
          if (std::find(there->values.begin(), there->values.end(), value) == there->values.end()) there->values.push_back(value);
    }
  }
  return all;
}

}  // namespace holdfast::advice
