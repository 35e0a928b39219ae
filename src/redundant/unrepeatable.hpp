// Calls whose answer depends on which of several ranks, or threads, came first, and is not decided. Where replicas differ later on, the first of them is named.
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
// What threads of this rank did at once. False: it is known already that some did.
inline std::atomic<const char*> race_of_threads{nullptr};
inline bool note_race_of_threads(const char* what) {
  const char* none = nullptr;
  return race_of_threads.compare_exchange_strong(none, what);
}
// The end of a line; empty where there was none.
inline std::string said_of_unrepeatable() {
  const char *const call = first_unrepeatable.load(), *const race = race_of_threads.load();
  return (call ? "; this rank has used " + std::string(call) + ", whose order among ranks replicas cannot repeat" : "") +
         (race ? "; " + std::string(race) + ", whose order replicas cannot repeat" : "");
}

}  // namespace holdfast::redundant
