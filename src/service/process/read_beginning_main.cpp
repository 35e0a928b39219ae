// libexec/holdfast/read-beginning FILE BYTES: the file's first bytes, on standard output. For a child of vfork, which must not read a protected
// file in its parent's memory; this process has the library itself.
#include <array>
#include <cstdio>
#include <cstdlib>

#include "service/helper_process.hpp"

int main(int count, char** arguments) {
  holdfast::service::hold_standard_numbers();
  std::array<char, 4096> bytes;
  const size_t wanted = count == 3 ? std::strtoul(arguments[2], nullptr, 10) : 0;
  if (wanted == 0 || wanted > bytes.size()) {
    std::fputs("read-beginning: is started by Holdfast's library, not by hand\n", stderr);
    return 2;
  }
  std::FILE* const file = std::fopen(arguments[1], "rb");
  const size_t got = file ? std::fread(bytes.data(), 1, wanted, file) : 0;
  return got > 0 && std::fwrite(bytes.data(), 1, got, stdout) == got ? 0 : 1;
}
