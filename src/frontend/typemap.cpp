#include "frontend/typemap.hpp"

#include <cstring>

namespace holdfast::frontend {

namespace {

int64_t last_of(const Run& run) { return run.disp + static_cast<int64_t>(run.count - 1) * run.stride; }
int64_t lowest(const Run& run) { return std::min(run.disp, last_of(run)); }
int64_t highest(const Run& run) { return std::max(run.disp, last_of(run)) + static_cast<int64_t>(run.length); }

// Whether a run by itself goes upwards without stepping on itself.
bool upward(const Run& run) { return run.count == 1 || run.stride >= static_cast<int64_t>(run.length); }

template <size_t N>
void copy_fixed(std::byte* to, int64_t to_stride, const std::byte* from, int64_t from_stride, uint64_t count) {
  for (uint64_t i = 0; i < count; ++i, to += to_stride, from += from_stride) std::memcpy(to, from, N);
}

// Strided copies of small pieces: a constant length lets the compiler make a move of each.
void copy_strided(std::byte* to, int64_t to_stride, const std::byte* from, int64_t from_stride, uint64_t length, uint64_t count) {
  switch (length) {
    case 1: return copy_fixed<1>(to, to_stride, from, from_stride, count);
    case 2: return copy_fixed<2>(to, to_stride, from, from_stride, count);
    case 4: return copy_fixed<4>(to, to_stride, from, from_stride, count);
    case 8: return copy_fixed<8>(to, to_stride, from, from_stride, count);
    case 16: return copy_fixed<16>(to, to_stride, from, from_stride, count);
    case 40: return copy_fixed<40>(to, to_stride, from, from_stride, count);
  }
  for (uint64_t i = 0; i < count; ++i, to += to_stride, from += from_stride) std::memcpy(to, from, length);
}

}  // namespace

void Typemap::add(Run run) {
  if (run.length == 0 || run.count == 0) return;
  if (run.count > 1 && run.stride == static_cast<int64_t>(run.length)) run.length *= run.count, run.count = 1;
  if (runs_.empty() || runs_.back().basic != run.basic) {
    runs_.push_back(run);
    return;
  }
  Run& last = runs_.back();
  const int64_t end = last_of(last) + static_cast<int64_t>(last.length);
  if (run.disp == end) {
    // The first piece grows the last one; a strided run on either side gives up the piece that differs then.
    Run rest = run;
    rest.disp += run.stride, rest.count -= 1;
    const uint64_t grown = last.length + run.length;
    if (last.count == 1) {
      last.length = grown;
    } else {
      const int64_t start = last_of(last);
      last.count -= 1;
      runs_.push_back({start, grown, 1, 0, run.basic});
    }
    if (rest.count > 0) runs_.push_back(rest);
    return;
  }
  const bool same = run.length == last.length;
  const int64_t step = run.disp - last_of(last);
  if (same && (last.count == 1 || last.stride == step) && (run.count == 1 || run.stride == step)) {
    last.stride = step;
    last.count += run.count;
    return;
  }
  runs_.push_back(run);
}

void Typemap::repeat(const Typemap& child, int64_t disp, uint64_t count, int64_t stride) {
  if (child.runs_.empty() || count == 0) return;
  if (child.one_block()) {
    Run run = child.runs_[0];
    run.disp += disp, run.count = count, run.stride = stride;
    add(run);
    return;
  }
  for (uint64_t i = 0; i < count; ++i) {
    for (Run run : child.runs_) {
      run.disp += disp + static_cast<int64_t>(i) * stride;
      add(run);
    }
  }
}

void Typemap::finish() {
  before_.clear();
  size_ = 0;
  ascending_ = monotonic_ = true;
  for (size_t i = 0; i < runs_.size(); ++i) {
    const Run& run = runs_[i];
    before_.push_back(size_);
    size_ += run.bytes();
    true_lb_ = i == 0 ? lowest(run) : std::min(true_lb_, lowest(run));
    true_ub_ = i == 0 ? highest(run) : std::max(true_ub_, highest(run));
    if (!upward(run) || (i > 0 && run.disp < highest(runs_[i - 1]))) ascending_ = false;
    if (run.stride < 0 || (i > 0 && run.disp < last_of(runs_[i - 1]))) monotonic_ = false;
  }
  if (true_ub_ - true_lb_ > extent_) ascending_ = false;  // the next tile reaches back into this one
}

bool Typemap::overlaps() const { return !ascending_ && size_ > 0 && meet_in(size_); }

bool Typemap::tiles_overlap() const {
  if (ascending_ || size_ == 0) return false;
  // Bytes that meet do so within as many neighbouring tiles as one copy spans.
  if (extent_ <= 0) return true;
  const uint64_t tiles = divide_up(static_cast<uint64_t>(true_ub_ - true_lb_), static_cast<uint64_t>(extent_)) + 1;
  uint64_t pieces = 0;
  for (const Run& run : runs_) pieces += run.count;
  constexpr uint64_t most_pieces = 1 << 20;  // to be looked at when a view is set; beyond, each write looks at its own
  return tiles > most_pieces / pieces || meet_in(tiles * size_);
}

bool Typemap::meet_in(uint64_t bytes) const {
  std::vector<Extent> pieces;  // offsets relative to true_lb_
  walk(0, bytes, [&](int64_t disp, uint64_t length, uint64_t count, int64_t stride) {
    for (uint64_t i = 0; i < count; ++i, disp += stride) pieces.push_back({static_cast<uint64_t>(disp - true_lb_), length});
  });
  return have_common_bytes(std::move(pieces));
}

uint64_t Typemap::data_before(int64_t offset) const {
  if (size_ == 0 || extent_ <= 0 || offset <= true_lb_) return 0;
  const int64_t tile = (offset - true_lb_) / extent_;
  int64_t left = offset - tile * extent_;
  uint64_t bytes = static_cast<uint64_t>(tile) * size_;
  for (const Run& run : runs_) {
    if (run.disp >= left) break;
    if (run.count == 1) {
      bytes += std::min<uint64_t>(run.length, left - run.disp);
      continue;
    }
    const uint64_t started = std::min<uint64_t>(run.count, (left - run.disp - 1) / run.stride + 1);
    const int64_t into_last = left - (run.disp + static_cast<int64_t>(started - 1) * run.stride);
    bytes += (started - 1) * run.length + std::min<uint64_t>(run.length, into_last);
  }
  return bytes;
}

bool have_common_bytes(std::vector<Extent> extents) {
  std::sort(extents.begin(), extents.end(), [](const Extent& a, const Extent& b) { return a.offset < b.offset; });
  for (size_t i = 1; i < extents.size(); ++i)
    if (extents[i].offset < extents[i - 1].end()) return true;
  return false;
}

std::vector<Extent> extents_of(const Typemap& filetype, int64_t disp, uint64_t position, uint64_t bytes) {
  std::vector<Extent> extents;
  if (bytes == 0) return extents;
  if (filetype.one_block() && filetype.contiguous(2)) {
    extents.push_back({static_cast<uint64_t>(disp + filetype.true_lb()) + position, bytes});
    return extents;
  }
  filetype.walk(position, bytes, [&](int64_t at, uint64_t length, uint64_t count, int64_t stride) {
    uint64_t offset = static_cast<uint64_t>(disp + at);
    for (uint64_t i = 0; i < count; ++i, offset += static_cast<uint64_t>(stride)) {
      if (!extents.empty() && extents.back().end() == offset) {
        extents.back().length += length;
      } else {
        extents.push_back({offset, length});
      }
    }
  });
  return extents;
}

void pack(const Typemap& type, const std::byte* buffer, uint64_t position, ByteSpan packed) {
  std::byte* to = packed.data();
  type.walk(position, packed.size(), [&](int64_t disp, uint64_t length, uint64_t count, int64_t stride) {
    copy_strided(to, static_cast<int64_t>(length), buffer + disp, stride, length, count);
    to += length * count;
  });
}

void unpack(const Typemap& type, ByteView packed, uint64_t position, std::byte* buffer) {
  const std::byte* from = packed.data();
  type.walk(position, packed.size(), [&](int64_t disp, uint64_t length, uint64_t count, int64_t stride) {
    copy_strided(buffer + disp, stride, from, static_cast<int64_t>(length), length, count);
    from += length * count;
  });
}

}  // namespace holdfast::frontend
