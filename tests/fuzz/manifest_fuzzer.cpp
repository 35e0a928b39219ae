// libFuzzer: `manifest_fuzzer tests/golden/format-1`. The first byte says whether the text is sealed for it.
#include "fuzz/targets.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string text(reinterpret_cast<const char*>(data + 1), size - 1);
  if (data[0] & 1) holdfast::fuzz::sealed_manifest(text);
  else holdfast::fuzz::manifest_text(text);
  return 0;
}
