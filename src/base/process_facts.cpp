#include "base/process_facts.hpp"

#include <fcntl.h>

#include <charconv>
#include <string_view>

#include <fmt/format.h>

#include "base/directory_entries.hpp"
#include "base/raw_syscalls.hpp"

namespace holdfast {

namespace {

// Its fields behind the name, which stands in parentheses and may hold anything.
enum Field : int { state_field = 0, parent_field = 1, threads_field = 17, began_field = 19 };

template <class Number>
bool read_number(std::string_view text, Number& into) {
  return std::from_chars(text.data(), text.data() + text.size(), into).ec == std::errc();
}

}  // namespace

std::string small_file(const std::string& path) {
  raw::Fd file(raw::openat(AT_FDCWD, path.c_str(), O_RDONLY | O_CLOEXEC));
  char buffer[4096];
  const ssize_t got = file ? raw::read(file.get(), buffer, sizeof buffer) : -1;
  return got > 0 ? std::string(buffer, size_t(got)) : std::string();
}

std::vector<int> numbers_in(const std::string& path) {
  std::vector<int> found;
  const raw::Fd directory(raw::openat(AT_FDCWD, path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  alignas(8) char entries[4096];
  for (ssize_t bytes; directory && (bytes = raw::getdents64(directory.get(), entries, sizeof entries)) > 0;)
    each_name_in(entries, bytes, [&](std::string_view name) {
      if (int number = 0; read_number(name, number)) found.push_back(number);
    });
  return found;
}

bool proc_is_ours() {
  char number[24];
  const ssize_t length = raw::readlinkat(AT_FDCWD, "/proc/self", number, sizeof number);
  return length > 0 && std::string_view(number, size_t(length)) == std::to_string(getpid());
}

std::optional<ProcessFacts> process_facts(int process) {
  const std::string stat = small_file(fmt::format("/proc/{}/stat", process));
  const size_t after_name = stat.rfind(')');
  if (after_name == std::string::npos) return std::nullopt;
  ProcessFacts facts;
  uint64_t threads = 0;
  bool is_known = false;
  int field = state_field;
  for (size_t at = after_name + 2; at < stat.size() && field <= began_field; ++field) {
    const std::string_view value = std::string_view(stat).substr(at, stat.find(' ', at) - at);
    if (field == state_field) facts.is_over = value == "Z" || value == "X";
    if (field == parent_field) read_number(value, facts.parent);
    if (field == threads_field) read_number(value, threads);
    if (field == began_field) is_known = read_number(value, facts.began_ticks);
    at += value.size() + 1;
  }
  facts.is_over &= threads <= 1;  // else its first thread alone has ended
  return is_known ? std::optional(facts) : std::nullopt;
}

}  // namespace holdfast
