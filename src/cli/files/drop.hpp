// What `holdfast checkpoints` and `holdfast rm` take from the nodes: a checkpoint by its number, or files that are protected one by one by their path, or a pattern of
// theirs.
#pragma once
#include <set>
#include <string>
#include <vector>

#include "base/config.hpp"
#include "base/status.hpp"
#include "checkpoint/survey.hpp"

namespace holdfast::cli {

bool is_number(const std::string& what);
std::string text_of_meant(const std::string& what);  // in messages
std::string none_is_meant(const std::string& what);
bool names_file(const std::string& what, const std::string& file);
bool is_meant(const layout::Version& version, const std::string& what);

// What is known of one step: its versions, and what lies on nodes beside them. `runs`: whose these are.
struct OfStep {
  std::vector<catalog::FoundVersion> versions;
  std::vector<checkpoint::LocalEntry> local;
  std::set<std::string> runs;
};
OfStep of_step(const checkpoint::Survey& survey, const std::string& what);
// Runs of one program write files of the same paths. A step of several programs is nobody's to name by its number alone.
Status check_is_of_one_program(const OfStep& all, const std::string& what);

// From all nodes that answer, where no job needs it. An exit code; what became of it is said.
int drop(const OfStep& all, const std::string& what, const checkpoint::Survey& survey, const Settings& settings, bool json = false);
// The same of files of checkpoints by the paths at which the program wrote them. A checkpoint goes as a whole: all of its files have to be named.
int drop_named(const std::vector<std::string>& paths, const Settings& settings);

}  // namespace holdfast::cli
