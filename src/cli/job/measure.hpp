// holdfast run --measure: the same command twice in turn, without and with what advice sets.
#pragma once
#include <string>
#include <vector>

#include "base/config.hpp"

namespace holdfast::cli {

struct Measure {
  std::vector<std::string> command;
  std::string library;  // as given, or empty
  std::string log;      // --log; empty: named after this run
  bool json = false;    // one line at the end of standard output, in the place of sentences on standard error
};

// The exit code: the second run's, or the first's where that failed.
int measure(const Settings& settings, const Measure& what);

}  // namespace holdfast::cli
