// A number in a text.
#pragma once
#include <string_view>

namespace holdfast {

// Where it stands by itself, from a place on: not as a part of a larger one. npos: nowhere.
inline size_t find_number(std::string_view text, std::string_view number, size_t from = 0) {
  const auto is_digit = [&](size_t at) { return at < text.size() && text[at] >= '0' && text[at] <= '9'; };
  for (size_t at = text.find(number, from); at != std::string_view::npos; at = text.find(number, at + 1))
    if ((at == 0 || !is_digit(at - 1)) && !is_digit(at + number.size())) return at;
  return std::string_view::npos;
}

// Whether it means the process of that number, in a path. The kernel gives those below 300 once, and none of them when it begins anew. So processes have them
// in a container alone, where such a number is another one more often: a version, a step, a part of a random name.
constexpr bool tells_a_process(int process) { return process >= 300; }

}  // namespace holdfast
