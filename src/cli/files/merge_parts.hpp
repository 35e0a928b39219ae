// What replicas have written to parts and not joined with their file: the part of `holdfast merge` that is about that, and how others say it.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "base/status.hpp"

namespace holdfast::cli {

struct MergeOfParts {
  bool discard = false, accept_changes = false;
};
struct MergedParts {
  uint64_t writes = 0, bytes = 0, discarded = 0;
  bool torn = false;  // the last write was not over when the job ended
};
// Of a plain file, or of one that is gone.
Result<MergedParts> merge_parts(const std::string& path, MergeOfParts options);

// A sentence where a file has some; else empty.
std::string said_of_parts(const std::string& path);

}  // namespace holdfast::cli
