// Of a file that ranks of several nodes may write, one after another: whether another node has it now. docs/decisions/0041
#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/config.hpp"
#include "base/status.hpp"
#include "catalog/versions.hpp"
#include "checkpoint/local.hpp"
#include "checkpoint/run.hpp"

namespace holdfast::checkpoint {

struct Elsewhere {
  std::string writing;     // a node where a program has it open; empty: none
  bool is_coming = false;  // some node has closed it, and it is neither protected yet nor removed
};
// Of all nodes of the attempt that answer, but `own`.
Elsewhere look_elsewhere(const std::string& file, const std::string& own, const Run& run, const Settings& settings);
// What those nodes have of it in these states, in whose order one goes from one to the next: what moves on meanwhile is found.
struct FoundElsewhere {
  std::string address;
  LocalFile file;
};
std::vector<FoundElsewhere> files_elsewhere(const std::string& file, const std::vector<State>& states, const std::string& own, const Run& run,
                                            const Settings& settings);
// What they say was removed in this attempt, or of one file: by path, as it was then.
std::map<std::string, LocalName> removed_elsewhere(const std::optional<std::string>& file, const std::string& own, const Run& run,
                                                   const Settings& settings);
// Whether another node has that version too, or a later one, or has it open to write. Behind the close of who may not have seen it.
Status check_not_overtaken(const LocalName& name, const std::string& own, const Run& run, const Settings& settings, catalog::VersionList& versions);
Status refuse_beside(const std::string& node, const std::string& file);
Status refuse_coming(const std::string& node, const std::string& file);
// What those nodes have closed, not protected yet, and not removed.
std::vector<FoundElsewhere> closed_elsewhere(const std::string& own, const Run& run, const Settings& settings);
// The newest of them of one file, if its number is above `known`. `address`: of that node alone, or of all.
struct Coming {
  std::string address;
  uint32_t number = 0;
  bool is_worked_on = false;  // that node's protector has taken it, or another file
};
std::optional<Coming> coming_elsewhere(const std::string& file, uint32_t known, const std::string& address, const std::string& own, const Run& run,
                                       const Settings& settings);

}  // namespace holdfast::checkpoint
