// Which bytes go where: the one formula. Pure arithmetic; knows no ranks, no files, no errors of devices.
//
// Source: shared formula of block replication by file layout (Son et al., "Reliable MPI-IO through Layout-Aware
// Replication", section 3: datatypes D_0..D_{R-1}; section 5: separate files with other start nodes), carried
// over to K data and M redundancy units per row.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "base/member_set.hpp"
#include "base/status.hpp"

namespace holdfast::layout {

inline constexpr int max_mirrors = 8;          // mirror:R, 1 <= R <= 8
inline constexpr int max_data_units = 32;      // rs:K+M, 1 <= K <= 32
inline constexpr int max_redundancy = 8;       // 0 <= M <= 8 (mirror:1 has M = 0)
inline constexpr int max_members = 64;         // of a target set, and of a version of a checkpoint
inline constexpr int max_pool_members = 1024;  // of a file on a pool
static_assert(max_pool_members <= MemberSet::most);
inline constexpr int max_start = 65535;           // start_iodevice of a single directory: a number of the file system's
inline constexpr uint64_t min_unit_bytes = 4096;  // striping units are multiples of this
inline constexpr uint64_t max_unit_bytes = 256ull << 20;

// mirror:R is k=1, m=R-1; rs:K+M is k=K, m=M.
struct Scheme {
  int k = 1;
  int m = 0;
  bool mirror = true;  // how the user named it; mirror:1 and rs:1+0 are the same code
  int width() const { return k + m; }
  std::string name() const;  // "mirror:3", "rs:4+2"
  // One sentence with the mend for whatever is not mirror:R or rs:K+M within the limits.
  static Result<Scheme> parse(std::string_view text);
  bool operator==(const Scheme&) const = default;
};

enum class Placement : uint8_t { interleaved, separate };
const char* placement_name(Placement placement);
Result<Placement> parse_placement(std::string_view text);

// Everything that fixes where a byte lies; set at creation and never changed for the life of the file.
struct Geometry {
  Scheme scheme;
  Placement placement = Placement::interleaved;
  bool single_directory = false;    // one directory whose file system stripes; members are then its failure domains
  int members = 1;                  // N target directories (single_directory: k + m virtual members)
  int start = 0;                    // first member (start_iodevice; single_directory: the file system's first node)
  uint64_t unit_bytes = 1 << 20;    // S
  uint32_t block_bytes = 32 << 10;  // checksum block; divides S

  uint64_t row_bytes() const { return unit_bytes * uint64_t(scheme.k); }
  // More members than a set can have. The record of a row lies on the row's own members then, else on all: docs/decisions/0053.
  bool is_wide() const { return members > max_members; }
  uint32_t blocks_per_unit() const { return uint32_t(unit_bytes / block_bytes); }
  uint64_t row_of(uint64_t logical_offset) const { return logical_offset / row_bytes(); }
  // All limits above and members >= k+m, or one sentence that says which does not hold.
  Status check() const;
  bool operator==(const Geometry&) const = default;
};

// The checksum block for a striping unit: the largest power of two <= 32 KiB that divides it (>= 4 KiB).
uint32_t block_bytes_for(uint64_t unit_bytes);

// Where unit `unit` (0..k-1 data, k..k+m-1 redundancy) of a row lies.
struct UnitPlace {
  int member = 0;       // which target holds it
  int object = 0;       // which data object there
  uint64_t offset = 0;  // byte offset inside that object
  bool operator==(const UnitPlace&) const = default;
};
UnitPlace place(const Geometry& geometry, uint64_t row, int unit);

// How many distinct data objects member `member` can hold (their numbers are 0..n-1 over the whole file).
int object_count(const Geometry& geometry);
// Whether `object` may lie on `member` at all.
bool holds(const Geometry& geometry, int member, int object);

// The members on which the record of a row lies.
MemberSet record_holders(const Geometry& geometry, uint64_t row);

// The rank that folds a row in: fixed by row number, so that two ranks never do it for the same row. `aggregators` of the ranks own rows, spread
// evenly over them (neighbours tend to share a node). 0, or more than there are: all.
inline int owner_of_row(uint64_t row, int ranks, int aggregators) {
  const int owners = aggregators > 0 && aggregators < ranks ? aggregators : ranks;
  return int(row % uint64_t(owners) * uint64_t(ranks) / uint64_t(owners));
}

}  // namespace holdfast::layout
