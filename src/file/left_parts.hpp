// Parts that a job has left beside a plain file: killed before it had joined them, or while it did.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/status.hpp"
#include "layout/part.hpp"

namespace holdfast::file {

// What the replicas of one rank have left.
struct LeftParts {
  std::string path;  // the note's
  layout::PartNote note;
  uint64_t writes = 0, bytes = 0;  // that are whole
  bool torn = false;               // the last write was not over: what there is of it counts as written
  Status lacking = {};             // bytes that no part has
  bool in_use = false;             // by a process that writes them
};

// Of the file at this path, whose links are followed; also where it had another name in that directory. In the order of their notes' names.
Result<std::vector<LeftParts>> left_parts(const std::string& file);
// Whether there are any, without a look at them.
bool has_left_parts(const std::string& file);
// The files in a directory that have some, by the names that they had then.
std::vector<std::string> files_with_left_parts(const std::string& directory);
// From now on the file changes by being joined: at what time it did says nothing any more.
Status note_joining(const LeftParts& left, const std::string& file);
// What there is comes into the file, durable, and the parts go. It can be done twice. `progress` gets the bytes so far, and says whether to go on.
Status join_left(const LeftParts& left, const std::string& file, const std::function<bool(uint64_t)>& progress);
Status discard_left(const LeftParts& left);

}  // namespace holdfast::file
