// What the engine reads: what a close promises, what it holds in memory, which state it may serve.
#pragma once
#include <cstdint>

namespace holdfast {

struct EngineSettings {
  bool fast_close = false;
  uint64_t accept_epoch = 0;            // serve this old epoch where nothing newer can be reached
  uint64_t buffer_bytes = 32ull << 20;  // pending partial rows per process and file set
  int cb_nodes = 0;                     // processes that write for the others in a collective call; 0: the default
};

}  // namespace holdfast
