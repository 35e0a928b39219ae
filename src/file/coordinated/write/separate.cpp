#include "file/coordinated/write/separate.hpp"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "coding/checksum.hpp"
#include "file/coordinated/coordinated.hpp"
#include "layout/part.hpp"

namespace holdfast::file {

namespace {

struct Placed {
  uint64_t id = 0;
  std::string place;
};

Bytes packed_place(uint64_t id, const std::string& place) {
  Bytes bytes(sizeof id + place.size());
  std::memcpy(bytes.data(), &id, sizeof id);
  std::memcpy(bytes.data() + sizeof id, place.data(), place.size());
  return bytes;
}

Placed placed_in(ByteView bytes) {
  Placed placed;
  if (bytes.size() < sizeof placed.id) return placed;
  std::memcpy(&placed.id, bytes.data(), sizeof placed.id);
  bytes = bytes.subspan(sizeof placed.id);
  placed.place.assign(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  return placed;
}

uint64_t drawn_id() {
  uint64_t id = 0;
  while (id == 0 && syscall(SYS_getrandom, &id, sizeof id, 0) != ssize_t(sizeof id)) {
  }
  return id;
}

}  // namespace

void PartsOfFile::split(uint64_t at) {
  auto after = sources_.lower_bound(at);
  if (after == sources_.begin()) return;
  auto& [begin, source] = *std::prev(after);
  if (source.end <= at) return;
  sources_.emplace_hint(after, at, Source{source.end, source.team, source.at + (at - begin)});
  source.end = at;
}

void PartsOfFile::add(const Extent& extent, int team, uint64_t at) {
  if (extent.length == 0) return;
  split(extent.offset);
  split(extent.end());
  sources_.erase(sources_.lower_bound(extent.offset), sources_.lower_bound(extent.end()));
  sources_.emplace(extent.offset, Source{extent.end(), team, at});
}

bool SeparateWrites::suits(const Common& file, std::span<const Extent> extents, ByteView data) {
  return redundant::Sharing::of(file.replica) && data.size() >= least_shared && extents.size() <= layout::most_part_extents;
}

// The first write of a series finds the parts' place. They count when the note is there, at the end of that write. One that fails leaves records that
// another one with its number must not meet.
std::optional<Outcome> SeparateWrites::write(const Common& file, std::span<const Extent> extents, ByteView data) {
  if (is_over_) return std::nullopt;
  auto* const sharing = redundant::Sharing::of(file.replica);
  redundant::Claim claim{.call = uint64_t(Call::write), .at = extents[0].offset, .bytes = data.size(), .sum = sum_of(extents, data)};
  const bool is_first = number_ == 0;
  const Outcome agreed = file.meet(claim, "a write", [&](const redundant::Turn&) {
    const uint64_t living = sharing->living().teams;
    if (!is_first) return Outcome{.value = living == teams_ ? living : 0};
    const Result<std::string> place = parts_->place();
    if (!place || std::popcount(living) < 2) return Outcome();
    return Outcome{.value = living, .payload = packed_place(drawn_id(), *place)};
  });
  if (!agreed.status.ok()) return agreed;
  if (agreed.value == 0) return std::nullopt;
  if (is_first) {
    const Placed placed = placed_in(agreed.payload);
    teams_ = agreed.value, id_ = placed.id;
    parts_->attend(placed.id, placed.place, teams_);
  }
  const Chunks chunks = chunks_of(extents, data);
  claim.view = uint64_t(write_own(file, chunks, data).to_errno());
  claim.call = uint64_t(Call::end_of_write);
  const Outcome ended = file.meet(claim, "the end of a write", [&](const redundant::Turn& turn) {
    const bool all_have_written = claim.view == 0 && turn.same_view && !turn.again && sharing->living().teams == teams_;
    const bool done = all_have_written && (!is_first || parts_->make_note().ok());
    if (!done && is_first) (void)parts_->remove();
    return Outcome{.value = done};
  });
  if (!ended.status.ok()) return ended;
  if (ended.value == 0) {
    is_over_ = !is_first;
    if (is_first) forget();
    return std::nullopt;
  }
  take_in(chunks);
  return Outcome();
}

// What each team writes, and where in its part.
SeparateWrites::Chunks SeparateWrites::chunks_of(std::span<const Extent> extents, ByteView data) const {
  Chunks chunks;
  for (uint64_t left = teams_; left != 0; left &= left - 1) {
    const int team = std::countr_zero(left);
    const Share share = share_of(data.size(), teams_, team);
    if (share.begin == share.end) continue;
    const auto end = ends_.find(team);
    chunks.push_back({team, end == ends_.end() ? 0 : end->second, share, part_of(extents, share.begin, share.end)});
  }
  return chunks;
}

Status SeparateWrites::write_own(const Common& file, const Chunks& chunks, ByteView data) const {
  const auto mine = std::find_if(chunks.begin(), chunks.end(), [&](const Chunk& one) { return one.team == file.replica.place().team; });
  if (mine == chunks.end()) return Status();
  const ByteView bytes = data.subspan(mine->share.begin, mine->share.end - mine->share.begin);
  const Bytes head = layout::encode(layout::PartRecord{.id = id_,
                                                       .number = number_ + 1,
                                                       .call_bytes = data.size(),
                                                       .begin = mine->share.begin,
                                                       .bytes = bytes.size(),
                                                       .checksum = coding::plain_checksum(bytes),
                                                       .extents = mine->extents});
  return parts_->write(mine->at, head, bytes);
}

void SeparateWrites::take_in(const Chunks& chunks) {
  ++number_;
  for (const Chunk& chunk : chunks) {
    uint64_t at = chunk.at + layout::part_head_bytes(chunk.extents.size());
    for (const Extent& extent : chunk.extents) all_.add(extent, chunk.team, at), at += extent.length;
    ends_[chunk.team] = chunk.at + layout::part_record_bytes(chunk.extents.size(), chunk.share.end - chunk.share.begin);
  }
}

void SeparateWrites::forget() {
  parts_->let_go();
  teams_ = number_ = id_ = 0;
  is_over_ = false;
  ends_.clear();
  all_ = {};
}

// Each replica copies what its part has of the newest bytes. Where one was lost or cannot, the leader does all of it: it can be done twice.
Result<uint64_t> SeparateWrites::join(const Common& file, const std::function<Status()>& repeat) {
  auto* const sharing = redundant::Sharing::of(file.replica);
  redundant::Claim claim{.call = uint64_t(Call::join), .at = number_, .bytes = all_.bytes()};
  const Outcome agreed = file.meet(claim, "a join", [&](const redundant::Turn&) { return Outcome{.value = sharing->living().teams}; });
  HF_TRY(agreed.status);
  const int team = file.replica.place().team;
  const Status mine = teams_ & agreed.value & redundant::team_bit(team) ? copy(file.below, team) : Status();
  claim.call = uint64_t(Call::end_of_join);
  claim.view = uint64_t(mine.to_errno());
  const Outcome ended = file.meet(claim, "the end of a join", [&](const redundant::Turn& turn) {
    if (turn.again && !parts_->has_note()) return Outcome{parts_->remove()};  // a lost leader has come this far
    const bool all_have = mine.ok() && turn.same_view && !turn.again && sharing->living().teams == agreed.value && !(teams_ & ~agreed.value);
    const Status joined = all_have ? Status() : repeat ? repeat() : copy(file.below, std::nullopt);
    return Outcome{joined.ok() ? parts_->remove() : joined, all_have ? teams_ : 0};
  });
  HF_TRY(ended.status);
  forget();
  removed_ = true;
  return ended.value;
}

// All of them: where nobody's loss has taken bytes of a part along.
Status SeparateWrites::copy(FileLayer& below, std::optional<int> team) const {
  for (const auto& [begin, source] : all_.sources())
    if (!team || source.team == *team) HF_TRY(parts_->join(source.team, source.at, {begin, source.end - begin}, below));
  return Status();
}

Status SeparateWrites::make_removals_durable() { return std::exchange(removed_, false) ? parts_->make_removals_durable() : Status(); }

}  // namespace holdfast::file
