// Files that the program opens to read, again and again, while somebody outside of the job changes them: a control file that is polled. Each replica
// opens for itself, at its own time. See docs/decisions/0062.
#pragma once
#include <cstdint>
#include <string>

#include "base/bytes.hpp"

namespace holdfast::intercept::posix {

// What an open has found, in the leader.
struct FoundAtOpen {
  int64_t error = 0, size = -1, changed_ns = 0;  // a size of -1: no file
  int64_t is_read_as_one = 0;                    // each read is one call of all replicas

  bool same_content(const FoundAtOpen& other) const { return size == other.size && changed_ns == other.changed_ns; }
};

FoundAtOpen what_was_opened(int fd, int error);

// In the leader: the file has been another one when it was opened last.
bool changes_while_it_is_read(const std::string& name, const FoundAtOpen& found);
// In the leader, of a file that is opened for the first time: its content, where somebody may be about to change it. Else nothing.
Bytes content_of_young(const std::string& name, const FoundAtOpen& found, int fd);
// In all replicas, of what the leader has found and told. `fd` is this replica's own, and has found `mine`. Where that is another content `fd` becomes the one
// of then, if it can be had.
void note_opened(const std::string& name, const FoundAtOpen& then, Bytes content, const FoundAtOpen& mine, int fd);

}  // namespace holdfast::intercept::posix
