#include "cli/log/settings_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <climits>
#include <cstdlib>

#include "base/config.hpp"
#include "base/config_file.hpp"
#include "catalog/user_files.hpp"

namespace holdfast::cli {

namespace {

using advice::Setting;

// A basic string of TOML.
std::string toml_string(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += std::string("\\") + c;
    else if ((unsigned char)c < 0x20 || c == 0x7f) out += fmt::format("\\u{:04x}", (unsigned char)c);
    else out += c;
  }
  return out + "\"";
}

std::string line_of(const Setting& setting) {
  std::vector<std::string> values;
  for (const std::string& value : setting.values) values.push_back(toml_string(value));
  if (!setting.list) return fmt::format("{} = {}", setting.key, values[0]);
  return fmt::format("{} = [{}]", setting.key, fmt::join(values, ", "));
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    lines.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return lines;
}

const ConfigEntry* entry_of(const std::vector<ConfigEntry>& entries, const std::string& key) {
  const auto found = std::find_if(entries.begin(), entries.end(), [&](const ConfigEntry& e) { return e.key == key; });
  return found == entries.end() ? nullptr : &*found;
}

bool protects(const std::vector<ConfigEntry>& entries) {
  const ConfigEntry* protect = entry_of(entries, "protect");
  return (protect && !protect->values.empty() && protect->values[0] != "none") || entry_of(entries, "replication_factor");
}

// Which files are protected, and which are buffered, the same globs say.
void keep_protection(const std::string& path, const std::vector<ConfigEntry>& entries, std::vector<Setting>& settings, Written& written) {
  const auto globs = std::find_if(settings.begin(), settings.end(), [](const Setting& s) { return s.key == "path"; });
  if (globs == settings.end() || !protects(entries)) return;
  const ConfigEntry* there = entry_of(entries, "path");
  const bool covered = there && std::all_of(globs->values.begin(), globs->values.end(), [&](const std::string& wanted) {
                         return std::any_of(there->values.begin(), there->values.end(),
                                            [&](const std::string& glob) { return glob == wanted || glob_matches(glob, wanted); });
                       });
  if (covered) return;
  written.left_out.push_back(
      fmt::format("{} protects files, and the globs for buffers ({}) would change which; if these files may be protected too, add the "
                  "globs to path by hand, or name another FILE",
                  path, fmt::join(globs->values, ", ")));
  std::erase_if(settings, [](const Setting& s) { return s.key == "path" || s.key == "buffer"; });
}

// The new line in the place of the entry's old ones; what stands behind the value (a comment) stays.
void replace_entry(std::vector<std::string>& lines, const ConfigEntry& entry, const std::string& line) {
  const size_t first = entry.first_line - 1, last = entry.last_line - 1;
  if (last >= lines.size()) return;
  const std::string rest = entry.end_column <= lines[last].size() ? lines[last].substr(entry.end_column - 1) : "";
  lines[first] = line + rest;
  for (size_t i = first + 1; i <= last; ++i) lines[i] = '\0';  // taken out at the end: the others' numbers stay
}

std::string text_of(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines)
    if (line != std::string(1, '\0')) text += line + "\n";
  return text;
}

std::string through_links(const std::string& path) {
  char real[PATH_MAX];
  return ::realpath(path.c_str(), real) ? real : path;
}

}  // namespace

Result<Written> write_settings(const std::string& path, const std::vector<Setting>& wanted) {
  constexpr uint64_t most_bytes = 1 << 20;
  constexpr uint32_t fresh_mode = 0644;
  const std::string file = through_links(path);
  const auto state = catalog::look(file, true);
  std::vector<ConfigEntry> entries;
  std::string text;
  if (state) {
    auto parsed = read_config_file(file);
    if (!parsed) return parsed.status();
    auto read = catalog::read_small(file, most_bytes);
    if (!read) return read.status();
    entries = std::move(*parsed), text = std::move(*read);
  } else if (state.status().kind() != Kind::not_found) {
    return state.status();
  }
  Written written;
  std::vector<Setting> settings = wanted;
  keep_protection(path, entries, settings, written);
  std::vector<std::string> lines = lines_of(text);
  for (Setting& setting : settings) {
    const ConfigEntry* there = entry_of(entries, setting.key);
    if (there && setting.list) {
      std::vector<std::string> joined = there->values;
      for (const std::string& value : setting.values)
        if (std::find(joined.begin(), joined.end(), value) == joined.end()) joined.push_back(value);
      setting.values = std::move(joined);
    }
    written.lines.push_back(line_of(setting));
    if (there) replace_entry(lines, *there, written.lines.back());
    else lines.push_back(written.lines.back());
  }
  if (written.lines.empty()) return written;
  HF_TRY(catalog::replace_file(file, file + ".new", text_of(lines), state ? state->mode & 07777 : fresh_mode, false));
  return written;
}

}  // namespace holdfast::cli
