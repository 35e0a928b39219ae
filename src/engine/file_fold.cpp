// From parts to rows: at their owners, whole rows outside commits, all else in a commit under the file's lock.
#include <algorithm>
#include <cstring>
#include <limits>

#include <fmt/format.h>

#include "base/meter.hpp"
#include "engine/file.hpp"
#include "engine/file_fold.hpp"
#include "engine/parts.hpp"

namespace holdfast::engine {

namespace {
constexpr uint64_t fold_round_bytes = 16 << 20;  // of the file, in one round of folding in

Parts parts_of(const Intervals& covered) { return {covered.ranges().begin(), covered.ranges().end()}; }
}  // namespace

// Outside commits, at the row's owner: a row that all ranks' pieces together make whole is coded once and goes to its place.
Status File::write_if_whole(uint64_t row, std::span<const OutExtent> pieces, std::vector<uint64_t>& written) {
  const layout::Geometry& g = reader_.geometry();
  const uint64_t row_bytes = g.row_bytes(), begin = row * row_bytes;
  Intervals covered;
  for (const OutExtent& piece : pieces) covered.add(piece.offset - begin, piece.offset - begin + piece.length);
  if (!covered.covers(0, row_bytes)) return Status();
  Status status;
  if (!may_write_in_place(row, status)) return status;
  Buffer buffer(row_bytes);
  if (!buffer.valid()) return Status(Kind::internal, fmt::format("no memory for a row of {} bytes of {}", row_bytes, located_.manifest.path));
  for (const OutExtent& piece : pieces) std::memcpy(buffer.data() + (piece.offset - begin), piece.from, piece.length);
  const CodedRow coded = writer_.code(image_of(row, buffer.data(), g, row_bytes), session_);
  HF_TRY(writer_.write_in_place(std::span(&coded, 1)));
  direct_.add(row, now_ns());
  written.push_back(row);
  return Status();
}

// What the row holds beside the commit's own pieces, read under the lock: nothing that was remembered counts.
Status File::read_base(uint64_t row, uint64_t valid, const Intervals& covered, const Fold& how, Buffer& buffer) {
  auto now = reader_.record(row);
  auto in_place = records_.get(row);
  if (!now.ok() || !in_place.ok()) return now.ok() ? in_place.status() : now.status();
  const auto journal = journals_.rows().find(row);
  const RowRange whole{row, 0, valid, buffer.data()};
  if (journal != journals_.rows().end() && in_place->generation == session_) {
    // This opener was the lone one and wrote the whole row, not knowing that another one was committing parts of it. The later goes over
    // the earlier.
    HF_TRY(reader_.read_in_place(std::span(&whole, 1)));
    const auto written = how.direct_times.find(row);
    const Intervals later = journals_.vouched_since(row, written == how.direct_times.end() ? 0 : written->second);
    for (const auto& [begin, end] : later.ranges()) {
      if (begin >= valid) continue;
      const RowRange theirs{row, begin, std::min(end, valid) - begin, buffer.data() + begin};
      HF_TRY(reader_.read(std::span(&theirs, 1)));
    }
    return Status();
  }
  if (covered.covers(0, valid) || now->hole()) return Status();
  // What the lone opener may be writing at this moment is its own to merge, at its own commit.
  if (how.defer && now->generation != session_ && !located_.manifest.is_synced(now->generation) && journal == journals_.rows().end()) return Status();
  if (current_meter) Meter::add(current_meter->read_modify_writes, 1);
  return reader_.read(std::span(&whole, 1));
}

// A row at its owner: all ranks' pieces over what the row held, coded once.
Status File::fold_row(uint64_t row, std::span<const OutExtent> pieces, const Fold& how) {
  const layout::Geometry& g = reader_.geometry();
  const uint64_t row_bytes = g.row_bytes(), begin = row * row_bytes;
  const uint64_t valid = std::min(row_bytes, how.file_end > begin ? how.file_end - begin : 0);
  if (valid == 0) return Status();
  Buffer buffer(row_bytes);
  if (!buffer.valid()) return Status(Kind::internal, fmt::format("no memory for a row of {} bytes of {}", row_bytes, located_.manifest.path));
  Intervals covered;
  for (const OutExtent& piece : pieces) covered.add(piece.offset - begin, piece.offset - begin + piece.length);
  if (!buffer.fresh() && !covered.covers(0, row_bytes)) std::memset(buffer.data(), 0, row_bytes);
  HF_TRY(read_base(row, valid, covered, how, buffer));
  for (const OutExtent& piece : pieces) std::memcpy(buffer.data() + (piece.offset - begin), piece.from, piece.length);
  // A cut (set_size) folds zeros in; nothing beyond the new end may stay.
  if (covered.end() > valid) std::memset(buffer.data() + valid, 0, covered.end() - valid);
  const CodedRow coded = writer_.code(image_of(row, buffer.data(), g, valid), how.generation);
  auto in_place = records_.get(row);
  if (!in_place.ok()) return in_place.status();
  const bool synced_in_place = located_.manifest.is_synced(in_place->generation);
  const bool in_journal = journals_.holds(row);
  if (!synced_in_place && !in_journal && !how.defer && !how.journal_all) return writer_.write_in_place(std::span(&coded, 1));
  if (!how.defer || synced_in_place) return how.journal.append(coded);
  // The lone opener may write this row whole at any time: it has to know which bytes are not its own, and since when. Journals of before
  // stay until then and vouch for theirs.
  return how.journal.append(coded, parts_of(covered));
}

// Collective: when rows of others' journals were last written whole by any rank of this opener, the lone one until now.
std::map<uint64_t, uint64_t> File::direct_times(exchange::Exchange& ranks) {
  std::map<uint64_t, uint64_t> times;
  if (!lone() || located_.manifest.journals.empty()) return times;  // the same on all ranks
  std::vector<std::pair<uint64_t, uint64_t>> mine;
  for (const auto& [row, record] : journals_.rows())
    if (const uint64_t time = direct_.time_of(row)) mine.emplace_back(row, time);
  for (const Bytes& bytes : ranks.all_gather(std::as_bytes(std::span(mine)))) {
    std::vector<std::pair<uint64_t, uint64_t>> theirs(bytes.size() / sizeof(mine[0]));
    if (!bytes.empty()) std::memcpy(static_cast<void*>(theirs.data()), bytes.data(), bytes.size());
    for (const auto& [row, time] : theirs) times[row] = std::max(times[row], time);
  }
  return times;
}

// Collective. Where two ranks have written the same row whole since the last commit, its units may be of both, and no record describes them.
// MPI leaves those bytes unsaid; the row must be one that can be read.
Status File::choose_among_rows_written_twice(exchange::Exchange& ranks) {
  std::vector<std::vector<uint64_t>> rows(ranks.size());
  direct_.each_row([&](uint64_t row) { rows[layout::owner_of_row(row, ranks.size(), settings_.cb_nodes)].push_back(row); });
  std::vector<Bytes> messages;
  for (const auto& list : rows) {
    const auto view = std::as_bytes(std::span(list));
    messages.emplace_back(view.begin(), view.end());
  }
  std::vector<uint64_t> all;
  for (const Bytes& bytes : ranks.all_to_all(std::move(messages))) {
    const size_t before = all.size();
    all.resize(before + bytes.size() / sizeof(uint64_t));
    if (!bytes.empty()) std::memcpy(all.data() + before, bytes.data(), bytes.size());
  }
  std::sort(all.begin(), all.end());
  Status status;
  for (auto at = std::adjacent_find(all.begin(), all.end()); at != all.end() && status.ok(); at = std::adjacent_find(at, all.end())) {
    const uint64_t row = *at;
    at = std::upper_bound(at, all.end(), row);
    status = code_as_it_lies(row);
  }
  return status;
}

// Also where all of it verifies: another target's record may be the other rank's.
Status File::code_as_it_lies(uint64_t row) {
  const layout::Geometry& g = reader_.geometry();
  auto record = records_.get(row);
  if (!record.ok()) return record.status();
  if (record->generation != session_ || record->hole()) return Status();
  const auto units = reader_.read_units_in_place(*record, members_.available());
  RowImage image{row, {}, g.row_bytes()};
  for (int data = 0; data < g.scheme.k; ++data) {
    for (size_t unit = size_t(data); unit < (g.scheme.k == 1 ? units.size() : size_t(data) + 1); ++unit)
      if (units[unit]->status.ok() && int(image.data.size()) == data) image.data.push_back(units[unit]->buffer.data());
    if (int(image.data.size()) == data) image.data.push_back(nullptr);
  }
  // Out of reach: rebuilt where the rest is of one rank alone, else zeros, for these bytes are unsaid.
  Buffer rebuilt(g.row_bytes());
  if (!rebuilt.valid()) return Status(Kind::internal, fmt::format("no memory for a row of {} bytes of {}", g.row_bytes(), located_.manifest.path));
  if (std::count(image.data.begin(), image.data.end(), nullptr)) {
    const RowRange all{row, 0, g.row_bytes(), rebuilt.data()};
    const bool of_one = reader_.read_in_place(std::span(&all, 1)).ok();
    if (!of_one) std::memset(rebuilt.data(), 0, g.row_bytes());
    for (size_t data = 0; data < image.data.size(); ++data)
      if (of_one || !image.data[data]) image.data[data] = rebuilt.data() + data * g.unit_bytes;
  }
  const CodedRow coded = writer_.code(image, session_);
  return writer_.write_in_place(std::span(&coded, 1));
}

// Rows of others' journals that this opener, the lone one until now, has written whole since: theirs go over its own.
Status File::fold_own_under_journals(exchange::Exchange& ranks, const Fold& how) {
  if (how.defer || !lone()) return Status();
  std::vector<uint64_t> rows;
  for (const auto& [row, record] : journals_.rows())
    if (layout::owner_of_row(row, ranks.size(), settings_.cb_nodes) == ranks.rank() && !how.folded.contains(row)) rows.push_back(row);
  for (uint64_t row : rows) {
    auto in_place = records_.get(row);
    if (!in_place.ok()) return in_place.status();
    if (in_place->generation == session_) HF_TRY(fold_row(row, {}, how));
  }
  return Status();
}

// In rounds of rows that all ranks agree on. What is parked is read a round at a time, and all ranks' pieces of a row meet in
// one round. Everything stays pending until the commit has come to its end.
Status File::fold_pending(exchange::Exchange& ranks, std::vector<OutExtent> more, const Fold& how) {
  const uint64_t row_bytes = reader_.geometry().row_bytes(), rows_in_round = std::max<uint64_t>(1, fold_round_bytes / row_bytes);
  Status status;
  auto next_pending = pending_.rows().begin();
  size_t next_more = 0;
  for (;;) {
    int64_t first = std::numeric_limits<int64_t>::max();
    if (next_more < more.size()) first = int64_t(more[next_more].offset / row_bytes);
    if (next_pending != pending_.rows().end()) first = std::min(first, int64_t(next_pending->first));
    first = -ranks.all_max({-first})[0];
    if (first == std::numeric_limits<int64_t>::max()) break;
    const uint64_t end = uint64_t(first) + rows_in_round;
    std::vector<OutExtent> out;
    std::vector<std::unique_ptr<Buffer>> rooms;
    for (; next_pending != pending_.rows().end() && next_pending->first < end; ++next_pending) {
      auto bytes = pending_.bytes_of(next_pending->second, rooms.emplace_back());
      if (!bytes.ok()) {
        if (status.ok()) status = bytes.status();
        continue;
      }
      for (const Pending::Write& piece : next_pending->second.pieces)
        out.push_back({next_pending->first * row_bytes + piece.begin, piece.end - piece.begin, *bytes + piece.begin, piece.time_ns});
    }
    for (; next_more < more.size() && more[next_more].offset / row_bytes < end; ++next_more) out.push_back(more[next_more]);
    Status folded =
        exchange_rows(ranks, settings_.cb_nodes, reader_.geometry(), std::move(out), [&](uint64_t row, std::span<const OutExtent> pieces) {
          how.folded.insert(row);
          return fold_row(row, pieces, how);
        });
    if (status.ok()) status = folded;
  }
  if (status.ok()) status = fold_own_under_journals(ranks, how);
  return status;
}

}  // namespace holdfast::engine
