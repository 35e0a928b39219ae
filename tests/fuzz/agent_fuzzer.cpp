// libFuzzer: any bytes that come to an agent after the greeting.
#include "fuzz/agent_target.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  holdfast::fuzz::agent_frames({reinterpret_cast<const std::byte*>(data), size});
  return 0;
}
