#include "target/address.hpp"

#include <algorithm>
#include <cctype>

#include "target/agent_registry.hpp"

namespace holdfast::target {

Address parse_address(const std::string& text) {
  const size_t colon = text.find(':');
  const auto in_name = [](unsigned char c) { return std::isalnum(c) || c == '.' || c == '_' || c == '-'; };
  if (colon == 0 || colon == std::string::npos || text.compare(colon, 2, ":/") != 0) return {"", text};
  if (!std::all_of(text.begin(), text.begin() + std::ptrdiff_t(colon), in_name)) return {"", text};
  return {text.substr(0, colon), text.substr(colon + 1)};
}

Result<std::shared_ptr<Target>> open(const std::string& address, const DirectoryOptions& options) {
  const Address parsed = parse_address(address);
  return parsed.node.empty() ? open_directory(address, options) : open_by_agent(parsed.node, parsed.path, address);
}

}  // namespace holdfast::target
