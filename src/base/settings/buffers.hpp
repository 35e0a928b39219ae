// What layers/buffered reads.
#pragma once
#include <cstdint>
#include <string>

namespace holdfast {

struct BufferSettings {
  int buffers = 0;                    // of a POSIX file that a glob names; 0: none
  uint64_t buffer_size = 0;           // bytes of each of them
  std::string buffer_flush = "full";  // full, needed, or a time after which what waits is written
  uint64_t buffer_flush_ms = 0;       // that time; 0: none
};

}  // namespace holdfast
