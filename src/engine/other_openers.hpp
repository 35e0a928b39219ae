// What who reads rows has to know of the file's other openers.
#pragma once
#include <cstdint>

namespace holdfast::engine {

class OtherOpeners {
 public:
  virtual ~OtherOpeners() = default;
  // Rows that others wrote and have not synced read as zeros where they do not verify: old, not damaged.
  virtual bool have_not_synced(uint64_t generation) const = 0;
  // A block fails, and nothing has been reconstructed yet: reads anew what they may have changed. False where nothing can have been.
  virtual bool look_again() = 0;
};

}  // namespace holdfast::engine
