// From a job's log to what could be done better. Pure: the same log and site give the same report.
#pragma once
#include <string>
#include <vector>

#include "advice/site.hpp"
#include "profile/log.hpp"

namespace holdfast::advice {

// A line of holdfast.toml. `values` are a list's elements where `list` says so, else one value.
struct Setting {
  std::string key;
  std::vector<std::string> values;
  bool list = false;
  bool operator==(const Setting&) const = default;
};

struct Advice {
  std::string name;                // stable, for machines: "small-accesses"
  std::vector<std::string> files;  // paths, or globs where many are meant
  uint64_t file_count = 0;
  std::string evidence;     // what the program does, with the log's numbers
  std::string change;       // what to do
  std::string expectation;  // how the gain was reckoned
  double seconds_now = 0;   // of the job's time that goes into what would change
  double seconds_after = 0;
  std::vector<Setting> settings;      // what Holdfast can do about it
  std::vector<std::string> commands;  // what only the user can

  double saved() const { return seconds_now - seconds_after; }
  double factor() const { return seconds_after > 0 ? seconds_now / seconds_after : seconds_now > 0 ? 1e9 : 1; }
};

// What a program does, without judgement.
struct Pattern {
  std::string name;  // "spokesperson", "file-per-process", "single-shared-file", "several-shared-files", "one-process"
  std::string files;
  std::string words;
};

// Below all of these nothing is advised: a good program hears that there is nothing to change.
struct Limits {
  double least_share = 0.02;  // of the job's time
  double least_seconds = 0.05;
  double least_factor = 1.15;  // on the time that changes
};

struct Report {
  double job_seconds = 0;
  double io_seconds = 0;  // in calls on files, of the process that spent most there
  std::vector<Pattern> patterns;
  std::vector<Advice> advice;     // most seconds saved first
  std::vector<std::string> asks;  // what would have to be known to say more
  size_t too_small = 0;           // pieces of advice whose gain is below the limits
};

Report advise(const profile::Log& log, const Site& site, const Limits& limits = {});

// The settings of all of a report's advice as one configuration: of a key that several name, the value of the one that saves most; lists
// are joined.
std::vector<Setting> settings_of(const Report& report);

}  // namespace holdfast::advice
