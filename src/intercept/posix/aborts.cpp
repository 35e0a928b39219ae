#include "intercept/posix/aborts.hpp"

#include <charconv>
#include <string_view>

#include "base/config.hpp"
#include "frontend/posix/own_code.hpp"
#include "intercept/posix/descriptors.hpp"
#include "redundant/twins/replica.hpp"

namespace holdfast::intercept::posix {

namespace {

bool is_abort(std::string_view text) {
  constexpr size_t length_before = 6;  // PMI-2's: how many bytes follow, in digits
  constexpr std::string_view begins = "cmd=abort";
  return text.starts_with(begins) || (text.size() > length_before && text.substr(length_before).starts_with(begins));
}

__attribute__((constructor)) void at_start() {
  const std::string number = environment_variable("PMI_FD");
  int fd = -1;
  if (std::from_chars(number.data(), number.data() + number.size(), fd).ec == std::errc()) launchers_number = fd;
}

}  // namespace

// What the program had written by plain calls would be in its files without us.
void is_told_to_launcher(const void* text, size_t bytes) {
  if (launchers_number < 0 || !of_this_process() || !is_abort({static_cast<const char*>(text), bytes})) return;
  const frontend::posix::OurCode ours_now;
  (void)let_go_of_all();
  if (auto* const replica = redundant::Replica::now()) replica->leaves(true, 0);  // the launcher says the code
}

}  // namespace holdfast::intercept::posix
