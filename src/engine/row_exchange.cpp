#include "engine/row_exchange.hpp"

#include <algorithm>
#include <cstring>
#include <set>

namespace holdfast::engine {

namespace {

constexpr uint64_t owner_bytes_per_round = 4 << 20;

// Union over the ranks of the windows that anybody touches, as sorted numbers.
std::vector<uint64_t> all_windows(exchange::Exchange& ranks, const std::vector<OutExtent>& mine, uint64_t window_bytes) {
  std::vector<std::pair<uint64_t, uint64_t>> spans;  // first, last
  for (const OutExtent& extent : mine) {
    const uint64_t first = extent.offset / window_bytes, last = (extent.offset + extent.length - 1) / window_bytes;
    if (!spans.empty() && first <= spans.back().second + 1 && first >= spans.back().first) spans.back().second = std::max(spans.back().second, last);
    else spans.emplace_back(first, last);
  }
  std::set<uint64_t> windows;
  for (const Bytes& bytes : ranks.all_gather(std::as_bytes(std::span(spans)))) {
    std::vector<std::pair<uint64_t, uint64_t>> theirs(bytes.size() / sizeof(spans[0]));
    if (!bytes.empty()) std::memcpy(static_cast<void*>(theirs.data()), bytes.data(), bytes.size());
    for (auto [first, last] : theirs)
      for (uint64_t window = first; window <= last; ++window) windows.insert(window);
  }
  return {windows.begin(), windows.end()};
}

// One message: number of extents, their offsets, lengths and times, then their bytes.
Bytes pack(const std::vector<OutExtent>& extents) {
  if (extents.empty()) return {};
  uint64_t payload = 0;
  for (const OutExtent& extent : extents) payload += extent.length;
  Bytes bytes(8 + extents.size() * 24 + payload);
  std::byte* at = bytes.data();
  auto put = [&](uint64_t value) {
    std::memcpy(at, &value, 8);
    at += 8;
  };
  put(extents.size());
  for (const OutExtent& extent : extents) put(extent.offset), put(extent.length), put(extent.time_ns);
  for (const OutExtent& extent : extents) {
    std::memcpy(at, extent.from, extent.length);
    at += extent.length;
  }
  return bytes;
}

void unpack(const Bytes& bytes, std::vector<OutExtent>& into) {
  if (bytes.empty()) return;
  uint64_t count;
  std::memcpy(&count, bytes.data(), 8);
  const std::byte* payload = bytes.data() + 8 + count * 24;
  for (uint64_t i = 0; i < count; ++i) {
    OutExtent extent;
    std::memcpy(&extent.offset, bytes.data() + 8 + i * 24, 8);
    std::memcpy(&extent.length, bytes.data() + 16 + i * 24, 8);
    std::memcpy(&extent.time_ns, bytes.data() + 24 + i * 24, 8);
    extent.from = payload;
    payload += extent.length;
    into.push_back(extent);
  }
}

// Cut at the borders of rows, and by offset; their times put overlapping ones in order again at the owner.
std::vector<OutExtent> cut_at_rows(const std::vector<OutExtent>& extents, uint64_t row_bytes) {
  std::vector<OutExtent> parts;
  for (OutExtent rest : extents)
    while (rest.length) {
      const uint64_t here = std::min(rest.length, row_bytes - rest.offset % row_bytes);
      parts.push_back({rest.offset, here, rest.from, rest.time_ns});
      rest = {rest.offset + here, rest.length - here, rest.from + here, rest.time_ns};
    }
  std::stable_sort(parts.begin(), parts.end(), [](const OutExtent& a, const OutExtent& b) { return a.offset < b.offset; });
  return parts;
}

// Collective. What all ranks have for this one, by row and in the order of their time; `received` holds the bytes.
std::vector<OutExtent> meet(exchange::Exchange& ranks, std::vector<std::vector<OutExtent>> to, uint64_t row_bytes, std::vector<Bytes>& received) {
  std::vector<OutExtent> pieces;
  if (ranks.size() == 1) {
    pieces = std::move(to[0]);
  } else {
    std::vector<Bytes> messages;
    for (const auto& extents : to) messages.push_back(pack(extents));
    received = ranks.all_to_all(std::move(messages));
    for (const Bytes& bytes : received) unpack(bytes, pieces);
  }
  std::stable_sort(pieces.begin(), pieces.end(), [&](const OutExtent& a, const OutExtent& b) {
    return std::pair(a.offset / row_bytes, a.time_ns) < std::pair(b.offset / row_bytes, b.time_ns);
  });
  return pieces;
}

}  // namespace

Status exchange_rows(exchange::Exchange& ranks, int aggregators, const layout::Geometry& geometry, std::vector<OutExtent> mine,
                     const std::function<Status(uint64_t, std::span<const OutExtent>)>& fold) {
  const uint64_t row_bytes = geometry.row_bytes();
  const int owners = aggregators > 0 ? std::min(aggregators, ranks.size()) : ranks.size();
  const uint64_t window_bytes = row_bytes * uint64_t(owners) * std::max<uint64_t>(1, owner_bytes_per_round / row_bytes);
  mine = cut_at_rows(mine, row_bytes);
  Status outcome;
  auto next = mine.cbegin();
  for (uint64_t window : all_windows(ranks, mine, window_bytes)) {
    std::vector<std::vector<OutExtent>> to(static_cast<size_t>(ranks.size()));
    for (; next != mine.cend() && next->offset / window_bytes == window; ++next)
      to[size_t(layout::owner_of_row(next->offset / row_bytes, ranks.size(), owners))].push_back(*next);
    std::vector<Bytes> received;
    const std::vector<OutExtent> pieces = meet(ranks, std::move(to), row_bytes, received);
    for (size_t begin = 0; begin < pieces.size();) {
      const uint64_t row = pieces[begin].offset / row_bytes;
      size_t end = begin;
      while (end < pieces.size() && pieces[end].offset / row_bytes == row) ++end;
      Status status = fold(row, std::span(pieces).subspan(begin, end - begin));
      if (outcome.ok() && !status.ok()) outcome = status;
      begin = end;
    }
  }
  return outcome;
}

}  // namespace holdfast::engine
