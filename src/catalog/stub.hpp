// The stub: the readable text that stands at the user's path where no plain file or whole copy can. It is enough by
// itself to find the file again, wherever it was moved or copied to.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "base/status.hpp"
#include "layout/manifest.hpp"

namespace holdfast::catalog {

inline constexpr std::string_view stub_line = "HOLDFAST-STUB 1\n";
inline constexpr size_t max_stub_bytes = 4096;
inline constexpr int stub_format = 1;

struct Stub {
  std::string file_id;
  std::string set_id;     // empty for a single directory
  std::string directory;  // on each target; empty for a single directory
  std::string path;       // where Holdfast put it
  std::vector<std::string> targets;  // as many of the members' paths as there was room for
  size_t appended = 0;  // bytes behind it, that somebody has written who took it for the file
};

std::string encode_stub(const layout::Manifest& manifest);
// Kind::not_found: not a stub at all. Kind::corrupt: one that was cut or edited. Kind::version.
Result<Stub> decode_stub(std::string_view text);

}  // namespace holdfast::catalog
