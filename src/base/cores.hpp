// The processors that this process may use, and how they are dealt out to jobs side by side.
#pragma once
#include <optional>
#include <string>
#include <vector>

namespace holdfast {

// Several processors (threads) of one core share its parts.
struct Processor {
  int number = 0, package = 0, core = 0;
  auto operator<=>(const Processor&) const = default;
};
std::vector<Processor> processors_here();

// Whole cores, neighbours, as many to each. Nothing where a part would have fewer cores than `least`.
std::optional<std::vector<std::vector<int>>> deal_cores(std::vector<Processor> all, int parts, int least);
// Sorted numbers as "0-3,8".
std::string text_of_processors(const std::vector<int>& numbers);

}  // namespace holdfast
