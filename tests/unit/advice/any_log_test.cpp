// Logs of any kind: what holds for all advice.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>

#include "advice/advice.hpp"
#include "advice/text.hpp"
#include "base/config.hpp"
#include "unit/advice/jobs.hpp"

namespace holdfast::advice {
namespace {

Deed any_deed() {
  using rc::gen::inRange;
  Deed deed;
  deed.write = *rc::gen::arbitrary<bool>();
  deed.calls = uint64_t(1) << *inRange(0, 24);
  deed.bytes_each = *rc::gen::element<uint64_t>(0, 1, 40, 512, 4088, 4096, 100000, 1 << 20, 32 << 20);
  deed.seconds = double(*inRange(0, 2000000)) / 1e3;
  deed.collective = *rc::gen::arbitrary<bool>();
  deed.stride = *rc::gen::element<int64_t>(0, 0, 4096, 1 << 20, 64 << 20, -512);
  deed.misaligned = double(*inRange(0, 2));
  deed.opens = uint64_t(*inRange(0, 1000));
  deed.opening = double(*inRange(0, 1000)) / 100;
  return deed;
}

Log any_log() {
  using rc::gen::inRange;
  JobOf job(uint32_t(*inRange(0, 40)), double(*inRange(0, 3000)));
  job.nodes(*inRange(0, 5));
  const int deeds = *inRange(0, 30);
  for (int i = 0; i < deeds; ++i) {
    const std::string path =
        *rc::gen::element<std::string>("/d/f", "/d/out.1", "/d/out.2", "/d/out.333", "/d/a b:c[1]*", "<STDOUT>", "(other files)", "/d/x.log", "");
    const auto interface = *rc::gen::element(Interface::mpiio, Interface::posix, Interface::stdio);
    job.does(*inRange(-1, 40), path, any_deed(), interface);
    FileUse& use = job.file(path, interface);
    if (*inRange(0, 4) == 0) use.scheme = "rs:4+2", use.total[Counter::read_modify_writes] = uint64_t(*inRange(0, 1000));
    if (*inRange(0, 6) == 0) use.ranks.clear();
  }
  return job.log;
}

Site any_site() {
  Site site;
  const std::string kind = *rc::gen::element<std::string>("", "lustre", "ceph", "tmpfs", "nfs");
  site.add("/d", {kind, uint32_t(*rc::gen::inRange(0, 5)), *rc::gen::element<uint64_t>(0, 4096, 1 << 20), uint32_t(*rc::gen::inRange(0, 9)),
                  uint32_t(*rc::gen::inRange(0, 3))});
  return site;
}

RC_GTEST_PROP(AnyLog, advice_is_worth_its_limits_sorted_and_has_words_and_numbers, ()) {
  const Log log = any_log();
  const Limits limits;
  const Report report = advise(log, any_site(), limits);
  double before = HUGE_VAL;
  for (const Advice& a : report.advice) {
    RC_ASSERT(std::isfinite(a.seconds_now) && std::isfinite(a.seconds_after) && a.seconds_after >= 0);
    RC_ASSERT(a.saved() >= limits.least_seconds && a.saved() >= limits.least_share * report.job_seconds && a.factor() >= limits.least_factor);
    RC_ASSERT(a.saved() <= before);
    before = a.saved();
    RC_ASSERT(!a.name.empty() && !a.evidence.empty() && !a.change.empty() && !a.expectation.empty());
    for (const std::string* text : {&a.evidence, &a.change, &a.expectation})
      RC_ASSERT(text->find("nan") == std::string::npos && text->find("inf ") == std::string::npos);
    for (const Setting& s : a.settings) RC_ASSERT(!s.values.empty() && (s.list || s.values.size() == 1));
  }
  RC_ASSERT(report.io_seconds <= report.job_seconds + 1e-9);
}

RC_GTEST_PROP(AnyLog, settings_are_such_as_the_configuration_takes, ()) {
  for (const Setting& setting : settings_of(advise(any_log(), any_site()))) {
    Settings settings;
    for (const std::string& value : setting.values) {
      const Status taken = settings.apply_option(setting.key, value);
      if (!taken) RC_FAIL(setting.key + " = " + value + ": " + taken.sentence());
    }
  }
}

RC_GTEST_PROP(AnyLog, a_glob_over_numbers_matches_what_it_was_made_from, ()) {
  const auto path = "/" + *rc::gen::container<std::string>(rc::gen::elementOf(std::string("ab/1290:*?[]\\ -.")));
  RC_ASSERT(glob_matches(glob_over_numbers(path), path));
  RC_ASSERT(glob_matches(glob_of(path), path));
  RC_ASSERT(glob_over_paths({path}) == glob_of(path));
}

TEST(AnyLog, a_glob_over_paths_leaves_the_numbers_that_they_share) {
  EXPECT_EQ(glob_over_paths({"/run7/out.0000.dat", "/run7/out.0001.dat", "/run7/out.12.dat"}), "/run7/out.*.dat");
  EXPECT_EQ(glob_over_paths({"/s1/p10/q3", "/s1/p11/q3", "/s1/p12/q4"}), "/s1/p*/q*");
  EXPECT_EQ(glob_over_paths({"/a[1]:2x", "/a[2]:2x"}), "/a\\[*]?2x");
}

}  // namespace
}  // namespace holdfast::advice
