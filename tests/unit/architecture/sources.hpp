// The sources of src/ as the tests of this folder read them, and the complaints that rules have about them.
#pragma once
#include <cctype>
#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>
#include <string>
#include <vector>

namespace holdfast::architecture {

struct Source {
  std::string path;  // relative to src/, with '/'
  std::vector<std::string> lines;
  std::string room() const { return path.substr(0, path.find('/')); }
};

inline bool begins(const std::string& text, const std::string& with) { return text.compare(0, with.size(), with) == 0; }

// Text without comments and string contents, line by line.
inline std::vector<std::string> code_of(const std::vector<std::string>& lines) {
  std::vector<std::string> code;
  bool in_comment = false;
  for (const std::string& line : lines) {
    std::string kept;
    char quote = 0;
    for (size_t i = 0; i < line.size(); ++i) {
      if (in_comment) {
        if (line.compare(i, 2, "*/") == 0) in_comment = false, ++i;
      } else if (quote) {
        if (line[i] == '\\') ++i;
        else if (line[i] == quote) quote = 0;
      } else if (line.compare(i, 2, "//") == 0) {
        break;
      } else if (line.compare(i, 2, "/*") == 0) {
        in_comment = true, ++i;
      } else {
        const bool digit_separator = line[i] == '\'' && i > 0 && std::isdigit(static_cast<unsigned char>(line[i - 1]));
        if (line[i] == '"' || (line[i] == '\'' && !digit_separator)) quote = line[i];
        kept += line[i];
      }
    }
    code.push_back(kept);
  }
  return code;
}

class Complaints {
 public:
  void add(const Source& source, size_t line, const std::string& rule) {
    text_ += "src/" + source.path + ":" + std::to_string(line + 1) + ": " + rule + "\n";
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

inline std::vector<Source> all_sources() {
  const std::filesystem::path root = std::filesystem::path(HOLDFAST_SOURCE_DIR) / "src";
  std::vector<Source> sources;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(root)) {
    const std::string extension = entry.path().extension().string();
    if (!entry.is_regular_file() || (extension != ".cpp" && extension != ".hpp" && extension != ".c" && extension != ".h")) continue;
    Source source{std::filesystem::relative(entry.path(), root).generic_string(), {}};
    std::ifstream file(entry.path());
    for (std::string line; std::getline(file, line);) source.lines.push_back(line);
    sources.push_back(std::move(source));
  }
  return sources;
}

using Check = void (*)(const Source&, Complaints&);

inline std::string complaints_of(Check check) {
  Complaints complaints;
  for (const Source& source : all_sources()) check(source, complaints);
  return complaints.text();
}

inline std::string complaints_of(Check check, const std::string& path, const std::string& text) {
  Source source{path, {}};
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) source.lines.push_back(line);
  Complaints complaints;
  check(source, complaints);
  return complaints.text();
}

}  // namespace holdfast::architecture
