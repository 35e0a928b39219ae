// What waits for targets and locks reads.
#pragma once
#include <cstdint>
#include <string>

namespace holdfast {

struct WaitingSettings {
  uint64_t deadline_ms = 10000;                // of one call to a target
  int patience = 10;                           // deadlines that calls are waited for while more targets are late than may be lost
  std::string locks = "auto";                  // auto, kernel or names; one for the process
  uint64_t lock_patience_ms = 10 * 60 * 1000;  // how long a file's lock is waited for
};

}  // namespace holdfast
