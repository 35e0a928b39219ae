#include "target/name.hpp"

namespace holdfast::target {

namespace {
constexpr size_t kLongestComponentBytes = 255;  // NAME_MAX of every file system that matters
constexpr size_t kLongestNameBytes = 4000;      // below PATH_MAX, so that the kernel's refusal is never met half-way
}  // namespace

Status check_name(std::string_view name) {
  auto refuse = [&](const char* why) { return Status(Kind::invalid, "the object name '" + std::string(name.substr(0, 300)) + "' " + why); };
  if (name.empty()) return refuse("is empty");
  if (name.size() > kLongestNameBytes) return refuse("is too long");
  if (name.find('\0') != std::string_view::npos) return refuse("holds a zero byte");
  for (size_t begin = 0; begin <= name.size();) {
    size_t end = std::min(name.find('/', begin), name.size());
    std::string_view component = name.substr(begin, end - begin);
    if (component.empty()) return refuse("has an empty component");
    if (component == "." || component == "..") return refuse("would lead out of its target");
    if (component.size() > kLongestComponentBytes) return refuse("has a component longer than 255 bytes");
    if (component.starts_with(kTemporaryPrefix)) return refuse("is reserved");
    begin = end + 1;
  }
  return {};
}

std::pair<std::string, std::string> split_name(const std::string& name) {
  size_t slash = name.rfind('/');
  if (slash == std::string::npos) return {"", name};
  return {name.substr(0, slash), name.substr(slash + 1)};
}

}  // namespace holdfast::target
