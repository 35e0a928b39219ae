#include "target/address.hpp"

#include "base/node_path.hpp"
#include "target/agent_registry.hpp"

namespace holdfast::target {

Result<std::shared_ptr<Target>> open(const std::string& address, const DirectoryOptions& options) {
  const NodePath parsed = parse_node_path(address);
  return parsed.node.empty() ? open_directory(address, options) : open_by_agent(parsed.node, parsed.path, address);
}

}  // namespace holdfast::target
