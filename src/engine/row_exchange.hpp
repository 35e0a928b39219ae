// From the ranks' extents to whole rows at their owners. It is the two-phase step of collective writes and of sync, on row boundaries, in rounds that
// bound the memory of an owner.
#pragma once
#include <functional>
#include <vector>

#include "base/bytes.hpp"
#include "base/intervals.hpp"
#include "engine/pending.hpp"
#include "exchange/exchange.hpp"
#include "layout/geometry.hpp"

namespace holdfast::engine {

struct OutExtent {
  uint64_t offset = 0;  // in the file
  uint64_t length = 0;
  const std::byte* from = nullptr;
  uint64_t time_ns = 0;  // when it was written: later ones go over earlier ones, whichever rank they are of
};

// Collective. At the owner `fold` gets each row's pieces of all ranks, ascending by row and in the order of their time: the
// extents (file offsets) with their bytes. Returns when all rounds are done. A failed fold does not stop the others; the caller
// agrees on the outcome afterwards. `aggregators`: how many of the ranks own rows, as in layout::owner_of_row, the same on all of
// them.
Status exchange_rows(exchange::Exchange& ranks, int aggregators, const layout::Geometry& geometry, std::vector<OutExtent> mine,
                     const std::function<Status(uint64_t row, std::span<const OutExtent> pieces)>& fold);

struct Wanted {
  uint64_t offset = 0;  // in the file
  uint64_t length = 0;
  std::byte* into = nullptr;
};

// Collective. Puts what all ranks' pieces have of the wanted bytes over what is there, the later over the earlier. No piece may reach over the end of
// a row, nor anything wanted.
void serve_rows(exchange::Exchange& ranks, int aggregators, const layout::Geometry& geometry, std::vector<OutExtent> pieces,
                std::vector<Wanted> wanted);

}  // namespace holdfast::engine
