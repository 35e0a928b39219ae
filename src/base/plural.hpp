// The form of a noun that goes with a count, the same in all that Holdfast says.
#pragma once
#include <cstdint>
#include <string>

namespace holdfast {

// "rank" for 1, "ranks" for 0 and 2; "process", "processes".
inline std::string noun_for(uint64_t count, std::string noun) {
  if (count == 1) return noun;
  return noun += noun.ends_with('s') ? "es" : "s";
}

}  // namespace holdfast
