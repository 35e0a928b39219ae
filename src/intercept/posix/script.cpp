#include "intercept/posix/script.hpp"

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "catalog/catalog.hpp"
#include "intercept/posix/descriptors.hpp"
#include "intercept/posix/paths.hpp"
#include "intercept/posix/settings.hpp"

namespace holdfast::intercept::posix {

namespace {

constexpr size_t first_line_bytes = 255;  // as the kernel
constexpr std::string_view blanks = " \t";

// The file's first bytes.
std::string beginning_of(const char* path) {
  auto located = catalog::locate(full_path(AT_FDCWD, path), settings());
  auto file = located ? OpenFile::open(std::move(*located), {}, settings()) : Result<std::shared_ptr<OpenFile>>(located.status());
  if (!file) return {};
  std::string bytes(first_line_bytes, '\0');
  const iovec all{bytes.data(), bytes.size()};
  const auto got = (*file)->read(0, {&all, 1});
  (void)(*file)->leave(false);
  bytes.resize(got ? *got : 0);
  return bytes;
}

std::string_view trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(blanks);
  return begin == text.npos ? std::string_view() : text.substr(begin, text.find_last_not_of(blanks) - begin + 1);
}

// The interpreter and, where the line has any, its one argument. Nothing where it is no script.
std::vector<std::string> interpreter_of(std::string_view beginning) {
  if (!beginning.starts_with("#!")) return {};
  const std::string_view line = trimmed(beginning.substr(2, beginning.find('\n') - 2));
  const size_t end = line.find_first_of(blanks);
  if (line.empty()) return {};
  std::vector<std::string> words{std::string(line.substr(0, end))};
  if (end != line.npos) words.emplace_back(trimmed(line.substr(end)));
  return words;
}

}  // namespace

InterpreterWords::InterpreterWords(const char* path, char* const* words) {
  // A child of vfork must not touch its parent's files.
  if (inside > 0 || !of_this_process() || !path || !is_protected(AT_FDCWD, path)) return;
  {
    const KeepErrno keep;
    const OurCode ours_now;
    interpreter_ = interpreter_of(beginning_of(path));
  }
  for (std::string& word : interpreter_) all_.push_back(word.data());
  all_.push_back(const_cast<char*>(path));
  for (char* const* word = words && *words ? words + 1 : words; word && *word; ++word) all_.push_back(*word);
  all_.push_back(nullptr);
}

void become_interpreter(const char* path, char* const* words, char* const* environment) {
  if (const InterpreterWords in_its_place(path, words); in_its_place) (void)real().execve(in_its_place.path(), in_its_place.words(), environment);
}

}  // namespace holdfast::intercept::posix
