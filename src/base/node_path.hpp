// "n3:/mnt/a": a path on another node. All else is a path of this one.
#pragma once
#include <algorithm>
#include <string>
#include <string_view>

namespace holdfast {

struct NodePath {
  std::string node;  // empty: this one
  std::string path;  // absolute where there is a node
};

// A node's name has letters, digits, '.', '_' and '-' and stands before ":/".
inline NodePath parse_node_path(std::string_view text) {
  const auto in_name = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '_' || c == '-';
  };
  const size_t colon = text.find(':');
  if (colon == 0 || colon == std::string_view::npos || text.substr(colon, 2) != ":/" || !std::all_of(text.begin(), text.begin() + colon, in_name))
    return {"", std::string(text)};
  return {std::string(text.substr(0, colon)), std::string(text.substr(colon + 1))};
}
// An absolute path without empty and "." components, as a shell's completion and a ./ leave them behind. Links and ".." stay: what they lead to only
// the path's node knows.
inline std::string plain_path(std::string_view path) {
  std::string plain;
  for (size_t at = 0; at < path.size();) {
    const size_t end = std::min(path.find('/', at), path.size());
    const std::string_view component = path.substr(at, end - at);
    if (!component.empty() && component != ".") plain.append("/").append(component);
    at = end + 1;
  }
  return plain.empty() ? "/" : plain;
}
// A directory of another node in one spelling, which is what addresses are compared in. All else stays as it is.
inline std::string plain_address(const std::string& address) {
  const NodePath parsed = parse_node_path(address);
  return parsed.node.empty() ? address : parsed.node + ":" + plain_path(parsed.path);
}
// What is lost with it: a node, or a directory of this machine.
inline std::string node_of(const std::string& address) {
  const NodePath parsed = parse_node_path(address);
  return parsed.node.empty() ? address : parsed.node;
}
inline bool names_a_node(std::string_view text) { return !parse_node_path(text).node.empty(); }

}  // namespace holdfast
