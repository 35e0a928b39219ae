// Which runs with checkpoints live: each holds locks on notes, one for each pattern of its files, that say what its attempt has begun with.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "base/config.hpp"
#include "base/raw_syscalls.hpp"
#include "base/status.hpp"
#include "checkpoint/run.hpp"

namespace holdfast::cli {

// As long as a run lives no other one begins with one of its patterns: each would take the other's plain files for its own. The kernel lets go of it
// with the process, whatever ends it.
class LiveRun {
 public:
  // Kind::busy where another one lives.
  Status begin(const Settings& settings);
  // Told before an attempt chooses what it begins with, and when it has.
  void chooses(const std::string& run) const;
  void began(const checkpoint::Run& run) const;

 private:
  void say(const std::string& text) const;
  std::vector<raw::Fd> notes_;
};

struct Begun {
  std::string run;
  layout::Attempt attempt = 0;  // of the checkpoint; 0: it has begun with none
  uint64_t step = 0;
  layout::Attempt now = 0;  // 0: it has not chosen yet
};
// Those of other processes. One with several patterns comes several times.
std::vector<Begun> live_runs();

}  // namespace holdfast::cli
