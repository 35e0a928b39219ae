// A fact that does not hold ends the fuzzer.
#pragma once
#include <cstdlib>

namespace holdfast::fuzz {

inline void demand(bool fact) {
  if (!fact) std::abort();
}

}  // namespace holdfast::fuzz
