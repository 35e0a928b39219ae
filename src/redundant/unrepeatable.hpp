// Calls whose answer depends on which of several ranks came first, and is not decided. Where replicas differ later on, the first of them is named.
#pragma once
#include <atomic>
#include <string>

namespace holdfast::redundant {

inline std::atomic<const char*> first_unrepeatable{nullptr};

// `call` outlives the process's use of it.
inline void note_unrepeatable(const char* call) {
  const char* none = nullptr;
  if (!first_unrepeatable.load(std::memory_order_relaxed)) [[unlikely]]
    first_unrepeatable.compare_exchange_strong(none, call);
}
// The end of a line; empty where there was none.
inline std::string said_of_unrepeatable() {
  const char* const call = first_unrepeatable.load();
  return call ? "; this rank has used " + std::string(call) + ", whose order among ranks replicas cannot repeat" : "";
}

}  // namespace holdfast::redundant
