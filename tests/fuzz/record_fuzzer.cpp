// libFuzzer: any bytes as the record of a row.
#include "fuzz/targets.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  holdfast::fuzz::record_slot({reinterpret_cast<const std::byte*>(data), size});
  return 0;
}
