#include "file/coordinated/alike.hpp"

#include <limits.h>
#include <unistd.h>

#include <string_view>
#include <utility>

#include "base/find_number.hpp"

namespace holdfast::file {

namespace {

// A directory of a batch system has the number of its job in its name. Replicas begin in the same one.
char beginning[PATH_MAX] = "";

}  // namespace

void program_asks_for_its_number() {
  if (program_has_its_number.load(std::memory_order_relaxed)) return;
  if (!::getcwd(beginning, sizeof beginning)) beginning[0] = '\0';  // of all that a handler of a signal may do
  program_has_its_number.store(true, std::memory_order_release);
}

std::string named_alike(const redundant::Replica& replica, std::string path) { return named_alike(replica.process_numbers(), std::move(path)); }

std::string named_alike(const redundant::Replica::ProcessNumbers& numbers, std::string path) {
  if (numbers.own == numbers.first || !tells_a_process(numbers.own)) return path;
  const std::string own = std::to_string(numbers.own), first = std::to_string(numbers.first);
  const std::string_view here = beginning;
  const bool begins_here = !here.empty() && path.starts_with(here) && path.substr(here.size(), 1) == "/";
  size_t at = begins_here ? here.size() : 0;
  while ((at = find_number(path, own, at)) != std::string::npos) path.replace(at, own.size(), first), at += first.size();
  return path;
}

}  // namespace holdfast::file
