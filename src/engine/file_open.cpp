// Opening a protected file, and what its opener learns of others afterwards.
#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "base/meter.hpp"
#include "base/shell_word.hpp"
#include "engine/agreement.hpp"
#include "engine/file.hpp"
#include "engine/object_sizes.hpp"
#include "engine/plausible.hpp"
#include "engine/waiting.hpp"

namespace holdfast::engine {

using layout::Manifest;

namespace {
constexpr size_t most_running_writers = 256;  // a commit may need a generation of its own beside the session's
}  // namespace

File::File(catalog::Located located, Purpose access, const Settings& settings, exchange::Exchange& ranks)
    : located_(std::move(located)),
      access_(access),
      settings_(settings),
      ranks_(ranks),
      alone_(exchange::make_solo()),
      members_(located_, settings),
      records_(members_, located_),
      journals_(members_, records_, located_),
      writer_(members_, records_, located_),
      reader_(members_, records_, located_, journals_, *this, ranks.rank()),
      spill_(members_, located_, ranks.rank()),
      pending_(located_.manifest.geometry.row_bytes(), settings.buffer_bytes, spill_) {}

// Nobody can say so whose manifest may be old.
bool File::have_not_synced(uint64_t generation) const {
  return manifest_is_current_ && generation != session_ && !located_.manifest.is_synced(generation);
}

bool File::look_again() {
  auto reading = read_manifest(members_, located_, settings_);
  manifest_is_current_ = reading.ok() && members_.lost_count() <= located_.manifest.geometry.scheme.m;
  if (reading.ok() && reading->manifest.epoch != located_.manifest.epoch) {
    const uint64_t known = located_.manifest.size;
    located_.manifest = std::move(reading->manifest);
    // What others have cut off is no hole. Where more than was committed is known, ranks have written behind it since.
    if (located_.manifest.size < known && file_end_ <= known) file_end_ = std::max(own_end_, located_.manifest.size);
    // A commit has left them behind: their records are old, perhaps of the same generation.
    lose_members_left_behind(members_, located_, located_.manifest);
    use_journals();
  }
  forget_rows();
  return true;
}

Result<std::unique_ptr<ProtectedFile>> ProtectedFile::open(catalog::Located located, Purpose access, const Settings& settings,
                                                           exchange::Exchange& exchange) {
  auto file = std::make_unique<File>(std::move(located), access, settings, exchange);
  HF_TRY(file->begin());
  return std::unique_ptr<ProtectedFile>(std::move(file));
}

// Commits that were cut short, that waited for a lone opener which is dead by now, or were made in atomic mode. Their rows and sizes take
// their place. Not while another opener may write outside the lock.
Status File::finish_commits(Manifest& manifest) {
  if ((manifest.lone != 0 && manifest.lone != opener_) || (manifest.journals.empty() && !manifest.cut_to)) return Status();
  // Nothing that was synced is overwritten or cut before that which says so is durable.
  for (const std::string& name : manifest.journals) sync_journal(members_, located_, name);
  HF_TRY(write_manifest(members_, located_, manifest, true));
  // What journals have behind a cut that was broken off was committed after it.
  if (manifest.cut_to) cut_under(members_, located_, *manifest.cut_to, manifest.size, records_.slot_bytes());
  for (const std::string& name : manifest.journals) replay_journal(members_, records_, located_, name);
  if (manifest.cut_to) cut_objects(members_, located_, manifest.size, records_.slot_bytes());
  members_.each([&](int member) -> MemberCall {
    return [trim = trim_call(located_, member, manifest.size)](MemberHandle& handle) {
      HF_TRY(trim(handle));
      return handle.settle(true);
    };
  });
  manifest.journals.clear();
  manifest.cut_to.reset();
  return Status();
}

// A writer's open: a generation of its own, what others left finished, losses written down.
Status File::begin_writing(Manifest& manifest, const Others& others) {
  if (manifest.open_generations.size() + most_running_writers > layout::max_open_generations)
    return Status(Kind::busy,
                  fmt::format("{}: {} writers of it were killed or are still running, more than its manifest can note; when none runs, run: holdfast "
                              "repair {}",
                              manifest.path, manifest.open_generations.size(), shell_word(manifest.path)));
  if (!others.lone_alive) manifest.lone = 0;
  const std::vector<std::string> left = manifest.journals;
  HF_TRY(finish_commits(manifest));
  const bool finished = manifest.journals.empty() && !left.empty();
  opener_ = manifest.next_generation++;
  manifest.open_generations.push_back(opener_);
  if (!others.alive) manifest.lone = opener_;
  auto presence = announce_opener(members_, located_, opener_);
  if (!presence.ok()) return presence.status();
  presence_ = std::move(*presence);
  if (ranks_.size() > 1) {
    auto leader = announce_leader(members_, located_, opener_);
    if (!leader.ok()) return leader.status();
    leader_ = std::move(*leader);
  }
  // Durable, so that after a power failure nobody takes this session's records for those of a generation that was synced. A
  // new file has none that could be.
  const bool durable = finished || (!access_.fresh && !settings_.fast_close);
  HF_TRY(write_manifest(members_, located_, manifest, durable));
  if (finished)
    for (const std::string& name : left) remove_journal(members_, located_, name);
  return Status();
}

// Reads what is there now. Also of a file just made: another opener may have found it and written before this one got the lock.
Status File::read_at_open(Manifest& manifest) {
  auto reading = read_manifest(members_, located_, settings_);
  if (!reading.ok()) return access_.fresh ? Status() : reading.status();
  lose_stale_members(members_, *reading);
  manifest = std::move(reading->manifest);
  manifest.path = located_.path_now(manifest);
  return Status();
}

// A creation that lost power may have left no place for locks and manifests on some members.
void File::make_missing_directories() {
  if (access_.fresh || located_.single() || !located_.manifest.never_synced()) return;
  (void)members_.ask_each([this](int) -> MemberCall {
    return [directory = located_.manifest.directory](MemberHandle& handle) { return handle.target().make_directory(directory); };
  });
}

// Who has made the file to write it is in its first manifest. Others may have opened it since: to them it is the opener before them.
Result<Manifest> File::begin_as_maker() {
  opener_ = located_.manifest.open_generations.back();
  if (ranks_.size() > 1) {
    auto leader = announce_leader(members_, located_, opener_);
    if (!leader.ok()) return leader.status();
    leader_ = std::move(*leader);
  }
  return located_.manifest;
}

namespace {

// The generation of who made the file, where not every target took the manifest that names it: the open is like any other one then. Nobody has written
// under it, and nobody will.
std::optional<uint64_t> given_up_by_maker(const catalog::Located& made) {
  const auto& open = made.manifest.open_generations;
  const bool lacks_some = std::any_of(made.members.begin(), made.members.end(), [](const catalog::Member& member) { return !member.usable(); });
  return lacks_some && open.size() == 1 ? std::optional(open.front()) : std::nullopt;
}

}  // namespace

Result<Manifest> File::begin_on_rank_0() {
  Manifest manifest = located_.manifest;
  if (!access_.write) {
    HF_TRY(read_at_open(manifest));
    // A reader holds no lock: a job that cuts the file in between makes a true manifest look forged.
    if (!check_plausible(members_, located_, manifest).ok()) HF_TRY(check_plausible(located_, settings_));
    return manifest;
  }
  HF_TRY(located_.read_only);
  if (access_.fresh && !located_.opener.empty()) return begin_as_maker();
  const std::optional<uint64_t> given_up = access_.fresh ? given_up_by_maker(located_) : std::nullopt;
  make_missing_directories();
  Others others;
  auto locks = lock_file(members_, located_, [&]() -> Result<bool> {
    HF_TRY(read_at_open(manifest));
    if (given_up) std::erase(manifest.open_generations, *given_up);
    located_.manifest = manifest;
    others = others_may_write(manifest, 0) ? other_openers(members_, located_, manifest.lone, 0) : Others();
    return !others.without_leader;
  });
  if (!locks.ok()) return locks.status();
  HF_TRY(check_plausible(members_, located_, manifest));
  if (manifest.is_final())
    return Status(Kind::stale, fmt::format("{}: has become a version of a checkpoint, which never changes", manifest.path), ESTALE);
  HF_TRY(begin_writing(manifest, others));
  return manifest;
}

Status File::begin() {
  const LayerTime measured;
  HF_TRY(agree(ranks_, members_, Status()));
  Result<Manifest> mine(Status(Kind::internal, "rank 0 reads the manifest"));
  if (ranks_.rank() == 0) mine = begin_on_rank_0();
  auto manifest = share_manifest(ranks_, mine);
  if (!manifest.ok()) return manifest.status();
  located_.manifest = std::move(*manifest);
  lose_members_left_behind(members_, located_, located_.manifest);  // a repair may have come between the ranks' looks for the file
  Status announced;
  if (access_.write) {
    opener_ = session_ = located_.manifest.open_generations.back();
    spill_.belong_to(opener_);
    // Rank 0 holds it since before the manifest named the session; the others before any of them writes.
    if (ranks_.rank() != 0) {
      auto presence = announce_opener(members_, located_, opener_);
      announced = presence.status();
      if (presence.ok()) presence_ = std::move(*presence);
    }
  }
  HF_TRY(agree_outside_commit(announced));
  forget_rows();
  use_journals();
  file_end_ = located_.manifest.size;
  if (access_.read && file_end_ > 0) open_ahead();
  return Status();
}

// The data objects are opened in their lanes while the program goes on; nobody waits for that. What is open can be read from
// memory without a lane.
void File::open_ahead() {
  const layout::Geometry& g = located_.manifest.geometry;
  if (g.is_wide()) return;  // most of them may never be asked
  for (int member = 0; member < members_.count(); ++member)
    for (int object = 0; members_.available(member) && object < layout::object_count(g); ++object)
      if (layout::holds(g, member, object))
        (void)members_.submit(member, [name = located_.data_name(object)](MemberHandle& handle) {
          return handle.object(name, target::OpenMode::read).status();
        });
}

// Rank-local: adopts what other openers and ranks have committed since.
Status File::adopt_commits() {
  auto reading = read_manifest(members_, located_, settings_);
  if (!reading.ok()) return reading.status();
  lose_stale_members(members_, *reading);
  const uint64_t known_generation = located_.manifest.next_generation;
  if (reading->manifest.epoch != located_.manifest.epoch) located_.manifest = std::move(reading->manifest);
  look_anew(known_generation);
  // Also where a read in between has adopted the manifest.
  file_end_ = std::max(own_end_, located_.manifest.size);
  return Status();
}

void File::forget_rows() {
  records_.forget_all();
  members_.reopen_cached();
}

void File::look_anew(uint64_t known_generation) {
  forget_rows();
  // Handles read what their node has in memory; another node's writes show only after an open (close-to-open).
  if (located_.manifest.next_generation != known_generation) members_.reopen_objects();
  use_journals();
}

// Who holds no lock may have read the manifest before a commit took the journals away, and look for them after.
void File::use_journals() {
  for (int again = 0; !journals_.follow_manifest() && again < most_looks_again; ++again) {
    auto reading = read_manifest(members_, located_, settings_);
    if (!reading.ok() || reading->manifest.epoch == located_.manifest.epoch) return;
    located_.manifest = std::move(reading->manifest);
    lose_members_left_behind(members_, located_, located_.manifest);
    journals_.forget();
    forget_rows();
  }
}

std::vector<int> File::lost_members() const {
  std::vector<int> lost;
  for (int member = 0; member < members_.count(); ++member)
    if (!members_.available(member)) lost.push_back(member);
  return lost;
}

}  // namespace holdfast::engine
