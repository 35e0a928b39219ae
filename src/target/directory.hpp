// A directory as a target: the only place where data of targets is read and written with system calls.
//
// Opened once, held by descriptor: what is mounted over its path later, or put in its place, is never touched.
#pragma once
#include <sys/types.h>

#include <memory>
#include <optional>
#include <string>

#include "target/target.hpp"

namespace holdfast::target {

// What the file system is asked for when an object is made.
struct StripeRule {
  std::string name;  // of the object; empty: every other one
  StripeWish wish;
};

struct DirectoryOptions {
  // Permission bits of new objects; directories get the execute bits that belong to them. Unset: 0666 and 0777.
  // The program's umask applies to both.
  std::optional<mode_t> mode;
  std::vector<StripeRule> stripes = {};  // the first whose name fits counts; none: the file system chooses
  // A directory of the user's own, known by no marker: wherever it is moved to, it is the same one.
  bool may_be_renamed = false;
  // A small object that who opens the directory reads at once: where each call costs a wait, it comes with the opening.
  std::string read_first = {};
  // So long an agent is waited for that is being started again, in processes of a job (docs/agents.md).
  uint64_t agent_patience_ms = 0;
  // For tests: do as on a kernel without openat2 (before 5.6), and on a file system without OFD locks.
  bool without_openat2 = false;
  bool without_ofd_locks = false;
};

// `path` may be relative to the working directory of now, and may go through symbolic links (names below it may not).
// Kind::not_found, Kind::access ... with the path in the sentence where it cannot be opened.
Result<std::shared_ptr<Target>> open_directory(const std::string& path, const DirectoryOptions& options = {});

}  // namespace holdfast::target
