// The C library reads and writes standard input, output and error, and a stream of freopen, by system calls that pass no door. There
// something that the kernel serves stands in for a protected file: a pipe whose other end goes into the file, or a copy to be read.
#pragma once
#include <memory>

#include "base/status.hpp"
#include "frontend/posix/description.hpp"

namespace holdfast::intercept::posix {

inline constexpr int last_standard_number = 2;

// `fd` is the file's O_PATH descriptor. What cannot be made leaves it so, with one line on standard error.
void stand_in(int fd, const std::shared_ptr<frontend::posix::Description>& file);
bool stands_in(int fd);
// `to` is a duplicate of `from`, on which a pipe stands in. It shares the pipe, or becomes the file's own again beyond the standard ones.
void share_stand_in(int from, int to);
// What is in the pipe goes into the file: before any other call on it. What failed since the last time comes back.
Status drain(int fd);
// The number is no longer the file's.
Status end_stand_in(int fd);
Status drain_all();
// The same before a call on a name. What fails is told later on.
void meet_stand_ins();
// Around fork and exec: an image has its own pipes.
void hold_stand_ins();
void release_stand_ins(bool child);
void give_numbers_back();
void stand_in_again();
// In a child of vfork, whose numbers are its own and whose memory is its parent's.
void give_numbers_back_after_vfork();

}  // namespace holdfast::intercept::posix
