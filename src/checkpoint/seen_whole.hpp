// A checkpoint that was whole, as who saw it remembers it. Where all the nodes of one are lost those that are left know nothing of it.
#pragma once
#include <optional>
#include <set>
#include <string>

#include "checkpoint/choice.hpp"
#include "checkpoint/survey.hpp"

namespace holdfast::checkpoint {

struct SeenWhole {
  layout::Attempt attempt;
  uint64_t step = 0;
  size_t files = 0;
  Age age;
  std::set<std::string> nodes;  // by name
  bool may_be_dropped = true;   // by a user meanwhile; not what an attempt has begun with
  bool are_singles = false;     // files that are protected one by one, all of the run
  std::set<std::string> paths;  // of these
};
// Of two of one run the later one counts, and of files that are protected one by one the last look. One that is not whole for good yet may go with fewer nodes than its scheme bears: it is not remembered.
void see(std::optional<SeenWhole>& last, const Checkpoint& now);
void see(std::optional<SeenWhole>& last, const SeenWhole& now);
// What an attempt begins with counts in any case: a node that was late to answer may have the rest. Its nodes are all that its versions name.
SeenWhole begun_with(const Checkpoint& now, const std::vector<catalog::FoundVersion>& versions);

// Whether not all of it can be seen any more, and nothing that is as new can be gone on from. Of files that are protected one by one: whether none is.
bool has_gone(const SeenWhole& one, const Survey& survey, const std::string& run);
// Those of its nodes that do not answer, by name; where all answer, all of them.
std::set<std::string> nodes_that_would_help(const SeenWhole& one, const Survey& survey);

// By the program, in that attempt: a file of it.
bool was_removed(const SeenWhole& one, const Survey& survey, const layout::Attempt& attempt);

}  // namespace holdfast::checkpoint
