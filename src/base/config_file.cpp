#include "base/config_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#define TOML_EXCEPTIONS 0
#define TOML_HEADER_ONLY 1
#define TOML_ENABLE_FORMATTERS 0
#include <toml++/toml.h>

namespace holdfast {

namespace {

constexpr size_t max_config_bytes = 1 << 20;

// The system calls directly: this code also runs inside a program whose open() and read() are ours, and
// reading our own configuration must not come back to us.
Result<std::string> read_text(const std::string& path) {
  const long fd = ::syscall(SYS_openat, AT_FDCWD, path.c_str(), O_RDONLY | O_CLOEXEC, 0);
  if (fd < 0) return Status::from_errno(errno, fmt::format("the configuration file {} cannot be read", path));
  std::string text;
  char buffer[4096];
  long got = 0;
  while ((got = ::syscall(SYS_read, int(fd), buffer, sizeof buffer)) > 0 && text.size() <= max_config_bytes) text.append(buffer, size_t(got));
  const int error = errno;
  ::syscall(SYS_close, int(fd));
  if (got < 0) return Status::from_errno(error, fmt::format("the configuration file {} cannot be read", path));
  if (text.size() > max_config_bytes) return Status(Kind::invalid, fmt::format("{} is larger than 1 MiB: no configuration file of Holdfast's", path));
  return text;
}

bool scalar_text(const toml::node& node, std::string& out) {
  if (auto s = node.value_exact<std::string>()) return out = *s, true;
  if (auto i = node.value_exact<int64_t>()) return out = fmt::format("{}", *i), true;
  if (auto b = node.value_exact<bool>()) return out = *b ? "true" : "false", true;
  if (auto d = node.value_exact<double>()) return out = fmt::format("{}", *d), true;
  return false;
}

bool entry_values(const toml::node& node, ConfigEntry& entry) {
  const toml::array* array = node.as_array();
  entry.is_list = array != nullptr;
  if (!array) return scalar_text(node, entry.values.emplace_back());
  for (const toml::node& element : *array)
    if (!scalar_text(element, entry.values.emplace_back())) return false;
  return true;
}

}  // namespace

bool config_file_exists(const std::string& path) { return ::syscall(SYS_faccessat, AT_FDCWD, path.c_str(), F_OK) == 0; }

Result<std::vector<ConfigEntry>> read_config_file(const std::string& path) {
  auto text = read_text(path);
  if (!text) return text.status();
  const toml::parse_result parsed = toml::parse(std::string_view(*text), std::string_view(path));
  if (!parsed)
    return Status(Kind::invalid, fmt::format("{} line {} is not TOML: {}", path, parsed.error().source().begin.line, parsed.error().description()));
  std::vector<ConfigEntry> entries;
  for (const auto& [key, node] : parsed.table()) {
    ConfigEntry& entry = entries.emplace_back();
    entry.key = std::string(key.str());
    entry.first_line = node.source().begin.line;
    entry.last_line = node.source().end.line;
    entry.end_column = node.source().end.column;
    if (!entry_values(node, entry))
      return Status(Kind::invalid, fmt::format("{} in {} is a table or a date: write KEY = \"value\"", entry.key, path));
  }
  return entries;
}

}  // namespace holdfast
