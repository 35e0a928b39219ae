// Collective reads and writes. Parts stay with the rank that wrote them until all ranks' parts make a row whole, or until a commit. Then they meet at
// the row's owner, and the row is coded and written once.
#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "base/meter.hpp"
#include "engine/agreement.hpp"
#include "engine/file.hpp"
#include "engine/parts.hpp"

namespace holdfast::engine {

namespace {

// Collective: numbers that some ranks have, known to all. Ascending.
std::vector<uint64_t> united(exchange::Exchange& ranks, const std::vector<uint64_t>& mine) {
  std::vector<uint64_t> all;
  for (const Bytes& bytes : ranks.all_gather(std::as_bytes(std::span(mine)))) {
    const size_t count = bytes.size() / sizeof(uint64_t), before = all.size();
    all.resize(before + count);
    if (count) std::memcpy(all.data() + before, bytes.data(), bytes.size());
  }
  std::sort(all.begin(), all.end());
  return all;
}

}  // namespace

// One call of write_all on this rank.
struct File::Call {
  std::vector<OutExtent> out;  // parts that others may complete to whole rows
  uint64_t out_bytes = 0;
  Status status;
  uint64_t first_row = std::numeric_limits<int64_t>::max(), last_row = 0;  // of all ranks' parts, after they met
};

// Rows that one rank writes whole need no exchange, unless only some ranks are to write.
Status File::split(std::span<const Extent> extents, ByteView data, Call& call) {
  const uint64_t row_bytes = reader_.geometry().row_bytes(), now = now_ns();
  const bool some_write = settings_.cb_nodes > 0 && settings_.cb_nodes < ranks_.size();
  // Parts of one rank's own that follow each other in `data` are taken together, so that rows are written in batches.
  std::vector<Extent> own;
  uint64_t own_begin = 0, own_bytes = 0;
  auto take_own = [&] {
    Status status = own.empty() ? Status() : take(own, data.subspan(own_begin, own_bytes));
    own.clear();
    return status;
  };
  HF_TRY(for_each_part(extents, row_bytes, [&](uint64_t row, uint64_t offset, uint64_t length, uint64_t position) {
    const Extent part{row * row_bytes + offset, length};
    Status why;
    const bool in_place = may_write_in_place(row, why);
    HF_TRY(why);
    if ((some_write || length != row_bytes) && in_place && !pending_.find(row)) {
      call.out.push_back({part.offset, length, data.data() + position, now});
      call.out_bytes += length;
      return take_own();
    }
    if (own.empty()) own_begin = position, own_bytes = 0;
    own_bytes += length;
    own.push_back(part);
    return Status();
  }));
  return take_own();
}

// All ranks' parts of rows that they make whole together go to the rows' owners and to their place. What is left stays pending.
Status File::write_whole_rows(Call& call) {
  const uint64_t row_bytes = reader_.geometry().row_bytes();
  std::vector<OutExtent> out = call.out;
  std::vector<uint64_t> offered;
  // Parts of before lie in memory; a row of which something is parked waits for the commit.
  for (auto at = pending_.rows().lower_bound(call.first_row); at != pending_.rows().end() && at->first <= call.last_row; ++at) {
    if (!at->second.parked.empty()) continue;
    offered.push_back(at->first);
    for (const Pending::Write& piece : at->second.pieces)
      out.push_back({at->first * row_bytes + piece.begin, piece.end - piece.begin, at->second.buffer->data() + piece.begin, piece.time_ns});
  }
  std::vector<uint64_t> mine;
  Status status = exchange_rows(ranks_, settings_.cb_nodes, reader_.geometry(), std::move(out),
                                [&](uint64_t row, std::span<const OutExtent> pieces) { return write_if_whole(row, pieces, mine); });
  const std::vector<uint64_t> written = united(ranks_, mine);
  // Others may have made a row whole without what is parked of it here: that stays for the commit.
  for (uint64_t row : offered)
    if (std::binary_search(written.begin(), written.end(), row)) pending_.drop(row);
  std::erase_if(call.out, [&](const OutExtent& part) { return std::binary_search(written.begin(), written.end(), part.offset / row_bytes); });
  forget_rows();  // other ranks have written some that this one may remember
  return status;
}

// What all ranks know of a call: how far the file reaches, whether it is time to write, and which rows it is about.
Status File::meet(Call& call) {
  const uint64_t row_bytes = reader_.geometry().row_bytes();
  for (const OutExtent& part : call.out) {
    call.first_row = std::min(call.first_row, part.offset / row_bytes);
    call.last_row = std::max(call.last_row, part.offset / row_bytes);
  }
  const bool much = call.out_bytes >= row_bytes, full = pending_.memory_bytes() + call.out_bytes > settings_.buffer_bytes / 2;
  const std::vector<int64_t> facts =
      ranks_.all_max({int64_t(file_end_), much, full, !call.status.ok(), int64_t(call.last_row), -int64_t(call.first_row), int64_t(own_end_)});
  file_end_ = uint64_t(facts[0]);
  own_end_ = uint64_t(facts[6]);
  call.last_row = uint64_t(facts[4]);
  call.first_row = uint64_t(-facts[5]);
  if (facts[2] && !facts[1]) call.first_row = 0, call.last_row = std::numeric_limits<int64_t>::max();
  const bool exchanges = (facts[1] || facts[2]) && !facts[3];
  if (exchanges) call.status = write_whole_rows(call);
  for (const OutExtent& part : call.out) {
    if (!call.status.ok()) break;
    call.status = pending_.add(part.offset / row_bytes, part.offset % row_bytes, part.from, part.length);
  }
  return exchanges || facts[3] ? agree_outside_commit(call.status) : call.status;
}

Status File::write_all(std::span<const Extent> extents, ByteView data, bool& more) {
  const LayerTime measured;
  std::lock_guard guard(mutex_);
  const bool mine_goes_on = std::exchange(more, false);
  if (!access_.write) return Status(Kind::access, located_.manifest.path + ": opened for reading only");
  dirty_ = true;
  Status status = check_held(end_of(extents));
  if (atomic_) {
    status = agree_outside_commit(status.ok() ? write_atomic(extents, data) : status);
  } else {
    Call call;
    call.status = status.ok() ? split(extents, data, call) : status;
    if (status.ok()) reaches(end_of(extents));
    status = meet(call);
  }
  more = ranks_.all_max({mine_goes_on})[0] != 0;
  return status;
}

// Other ranks' parts that wait for their row are as good as written: their bytes come from the ranks that keep them.
Result<uint64_t> File::read_with_pending(std::span<const Extent> extents, ByteSpan into) {
  const uint64_t row_bytes = reader_.geometry().row_bytes();
  uint64_t before_end = 0;
  Status status = read_pieces(extents, into, before_end);
  uint64_t first = std::numeric_limits<int64_t>::max(), last = 0;
  std::vector<Wanted> wanted;
  HF_TRY(for_each_part(extents, row_bytes, [&](uint64_t row, uint64_t offset, uint64_t length, uint64_t position) {
    const uint64_t at = row * row_bytes + offset, there = at < file_end_ ? std::min(length, file_end_ - at) : 0;
    if (there == 0) return Status();
    first = std::min(first, row), last = std::max(last, row);
    wanted.push_back({at, there, into.data() + position});
    return Status();
  }));
  const auto span = ranks_.all_max({-int64_t(first), int64_t(last)});
  std::vector<OutExtent> pieces;
  std::vector<std::unique_ptr<Buffer>> rooms;
  for (auto at = pending_.rows().lower_bound(uint64_t(-span[0])); at != pending_.rows().end() && at->first <= uint64_t(span[1]); ++at) {
    auto bytes = pending_.bytes_of(at->second, rooms.emplace_back());
    if (!bytes.ok()) {
      if (status.ok()) status = bytes.status();
      continue;
    }
    for (const Pending::Write& piece : at->second.pieces)
      pieces.push_back({at->first * row_bytes + piece.begin, piece.end - piece.begin, *bytes + piece.begin, piece.time_ns});
  }
  serve_rows(ranks_, settings_.cb_nodes, reader_.geometry(), std::move(pieces), std::move(wanted));
  if (!status.ok()) return status;
  return before_end;
}

Result<uint64_t> File::read_all(std::span<const Extent> extents, ByteSpan into, bool& more) {
  const bool mine_goes_on = std::exchange(more, false);
  Result<uint64_t> mine(uint64_t(0));
  if (atomic_ || !access_.read) {
    mine = read(extents, into);
    more = ranks_.all_max({mine_goes_on})[0] != 0;
    return mine;
  }
  const LayerTime measured;
  std::lock_guard guard(mutex_);
  const bool losses_told = !access_.write || losses_told_ == members_.lost();
  const auto facts =
      ranks_.all_max({!pending_.empty(), int64_t(file_end_), mine_goes_on, !std::exchange(rows_told_, true), !losses_told, int64_t(own_end_)});
  file_end_ = std::max(file_end_, uint64_t(facts[1]));
  own_end_ = uint64_t(facts[5]);
  if (facts[3]) forget_rows();  // another rank has written a whole row, which this one may remember as a hole
  more = facts[2] != 0;
  if (facts[4]) {  // what another rank has written since then is not on the members that it lost
    HF_TRY(agree_outside_commit(Status()));
    losses_told_ = members_.lost();
  }
  if (facts[0]) return read_with_pending(extents, into);
  uint64_t before_end = 0;
  const Status status = read_pieces(extents, into, before_end);
  ranks_.barrier();
  if (!status.ok()) return status;
  return before_end;
}

}  // namespace holdfast::engine
