#include "base/say.hpp"

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <string>

namespace holdfast {

namespace {

std::atomic<int> first_error{0};  // of standard output

void remember(int error) {
  int none = 0;
  first_error.compare_exchange_strong(none, error);
}

}  // namespace

void say_text(fmt::string_view format, fmt::format_args arguments) {
  const std::string text = fmt::vformat(format, arguments);
  (void)std::fwrite(text.data(), 1, text.size(), stderr);
}

void show_text(fmt::string_view format, fmt::format_args arguments) {
  const std::string text = fmt::vformat(format, arguments);
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size()) remember(errno);
}

Status shown() {
  if (std::fflush(stdout) != 0) remember(errno);
  if (std::ferror(stdout)) remember(EIO);  // of what the parser of options has written itself
  const int error = first_error;
  return error ? Status::from_errno(error, "standard output cannot be written") : Status();
}

}  // namespace holdfast
