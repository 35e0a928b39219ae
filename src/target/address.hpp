// Where a target is: "/mnt/a", a directory of this machine, or "n3:/mnt/a", a directory that the agent of node n3 serves.
#pragma once
#include <optional>
#include <string>

#include "target/directory.hpp"

namespace holdfast::target {

struct Address {
  std::string node;  // empty: this machine, without an agent
  std::string path;  // absolute where there is a node
};
// A node's name has letters, digits, '.', '_' and '-' and stands before ":/". All else is a path.
Address parse_address(const std::string& text);
inline bool is_by_agent(const std::string& text) { return !parse_address(text).node.empty(); }

// The one way to a target. Options are the directory's; an agent gives new objects its own permissions.
Result<std::shared_ptr<Target>> open(const std::string& address, const DirectoryOptions& options = {});

}  // namespace holdfast::target
