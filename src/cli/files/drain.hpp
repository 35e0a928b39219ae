// Protected files that become plain ones at their paths.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "base/config.hpp"
#include "base/status.hpp"

namespace holdfast::cli {

// The file is plain at its path afterwards, with the same bytes, permissions and time of writing; what was on the targets is gone. Its size in
// bytes. Where it fails the file is as before; Kind::busy where a program has it open for writing.
Result<uint64_t> drain_file(const std::string& path, const Settings& settings);

struct FileOnNodes {
  std::string path;
  std::string job;  // that has committed last (layout/manifest.hpp)
};
// Files of the pool or the set that would be lost with the disks of all its nodes, and which are found at their paths. In the order of these.
Result<std::vector<FileOnNodes>> files_on_nodes(const Settings& settings);

}  // namespace holdfast::cli
