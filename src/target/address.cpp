#include "target/address.hpp"

#include <algorithm>

#include "base/config.hpp"
#include "base/node_path.hpp"
#include "target/agent_registry.hpp"
#include "target/lock_owner.hpp"
#include "transport/endpoint.hpp"

namespace holdfast::target {

Result<std::shared_ptr<Target>> open(const std::string& address, const DirectoryOptions& options) {
  const NodePath parsed = parse_node_path(address);
  if (parsed.node.empty()) return open_directory(address, options);
  const uint32_t mode = options.mode.value_or(0666) & ~umask_of_this_process() & 0777;  // the agent's own umask is nobody's
  return open_by_agent(parsed.node, parsed.path, address, mode, options);
}

Result<std::shared_ptr<Target>> open_beside(const std::string& address) {
  const NodePath parsed = parse_node_path(address);
  if (parsed.node.empty()) return open_directory(address);
  return open_beside_by_agent(parsed.node, parsed.path, address, 0600);
}

bool is_unreached(const std::string& address) {
  if (!names_a_node(address)) return false;
  const std::vector<std::string> unreached = unreached_addresses();
  return std::find(unreached.begin(), unreached.end(), address) != unreached.end();
}

std::string ways_to_agent(const std::string& address) {
  const NodePath parsed = parse_node_path(address);
  if (parsed.node.empty()) return "";
  const auto note = read_note(agents_directory(), parsed.node, parsed.path);
  return note.ok() ? transport::ways_to(note->endpoints) : "";
}

}  // namespace holdfast::target
