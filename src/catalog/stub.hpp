// The stub: the readable text that stands at the user's path where no plain file or whole copy can. It is enough by
// itself to find the file again, wherever it was moved or copied to.
#pragma once
#include <optional>
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
  std::string set_id;                   // empty for a single directory
  std::string directory;                // on each target; empty for a single directory
  std::string path;                     // where Holdfast put it
  std::vector<std::string> targets;     // as many of the members' paths as there was room for
  std::optional<uint32_t> mode = {};    // of the file itself; an earlier version said none
  std::vector<std::string> uuids = {};  // of a file on a pool: of all its members, where there was room for them
  size_t appended = 0;                  // bytes behind it, that somebody has written who took it for the file
};

std::string encode_stub(const layout::Manifest& manifest, uint32_t mode);
// What the text says of the file's own permission bits, at a glance: a whole text is taken for granted. Allocates nothing.
std::optional<uint32_t> mode_in_stub(std::string_view text);
// Nobody may write to a stub, so that who takes it for the file is told at once. But who may not read it could not make it durable either. What
// others may do with a file (set its times and attributes) the kernel grants by the stub's own bits, which are an ACL's mask too.
inline uint32_t mode_of_stub(uint32_t own) { return (own & 0400) && !(own & 0022) ? own & ~0222u : own; }
// The file's own permission bits, from those of its stub and what its text says. One that may be written is as an earlier version left
// it, or as its user has made it without Holdfast. Then that is what is wanted.
inline uint32_t own_mode(uint32_t of_stub, std::optional<uint32_t> said) {
  return (of_stub & 0222) || !said ? of_stub & 07777 : (of_stub & 07777) | (*said & 0222);
}
// Kind::not_found: not a stub at all. Kind::corrupt: one that was cut or edited. Kind::version.
Result<Stub> decode_stub(std::string_view text);

}  // namespace holdfast::catalog
