#include "redundant/membership/output.hpp"

#include <algorithm>
#include <span>
#include <utility>

namespace holdfast::redundant {

namespace {

constexpr size_t most_tail = 64 << 10, most_held = 4 << 20;
constexpr std::byte line_end{'\n'};

}  // namespace

ByteView Output::fresh(uint32_t rank, uint64_t stream, uint64_t position, ByteView came) {
  Delivered& delivered = delivered_[{rank, stream}];
  const uint64_t end = position + came.size();
  if (position > delivered.bytes || end <= delivered.bytes) return {};
  const ByteView rest = came.subspan(delivered.bytes - position);
  delivered.bytes = end;
  Bytes& tail = delivered.tail;
  tail.insert(tail.end(), rest.begin(), rest.end());
  if (tail.size() > 2 * most_tail) tail.erase(tail.begin(), tail.end() - ptrdiff_t(most_tail));
  return rest;
}

// Where the beginning of what is held was delivered, a line of it at least.
bool Output::place(Resumed& its, const Delivered& delivered) {
  const Bytes& tail = delivered.tail;
  const uint64_t tail_begins = delivered.bytes - tail.size();
  for (size_t at = 0; at < tail.size(); ++at) {
    if (at > 0 ? tail[at - 1] != line_end : tail_begins > 0) continue;
    const size_t both = std::min(tail.size() - at, its.held.size());
    const auto begin = its.held.begin(), end = begin + ptrdiff_t(both);
    if (std::find(begin, end, line_end) == end || !std::equal(begin, end, tail.begin() + ptrdiff_t(at))) continue;
    its.position = tail_begins + at;
    return true;
  }
  its.position = delivered.bytes;
  return its.is_alone;
}

Bytes Output::take_out(Resumed& its, uint32_t rank, uint64_t stream) {
  if (!its.has_joined || its.held.empty()) return {};
  its.is_placed = its.is_placed || place(its, delivered_[{rank, stream}]);
  if (!its.is_placed) return {};
  const Bytes held = std::exchange(its.held, {});
  const ByteView rest = fresh(rank, stream, its.position, held);
  its.position += held.size();
  return {rest.begin(), rest.end()};
}

Bytes Output::fresh_of_resumed(int team, uint32_t rank, uint64_t stream, ByteView came) {
  Resumed& its = resumed_[{team, {rank, stream}}];
  its.held.insert(its.held.end(), came.begin(), came.end());
  if (!its.has_joined) {
    const ByteView mark = std::as_bytes(std::span(joined_mark.data(), joined_mark.size()));
    const auto found = std::search(its.held.begin(), its.held.end(), mark.begin(), mark.end());
    its.has_joined = found != its.held.end();
    if (its.has_joined) its.held.erase(its.held.begin(), found + ptrdiff_t(mark.size()));
  }
  if (its.held.size() > most_held) its.held.erase(its.held.begin(), its.held.end() - ptrdiff_t(most_held));
  return take_out(its, rank, stream);
}

Bytes Output::let_out(int team, uint32_t rank, uint64_t stream, bool has_ended) {
  Resumed& its = resumed_[{team, {rank, stream}}];
  its.is_alone = true;
  its.has_joined |= has_ended;
  return take_out(its, rank, stream);
}

}  // namespace holdfast::redundant
