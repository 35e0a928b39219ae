// Which start of a run's job has written something.
#pragma once
#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace holdfast::layout {

struct Attempt {
  // A number alone, too: what was written before there were ids.
  Attempt(uint32_t of_number = 1, uint64_t of_id = 0) : number(of_number), id(of_id) {}
  uint32_t number;  // from 1, for people. It is given again where no node that answers knows of one that had it
  uint64_t id;      // begins with the time when it began, and ends with random bits; 0: of before there were ids
  bool operator==(const Attempt&) const = default;
  // As they began.
  std::strong_ordering operator<=>(const Attempt& other) const {
    const auto by_time = id <=> other.id;
    return by_time != std::strong_ordering::equal ? by_time : number <=> other.number;
  }
};

// One word: "3.0199c2a5f4000b17"; "3" where it has no id.
std::string text_of(const Attempt& attempt);
// Nothing for what text_of() does not write.
std::optional<Attempt> parse_attempt(std::string_view text);

// 16 hex digits.
std::string id_text(uint64_t id);
bool is_attempt_id(std::string_view text);

}  // namespace holdfast::layout
