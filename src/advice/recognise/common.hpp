// What several recognisers ask and say.
#pragma once
#include <string>
#include <string_view>

#include "advice/digest.hpp"
#include "advice/model.hpp"
#include "advice/text.hpp"

namespace holdfast::advice {

// A mean access below this is small: the classical unit of striping, and of a disk's own work.
inline constexpr double small_bytes = 1 << 20;

Advice about(const Use& use, std::string name);

// Standard output and error, as logs call them.
bool is_standard(const std::string& path);
// Text for people, a line at a time on some stream that all ranks share or one of their own.
bool is_output(const Use& use, const Digest& digest);
// What a Fortran runtime that converts the byte order makes of records, one process. Several compilers: many of one size a few bytes below a power of
// two, one behind the other. gfortran: pieces of its buffer, and for each record a step back to write its length.
bool is_byte_swapped(const Use& use);
bool is_in_pieces_of_records(const Side& writes);
// Writes as long as a record's length mark.
uint64_t record_marks(const Side& writes);

struct Buffers {
  uint32_t number = 4;
  uint64_t bytes = 1 << 20;
  std::string text() const;  // "4x16MiB", as the setting `buffer` has it
};
// So large that the latency is a small part of a buffer's transfer; no larger than a fraction of what a process moves or of a node's memory.
Buffers buffers_for(const Digest& digest, const Side& side, const Cost& cost);
// What the side's slowest process has from such buffers: seconds, how they were reckoned, and the settings.
void expect_of_buffers(Advice& advice, const Use& use, const Side& side, const Cost& cost, const Buffers& buffers);
// The settings that put these buffers between the program and the use's files.
void add_buffers(Advice& advice, const Use& use, const Buffers& buffers);

// "1080 s = 2,083,634 calls x 0.516 ms + 1.07 GB at 250 MB/s (assumed: ...)"
std::string reckoning(const Load& load, const Cost& cost);

// How the use's directory gets another layout for new files; nothing where its file system has none that can be asked for.
// `count` 0: all devices.
void add_layout(Advice& advice, const Use& use, uint32_t count, uint64_t stripe_bytes);

// Pieces that an access is cut into at multiples of `unit`.
double pieces(double access_bytes, uint64_t unit_bytes, double misaligned_share);

}  // namespace holdfast::advice
