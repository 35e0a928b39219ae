#include "base/cores.hpp"

#include <sched.h>

#include <algorithm>
#include <cstdlib>
#include <tuple>

#include <fmt/format.h>

#include "base/process_facts.hpp"

namespace holdfast {

namespace {

int topology(int processor, const char* what) {
  const std::string text = small_file(fmt::format("/sys/devices/system/cpu/cpu{}/topology/{}", processor, what));
  return text.empty() ? -1 : std::atoi(text.c_str());
}

}  // namespace

std::vector<Processor> processors_here() {
  std::vector<Processor> all;
  cpu_set_t allowed;
  if (::sched_getaffinity(0, sizeof allowed, &allowed) != 0) return all;
  for (int number = 0; number < CPU_SETSIZE; ++number) {
    if (!CPU_ISSET(number, &allowed)) continue;
    const int core = topology(number, "core_id");
    all.push_back({number, topology(number, "physical_package_id"), core < 0 ? number : core});
  }
  return all;
}

std::optional<std::vector<std::vector<int>>> deal_cores(std::vector<Processor> all, int parts, int least) {
  const auto place = [](const Processor& one) { return std::tuple(one.package, one.core, one.number); };
  std::sort(all.begin(), all.end(), [&](const Processor& one, const Processor& other) { return place(one) < place(other); });
  std::vector<std::vector<int>> cores;
  for (size_t at = 0; at < all.size(); ++at) {
    const bool is_next = at == 0 || all[at].package != all[at - 1].package || all[at].core != all[at - 1].core;
    if (is_next) cores.emplace_back();
    cores.back().push_back(all[at].number);
  }
  const size_t each = cores.size() / size_t(parts);
  if (each == 0 || each < size_t(least)) return std::nullopt;
  std::vector<std::vector<int>> dealt(static_cast<size_t>(parts));
  for (size_t at = 0; at < each * size_t(parts); ++at) {
    std::vector<int>& part = dealt[at / each];
    part.insert(part.end(), cores[at].begin(), cores[at].end());
  }
  for (std::vector<int>& part : dealt) std::sort(part.begin(), part.end());
  return dealt;
}

std::string text_of_processors(const std::vector<int>& numbers) {
  std::string text;
  for (size_t from = 0, to = 0; from < numbers.size(); from = to) {
    for (to = from + 1; to < numbers.size() && numbers[to] == numbers[to - 1] + 1;) ++to;
    text += fmt::format("{}{}", text.empty() ? "" : ",", numbers[from]);
    if (to - from > 1) text += fmt::format("-{}", numbers[to - 1]);
  }
  return text;
}

}  // namespace holdfast
