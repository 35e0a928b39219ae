// Replicas that do not run the same are found when they join.
#include "redundant/membership/likeness.hpp"

#include <gtest/gtest.h>

#include <sstream>

namespace holdfast::redundant {
namespace {

About about(const std::string& lines) {
  About made;
  std::istringstream text(lines);
  for (std::string line; std::getline(text, line);) made.take(line);
  return made;
}

std::string of(const std::string& program, const std::string& content) {
  return line_of_program(program, content) + line_of_holdfast("1.0") + line_of_processor("A processor: 2 GHz");
}

TEST(Likeness, the_same_is_not_spoken_of) {
  Likeness likeness;
  for (int team = 0; team < 3; ++team) {
    const auto found = likeness.joined(team, 0, about(of("/a/app", "12") + line_of_library("libm.so.6", "34")));
    EXPECT_EQ(found.refusal + found.warning, "");
  }
}

TEST(Likeness, ranks_of_a_job_may_run_several_programs) {
  Likeness likeness;
  EXPECT_EQ(likeness.joined(0, 0, about(of("/a/app", "12"))).refusal, "");
  EXPECT_EQ(likeness.joined(0, 1, about(of("/a/other", "13"))).refusal, "");
  EXPECT_EQ(likeness.joined(1, 1, about(of("/a/other", "13"))).refusal, "");
}

TEST(Likeness, another_program_is_refused) {
  Likeness likeness;
  (void)likeness.joined(1, 0, about(of("/a/app", "12")));
  EXPECT_EQ(likeness.joined(0, 0, about(of("/b/app", "13"))).refusal, "runs another program than team 1: /b/app, and /a/app there");
  EXPECT_EQ(likeness.joined(2, 0, about(of("/a/app", "13"))).refusal, "runs another program than team 1: /a/app has another content there");
  EXPECT_EQ(likeness.joined(2, 0, about(of("/link/app", "12"))).refusal, "") << "the same by another path";
}

TEST(Likeness, another_version_is_refused) {
  Likeness likeness;
  (void)likeness.joined(0, 0, about(of("/a/app", "12")));
  EXPECT_EQ(likeness.joined(1, 0, about(line_of_program("/a/app", "12") + line_of_holdfast("1.1"))).refusal,
            "runs Holdfast 1.1, and team 0 runs 1.0");
}

TEST(Likeness, libraries_and_processors_are_warned_of_once) {
  Likeness likeness;
  (void)likeness.joined(0, 0, about(of("/a/app", "12") + line_of_library("libm.so.6", "34") + line_of_library("libc.so.6", "1")));
  const About other = about(line_of_program("/a/app", "12") + line_of_holdfast("1.0") + line_of_processor("Another") +
                            line_of_library("libm.so.6", "35") + line_of_library("libz.so.1", "9"));
  EXPECT_EQ(likeness.joined(1, 0, other).warning.substr(0, 39), "team 1 has another libm.so.6 than team ");
  EXPECT_EQ(likeness.joined(2, 0, other).warning.substr(0, 55), "team 2 runs on another processor (Another) than team 0 ");
  EXPECT_EQ(likeness.joined(3, 0, other).warning, "");
}

}  // namespace
}  // namespace holdfast::redundant
