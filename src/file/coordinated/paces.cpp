#include "file/coordinated/paces.hpp"

#include <algorithm>
#include <bit>
#include <map>
#include <memory>
#include <utility>

#include "file/coordinated/protocol.hpp"

namespace holdfast::file {

Paces& Paces::of(uint64_t device) {
  static std::mutex mutex;
  static auto* const all = new std::map<uint64_t, std::unique_ptr<Paces>>;  // never destroyed: files are used to the end
  std::lock_guard lock(mutex);
  std::unique_ptr<Paces>& paces = (*all)[device];
  if (!paces) paces = std::make_unique<Paces>();
  return *paces;
}

// By factors of four.
int Paces::size_of(uint64_t bytes) { return std::min(int(std::bit_width(std::max(bytes, least_shared) / least_shared) - 1) / 2, sizes - 1); }

const Paces::Size* Paces::nearest_that_knows(const Sizes& all, int to) {
  for (int apart = 0; apart < sizes; ++apart)
    for (const int at : {to - apart, to + apart})
      if (at >= 0 && at < sizes && all[size_t(at)].knows()) return &all[size_t(at)];
  return nullptr;
}

// Each way twice, then the faster one; the other is tried again, ever more seldom. Of a size that is new, what the nearest size has shown holds.
bool Paces::shares(Work work, uint64_t bytes) {
  std::lock_guard lock(mutex_);
  Sizes& all = works_[size_t(work)];
  const int at = size_of(bytes);
  Size& size = all[size_t(at)];
  const Size* const known = nearest_that_knows(all, at);
  if (!known) {
    const bool first = work == Work::read;  // to read twice costs more than to send; to write apart may be slow
    return size.ways[first].seen < enough ? first : !first;
  }
  const bool shared = (size.ways[0].seen > 0 && size.ways[1].seen > 0 ? size : *known).shared_is_faster();
  if (++size.calls < size.next_trial) return shared;
  size.next_trial *= 4;
  return !shared;
}

void Paces::took(Work work, bool shared, uint64_t bytes, uint64_t nanoseconds) {
  constexpr double newest = 0.25;
  std::lock_guard lock(mutex_);
  Way& way = works_[size_t(work)][size_t(size_of(bytes))].ways[shared];
  const double rate = double(bytes) / double(std::max<uint64_t>(nanoseconds, 1));
  way.rate = way.seen++ < enough ? std::max(way.rate, rate) : (1 - newest) * way.rate + newest * rate;
}

}  // namespace holdfast::file
