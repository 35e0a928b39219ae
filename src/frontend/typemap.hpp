// A datatype laid flat: which bytes of memory or of a file it means, in the order of its type map. Regular patterns
// stay one Run however long they are, so a column of a matrix costs forty bytes and no walk from the start.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/bytes.hpp"

namespace holdfast::frontend {

// What a basic element is to a conversion. `raw` never changes; see external32.hpp for the others.
enum class Basic : uint8_t { raw, swap2, swap4, swap8, swap16, int_8_to_4, uint_8_to_4, wchar_4_to_2, long_double };

// `count` pieces of `length` bytes, `stride` bytes from the start of one to the start of the next.
struct Run {
  int64_t disp = 0;
  uint64_t length = 0;
  uint64_t count = 1;
  int64_t stride = 0;
  Basic basic = Basic::raw;
  uint64_t bytes() const { return length * count; }
  bool operator==(const Run&) const = default;
};

class Typemap {
 public:
  // Appends in type map order; joins what is adjacent and of one kind.
  void add(Run run);
  // Appends `count` copies of `child`, the first moved by `disp` bytes, each next one by `stride` more.
  void repeat(const Typemap& child, int64_t disp, uint64_t count, int64_t stride);
  void set_bounds(int64_t lb, int64_t ub) { lb_ = lb, extent_ = ub - lb; }
  // To be called once when all is added: makes the index that walk() and the predicates need.
  void finish();

  const std::vector<Run>& runs() const { return runs_; }
  uint64_t size() const { return size_; }  // data bytes of one copy
  int64_t lb() const { return lb_; }
  int64_t ub() const { return lb_ + extent_; }
  int64_t extent() const { return extent_; }
  int64_t true_lb() const { return true_lb_; }  // lowest byte of one copy; 0 where there is none
  int64_t true_ub() const { return true_ub_; }
  // `copies` tiled one after another occupy one piece of memory without holes, in order.
  bool contiguous(uint64_t copies) const { return size_ == 0 || (one_block() && (copies <= 1 || static_cast<uint64_t>(extent_) == size_)); }
  bool one_block() const { return runs_.size() == 1 && runs_[0].count == 1; }
  // Tiled endlessly, no byte comes before one that precedes it in the type map, and none comes twice.
  bool ascending() const { return ascending_; }
  // In one copy, no byte comes before one that precedes it in the type map: what MPI wants of a filetype (MPI-4.0, 14.1.1).
  bool monotonic() const { return monotonic_; }
  // In one copy some byte comes twice: what MPI forbids of a filetype to write by (MPI-4.0, 14.1.1). (Costs a sort where the map is not ascending.)
  bool overlaps() const;
  // Tiled endlessly some may: one access must not go so far. The extent of HDF5's filetypes is less than what one copy spans.
  bool tiles_overlap() const;

  // Calls `piece(disp, length, count, stride)` for the data bytes [position, position + bytes) of the endless tiling,
  // in order. Finds the start by division and binary search.
  template <class Piece>
  void walk(uint64_t position, uint64_t bytes, Piece&& piece) const;
  // Data bytes of the endless tiling that lie before byte `offset` (of an ascending map).
  uint64_t data_before(int64_t offset) const;

 private:
  bool meet_in(uint64_t bytes) const;

  std::vector<Run> runs_;
  std::vector<uint64_t> before_;  // data bytes in the runs before run i
  uint64_t size_ = 0;
  int64_t lb_ = 0, extent_ = 0, true_lb_ = 0, true_ub_ = 0;
  bool ascending_ = true, monotonic_ = true;
};

// The file's bytes that hold the view's data bytes [position, position + bytes), for a view at `disp`; adjacent pieces joined.
std::vector<Extent> extents_of(const Typemap& filetype, int64_t disp, uint64_t position, uint64_t bytes);
bool have_common_bytes(std::vector<Extent> extents);

// Between a user's buffer of `copies` of a type and packed bytes; `position` counts packed bytes from the buffer's start.
void pack(const Typemap& type, const std::byte* buffer, uint64_t position, ByteSpan packed);
void unpack(const Typemap& type, ByteView packed, uint64_t position, std::byte* buffer);

template <class Piece>
void Typemap::walk(uint64_t position, uint64_t bytes, Piece&& piece) const {
  if (size_ == 0 || bytes == 0) return;
  int64_t base = static_cast<int64_t>(position / size_) * extent_;
  uint64_t within = position % size_;
  size_t i = std::upper_bound(before_.begin(), before_.end(), within) - before_.begin() - 1;
  within -= before_[i];
  for (;; within = 0) {
    const Run& run = runs_[i];
    uint64_t block = within / run.length;
    if (const uint64_t skip = within % run.length; skip != 0) {
      const uint64_t length = std::min(run.length - skip, bytes);
      piece(base + run.disp + static_cast<int64_t>(block * run.stride + skip), length, uint64_t{1}, int64_t{0});
      if ((bytes -= length) == 0) return;
      ++block;
    }
    if (const uint64_t whole = std::min(run.count - block, bytes / run.length); whole != 0) {
      piece(base + run.disp + static_cast<int64_t>(block) * run.stride, run.length, whole, run.stride);
      if ((bytes -= whole * run.length) == 0) return;
      block += whole;
    }
    if (block < run.count) {  // the last piece, cut short
      piece(base + run.disp + static_cast<int64_t>(block) * run.stride, bytes, uint64_t{1}, int64_t{0});
      return;
    }
    if (++i == runs_.size()) i = 0, base += extent_;
  }
}

}  // namespace holdfast::frontend
