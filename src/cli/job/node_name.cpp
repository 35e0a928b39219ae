#include "cli/job/node_name.hpp"

#include <fmt/format.h>

#include <cstdlib>

#include "base/host_name.hpp"
#include "base/node_path.hpp"
#include "checkpoint/run.hpp"

namespace holdfast::cli {

Status name_this_node(const std::string& name) {
  if (name.empty()) return {};
  if (!names_a_node(name + ":/"))
    return Status(Kind::invalid, fmt::format("--node-name is '{}': allowed are letters, digits, '.', '_' and '-'", name));
  ::setenv(checkpoint::node_variable, fmt::format("{} {}", host_name(), name).c_str(), 1);
  return {};
}

}  // namespace holdfast::cli
