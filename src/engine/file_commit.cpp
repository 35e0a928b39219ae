// Commits: what a session has written becomes the file's, for everybody and for good. Each is made under the file's lock, from what was
// read under it.
#include <algorithm>
#include <cstring>
#include <optional>
#include <set>

#include <fmt/format.h>

#include "base/meter.hpp"
#include "base/spare_numbers.hpp"
#include "catalog/environment.hpp"
#include "engine/agreement.hpp"
#include "engine/file.hpp"
#include "engine/file_fold.hpp"
#include "engine/object_limit.hpp"
#include "engine/object_sizes.hpp"

namespace holdfast::engine {

using layout::Manifest;

Status File::settle_all(exchange::Exchange& ranks, bool durable, const Status& before, const std::optional<StagedManifest>& staged) {
  // Agents make several things durable by themselves.
  int near = 0;
  for (int member = 0; member < members_.count(); ++member) near += members_.available(member) && !members_.is_far(member);
  if (durable && near > 0) catalog::environment().help_targets(near);
  if (before.ok())
    members_.each([&](int member) -> MemberCall {
      return [durable, stage = staged ? stage_call(located_, member, *staged) : MemberCall()](MemberHandle& handle) {
        if (stage) HF_TRY(stage(handle));
        return handle.settle(durable);
      };
    });
  HF_TRY(agree(ranks, members_, before));
  const Status enough = check_losses(members_, located_.manifest);
  if (enough.ok() || members_.contested() || !members_.lost_for_space()) return enough;
  return Status(Kind::no_space, enough.sentence());
}

namespace {

// From the first row that is written until what was written is settled, nobody but this rank has to see it. Other ranks may have to, in between.
class HeldWrites {
 public:
  HeldWrites(Members& members, const exchange::Exchange& ranks) : members_(members) { members_.hold_writes(ranks.size() == 1); }
  HeldWrites(const HeldWrites&) = delete;
  ~HeldWrites() { members_.hold_writes(false); }

 private:
  Members& members_;
};

}  // namespace

// By rank 0 (or the one rank that commits alone), under the file's lock: what others have committed. False where it is not one's turn.
Result<bool> File::read_for_commit(Manifest& manifest) {
  auto reading = read_manifest(members_, located_, settings_);
  if (!reading.ok()) return reading.status();
  lose_stale_members(members_, *reading);
  manifest = std::move(reading->manifest);
  manifest.path = located_.path_now(manifest);
  manifest.path_state = located_.manifest.path_state;
  const auto& open = manifest.open_generations;
  nobody_came_ = manifest.next_generation == session_ + 1 && std::find(open.begin(), open.end(), session_) != open.end();
  const Others others = nobody_came_ && open.size() == 1 ? Others() : other_openers(members_, located_, manifest.lone, opener_);
  others_alive_ = others.alive;
  if (manifest.lone != opener_ && !others.lone_alive) manifest.lone = 0;
  return !others.without_leader;
}

// Excludes other openers and starts from what they committed.
Result<Manifest> File::start_commit(Locks& locks, const Commit& how) {
  Manifest manifest;
  if (how.locked) {
    HF_TRY(read_for_commit(manifest).status());
  } else {
    auto got = lock_file(members_, located_, [&] { return read_for_commit(manifest); });
    if (!got.ok()) return got.status();
    locks = std::move(*got);
  }
  auto& open = manifest.open_generations;
  if (nobody_came_ && !how.keep_session) return manifest;
  // The record of the highest generation counts, and others have committed, or will, under higher ones than this session's. Where rows are
  // to go in place a manifest names the new one first: no two commits may write records of the same generation.
  open.push_back(manifest.next_generation++);
  const bool in_place = manifest.lone == 0 || manifest.lone == opener_;
  if (in_place && !how.keep_session) HF_TRY(write_manifest(members_, located_, manifest, how.durable));
  return manifest;
}

// Whether rows may be written whole, outside the lock, while this commit goes on: by another opener, or by this one's other ranks.
bool File::lone_may_write(exchange::Exchange& ranks) const {
  if (located_.manifest.lone == 0) return false;
  return !lone() || (ranks.size() != ranks_.size() && !atomic_);
}

// A row in place that a writer has left there that was killed: nobody has synced it, and it may reach beyond any size.
bool File::left_by_the_dead(uint64_t row) {
  if (located_.manifest.lone != 0 && !lone()) return false;  // it may be a living one's
  auto record = records_.get(row);
  return record.ok() && !record->hole() && record->generation != session_ && !located_.manifest.is_synced(record->generation);
}

// By the commit's rank 0: what lay beyond the new end in its last row must read as zeros if the file grows again.
std::vector<OutExtent> File::zeros_behind_end(const Commit& how, uint64_t end_of_all, Bytes& zeros) {
  const uint64_t row_bytes = reader_.geometry().row_bytes(), old_end = std::max(end_of_all, located_.manifest.size);
  if (!how.new_size || *how.new_size % row_bytes == 0) return {};
  if (*how.new_size >= old_end && !left_by_the_dead(*how.new_size / row_bytes)) return {};
  zeros.resize(row_bytes);
  return {{*how.new_size, round_up(*how.new_size, row_bytes) - *how.new_size, zeros.data(), now_ns()}};
}

// The same, and what lies in this commit's rows behind an end (`cut_to`) whose maker was killed before it cut the objects. They cannot be cut
// before this commit: the lone opener, this one or another, may have written rows there since.
std::vector<OutExtent> File::zeros_behind_cut(const Commit& how, uint64_t end_of_all, const Fold& fold, Bytes& zeros) {
  std::vector<OutExtent> last = zeros_behind_end(how, end_of_all, zeros), all;
  if (!located_.manifest.cut_to) return last;
  const uint64_t row_bytes = reader_.geometry().row_bytes();
  zeros.resize(row_bytes);
  for (uint64_t row = divide_up(*located_.manifest.cut_to, row_bytes); row < divide_up(fold.file_end, row_bytes); ++row)
    if (is_behind_cut(row, fold.defer)) all.push_back({row * row_bytes, row_bytes, zeros.data(), 0});
  all.insert(all.end(), last.begin(), last.end());
  return all;
}

// A row that was cut off and still lies there. Of a hole plain copies may have the bytes; but the lone opener may be writing it at this moment.
bool File::is_behind_cut(uint64_t row, bool defer) {
  if (journals_.holds(row)) return false;  // of a commit behind the cut, or a hole of it
  auto record = records_.get(row);
  if (!record.ok()) return false;
  return record->hole() ? !defer && is_plain(reader_.geometry(), 0) : located_.manifest.is_synced(record->generation);
}

// Whether nobody else can ever have written a record: the manifest that was read under the lock knows of no generation but this session's. Whatever
// this one has written in a commit that failed still waits with its ranks, and is written once more.
bool File::is_first_of_all() const {
  const Manifest& manifest = located_.manifest;
  return manifest.never_synced() && !manifest.cut_to && session_ == 1 && manifest.next_generation == 2 && manifest.open_generations.size() == 1;
}

// By rank 0, before the manifest says the size. The last row has a slot among the records, so that a sums object that was cut short can be told from
// one that ends in holes. Plain copies end where the file does. A file that becomes shorter is cut later, behind the manifest.
void File::lay_ends(const Manifest& manifest, const Fold& fold, bool durable) {
  // By this commit, and in place: nobody has to be asked.
  const bool just_written = manifest.rows == 0 || (fold.journal.empty() && fold.folded.contains(manifest.rows - 1));
  auto last = just_written ? Result<layout::RowRecord>(layout::RowRecord{0, fold.generation, {}}) : reader_.record(manifest.rows - 1);
  // A record that a killed session left may lie on some members only.
  const bool own = last.ok() && (last->generation == fold.generation || last->generation == session_);
  const bool grow = last.ok() && !own && !located_.manifest.is_synced(last->generation);
  const bool shorter = manifest.size < located_.manifest.size;
  const bool trim = !fold.defer && !shorter && manifest.size % reader_.geometry().block_bytes && is_plain(reader_.geometry(), 0);
  if (!grow && !trim) return;
  members_.each([&](int member) -> MemberCall {
    return [=, sums = records_.object_name(member), bytes = manifest.rows * records_.slot_bytes(),
            trim_end = trim_call(located_, member, manifest.size)](MemberHandle& handle) {
      if (grow) HF_TRY(handle.grow(sums, bytes));
      if (trim) HF_TRY(trim_end(handle));
      return handle.settle(durable);
    };
  });
}

// By rank 0, with the rows: of a wide file most members have no record of the last one. What they keep ends behind where it would be, too, so that what
// was cut short can be told from what has nothing there.
void File::lengthen_records(uint64_t end) {
  const uint64_t rows = divide_up(end, reader_.geometry().row_bytes());
  if (!reader_.geometry().is_wide() || rows <= located_.manifest.rows) return;
  const MemberSet holders = records_.holders(rows - 1);
  members_.each([&](int member) -> MemberCall {
    if (holders.has(member)) return {};
    return [sums = records_.object_name(member), last = rows * records_.slot_bytes() - 1](MemberHandle& handle) {
      static constexpr std::byte nothing{};
      return handle.write_together({{sums, last, {{const_cast<std::byte*>(&nothing), 1}}}});
    };
  });
}

// By rank 0: the manifest that makes the session's and the commit's records synced, and names the journals that replace rows.
Result<Manifest> File::committed_manifest(const Commit& how, const Fold& fold, const std::vector<std::string>& journals) const {
  Manifest manifest = located_.manifest;
  manifest.size = fold.file_end;
  manifest.rows = divide_up(manifest.size, manifest.geometry.row_bytes());
  manifest.journals.insert(manifest.journals.end(), journals.begin(), journals.end());
  if (manifest.journals.size() > layout::max_journals)
    return Status(Kind::busy,
                  fmt::format("{}: too many commits wait for another program that has the file open; let it sync or close the file, or end it; if it "
                              "died on another node, run: holdfast repair --break-locks {}",
                              manifest.path, manifest.path));
  // What lies behind a cut that is still to be made is zeros by now (zeros_behind_cut), in place or as long as journals wait.
  if (how.new_size || manifest.cut_to)
    manifest.cut_to = fold.defer ? std::min(manifest.cut_to.value_or(manifest.size), manifest.size) : manifest.size;
  std::erase(manifest.open_generations, fold.generation);
  if (!how.keep_session) {
    std::erase(manifest.open_generations, session_);
    if (!how.final) manifest.open_generations.push_back(manifest.next_generation++);
  }
  if (!fold.defer) manifest.lone = others_alive_ || how.final ? 0 : opener_;
  return manifest;
}

// By rank 0, when all that the manifest speaks of is durable.
Result<Manifest> File::write_committed(const Commit& how, const Fold& fold, Result<Manifest> manifest) {
  if (!manifest.ok()) return manifest;
  lay_ends(*manifest, fold, how.durable);
  HF_TRY(write_manifest(members_, located_, *manifest, how.durable));
  return manifest;
}

// Collective. What one rank writes after it goes over what another has written before, on whichever nodes they are.
void File::write_back_together(exchange::Exchange& ranks) {
  if (ranks.size() > 1) members_.write_back();
  ranks.barrier();
}

// Collective, after the manifest that names the journals and the new size: the new rows take their place, and objects are cut.
Status File::finish_commit(exchange::Exchange& ranks, const Commit& how, const Fold& fold, Journal& journal) {
  const std::vector<std::string> named = located_.manifest.journals;
  // In atomic mode nothing is made durable before the next sync, and no synced row may be overwritten before its journal is.
  const bool stay = fold.defer || how.keep_session;
  const bool cuts = located_.manifest.cut_to && (how.new_size || !stay);
  if ((stay || named.empty()) && !cuts) return Status();
  Status status;
  std::optional<HeldWrites> held(std::in_place, members_, ranks);
  if (!stay) {
    // Those of before this commit first: a later one of the same row goes over them.
    if (ranks.rank() == 0)
      for (const std::string& name : journals_.known()) replay_journal(members_, records_, located_, name);
    write_back_together(ranks);
    if (!journal.empty()) journal.fold();
    write_back_together(ranks);
    if (ranks.rank() == 0) lay_ends(located_.manifest, fold, false);  // journals hold whole blocks
  }
  if (cuts && ranks.rank() == 0) status = cut(located_.manifest.size);
  HF_TRY(settle_all(ranks, how.durable, status));
  held.reset();
  Result<Manifest> cleared(Status(Kind::internal, "rank 0 clears"));
  if (ranks.rank() == 0) {
    Manifest manifest = located_.manifest;
    if (!stay) manifest.journals.clear();
    if (cuts && *manifest.cut_to == manifest.size) manifest.cut_to.reset();
    Status written = write_manifest(members_, located_, manifest, how.durable);
    cleared = written.ok() ? Result<Manifest>(std::move(manifest)) : Result<Manifest>(written);
  }
  HF_TRY(adopt(ranks, cleared));
  if (stay) return Status();
  journal.remove();
  if (ranks.rank() == 0)
    for (const std::string& name : journals_.known()) remove_journal(members_, located_, name);
  return Status();
}

Status File::adopt(exchange::Exchange& ranks, const Result<Manifest>& from_rank_0) {
  auto shared = share_manifest(ranks, from_rank_0);
  if (!shared.ok()) return shared.status();
  located_.manifest = std::move(*shared);
  lose_members_left_behind(members_, located_, located_.manifest);
  return Status();
}

// The names of all ranks' journals that hold anything.
std::vector<std::string> File::gather_journals(exchange::Exchange& ranks, const Journal& journal) {
  std::vector<std::string> names;
  const std::string mine = journal.empty() ? "" : journal.name();
  for (const Bytes& bytes : ranks.all_gather(std::as_bytes(std::span(mine))))
    if (!bytes.empty()) names.emplace_back(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  return names;
}

// Where the ranks' losses are contested nothing has been committed. All of it is made again once enough of the late members have come back. What
// waits in memory still waits, and rows are folded in, journals begun and objects cut as if it were the first time.
Status File::commit(exchange::Exchange& ranks, const Commit& how) {
  const bool wrote = dirty_ || !pending_.empty();
  // Other ranks wait for this one, and other openers where it holds the file's lock.
  std::optional<raw::CommitTurn> turn;
  if (located_.descriptors) turn.emplace(located_.descriptors->in_commit(), ranks.size() == 1 && !how.locked);
  Status status = try_commit(ranks, how);
  Patience patience(settings_);
  while (!status.ok() && members_.contested() && ranks.size() > 1 && !how.locked)
    status = wait_for_late(patience) ? try_commit(ranks, how) : check_losses(members_, located_.manifest);
  if (committed_) commit_failed_ = !status.ok();
  if (wrote && status.ok() && located_.descriptors) located_.descriptors->opened();
  return status;
}

Status File::try_commit(exchange::Exchange& ranks, const Commit& how) {
  std::vector<int64_t> facts{int64_t(own_end_), dirty_ || !pending_.empty(), how.new_size || how.forced || how.final, !direct_.empty()};
  const auto own_losses = members_.losses();
  facts.insert(facts.end(), own_losses.begin(), own_losses.end());
  facts = ranks.all_max(std::move(facts));
  committed_ = facts[1] || facts[2];
  if (!committed_) return Status();
  // Before rank 0 writes down its own: what a manifest calls lost stays so.
  if (ranks.size() > 1 && count_losses(std::span(facts).last(own_losses.size())).contested(members_.may_miss())) {
    members_.set_contested(true);
    return check_losses(members_, located_.manifest);
  }
  Locks locks;
  Result<Manifest> manifest(Status(Kind::internal, "rank 0 starts"));
  if (ranks.rank() == 0) manifest = start_commit(locks, how);
  // A generation of start_commit's own is nobody else's.
  const uint64_t known_generation = located_.manifest.next_generation + (how.keep_session ? 1 : 0);
  Status status = adopt(ranks, manifest);
  if (status.ok()) {
    look_anew(known_generation);
    // What one rank has lost no other may believe. A member that missed a write of the first has an old record of the same generation.
    status = agree(ranks, members_, journals_.unread());
    if (status.ok() && members_.contested()) status = check_losses(members_, located_.manifest);
    if (status.ok() && facts[3] && ranks.size() > 1) status = agree(ranks, members_, choose_among_rows_written_twice(ranks));
    if (status.ok() && !facts[3] && is_first_of_all()) records_.note_that_there_are_none();
    if (status.ok()) status = commit_locked(ranks, how, uint64_t(facts[0]));
  }
  return status;
}

Status File::commit_locked(exchange::Exchange& ranks, const Commit& asked, uint64_t end_of_all) {
  Commit how = asked;
  std::set<uint64_t> folded_rows;
  const uint64_t generation = located_.manifest.open_generations.back();  // the session's, or the one of start_commit
  Journal journal(members_, records_, located_, fmt::format("{}.{}", generation, ranks_.rank()));
  const uint64_t end = how.new_size ? *how.new_size : std::max(end_of_all, located_.manifest.size);
  const Fold fold{generation, end, journal, lone_may_write(ranks), how.keep_session, folded_rows, direct_times(ranks)};
  Bytes zeros;
  std::optional<HeldWrites> held(std::in_place, members_, ranks);
  Status folded = fold_pending(ranks, ranks.rank() == 0 ? zeros_behind_cut(how, end_of_all, fold, zeros) : std::vector<OutExtent>(), fold);
  // Rows of journals behind a new end become holes, also where objects are cut right after: who is killed before that leaves them to others.
  if (how.new_size && ranks.rank() == 0)
    for (auto at = journals_.rows().lower_bound(divide_up(end, reader_.geometry().row_bytes())); at != journals_.rows().end() && folded.ok(); ++at)
      folded = journal.append_hole(at->first, generation);
  if (ranks.rank() == 0 && folded.ok()) lengthen_records(end);
  const std::vector<std::string> journals = gather_journals(ranks, journal);
  // Nothing that was synced is overwritten or cut before that which says so is durable: also not by a fast close.
  how.durable |= !how.keep_session && (how.new_size || located_.manifest.cut_to || !journals.empty() || !located_.manifest.journals.empty());
  // Those of before are about to take their place: they may never have been made durable.
  if (how.durable && !fold.defer && !how.keep_session && ranks.rank() == 0 && folded.ok())
    for (const std::string& name : journals_.known()) sync_journal(members_, located_, name);
  Result<Manifest> manifest(Status(Kind::internal, "rank 0 commits"));
  if (ranks.rank() == 0) manifest = committed_manifest(how, fold, journals);
  // Its content may be durable as soon as the data is: it counts when it has its name.
  std::optional<StagedManifest> staged;
  if (how.durable && manifest.ok() && members_.can_stage()) staged = stage_manifest(members_, *manifest);
  HF_TRY(settle_all(ranks, how.durable, folded, staged));
  held.reset();
  if (ranks.size() > 1) forget_rows();  // other ranks have written some that this one may remember
  if (ranks.rank() == 0) manifest = write_committed(how, fold, std::move(manifest));
  HF_TRY(adopt(ranks, manifest));
  if (!how.keep_session && !how.final) session_ = located_.manifest.open_generations.back();
  pending_.drop_all();
  if (!how.keep_session) direct_.clear();
  HF_TRY(finish_commit(ranks, how, fold, journal));

  file_end_ = located_.manifest.size;
  own_end_ = 0;
  use_journals();
  forget_rows();
  dirty_ = how.keep_session;  // one rank's own commit has still to be made durable by all
  return agree(ranks, members_, Status());
}

Status File::sync() {
  const LayerTime measured;
  std::lock_guard guard(mutex_);
  if (!access_.write) {
    // A reader's sync sees what others have written since.
    Status status = adopt_commits();
    return agree_outside_commit(status);
  }
  HF_TRY(commit(ranks_, {.durable = true}));
  forget_rows();
  if (committed_) return Status();
  // Nothing of our own: but what other openers have synced is to be seen from here on.
  HF_TRY(agree_outside_commit(adopt_commits()));
  // Commits of others may be waiting for us, the lone opener.
  if (ranks_.all_max({lone() && !located_.manifest.journals.empty()})[0] == 0) return Status();
  return commit(ranks_, {.durable = true, .forced = true});
}

// For a call of one rank that is made under the file's lock.
Result<Locks> File::lock_and_look() {
  return lock_file(members_, located_, [this]() -> Result<bool> {
    HF_TRY(adopt_commits());
    return !others_may_write(located_.manifest, session_) || !other_openers(members_, located_, located_.manifest.lone, opener_).without_leader;
  });
}

Result<uint64_t> File::agreed_size() {
  std::lock_guard guard(mutex_);
  if (atomic_) HF_TRY(agree_outside_commit(adopt_commits()));
  file_end_ = uint64_t(ranks_.all_max({int64_t(file_end_)})[0]);
  return file_end_;
}

Status File::set_atomic(bool atomic) {
  std::lock_guard guard(mutex_);
  committed_ = false;
  Status status = access_.write ? commit(ranks_, {.durable = true}) : Status();
  // From here on calls are atomic with those of others: what they have committed since the open counts.
  if (status.ok() && !committed_) status = agree_outside_commit(adopt_commits());
  if (status.ok()) atomic_ = atomic;
  return status;
}

// By rank 0: objects as long as the file's size says.
Status File::cut(uint64_t bytes) {
  cut_objects(members_, located_, bytes, records_.slot_bytes());
  forget_rows();
  return check_losses(members_, located_.manifest);
}

Status File::set_size(uint64_t bytes) {
  const LayerTime measured;
  std::lock_guard guard(mutex_);
  if (!access_.write) return Status(Kind::access, located_.manifest.path + ": opened for reading only");
  if (bytes > always_held_bytes(reader_.geometry())) HF_TRY(agree_outside_commit(ranks_.rank() == 0 ? check_held(bytes) : Status()));
  // Objects are cut only when the manifest that says so is durable, whatever close does.
  return commit(ranks_, {.durable = true, .new_size = bytes});
}

// Zeros go over what others have committed as well: first it is known.
Status File::allocate(int mode, const Extent& extent) {
  if (access_.write) {
    const LayerTime measured;
    std::lock_guard guard(mutex_);
    HF_TRY(agree_outside_commit(adopt_commits()));
  }
  return ProtectedFile::allocate(mode, extent);
}

// As by a write that ends there: the commit takes the later of this end and that which others have made, and cuts nothing.
Status File::lengthen(uint64_t bytes) {
  const LayerTime measured;
  std::lock_guard guard(mutex_);
  if (!access_.write) return Status(Kind::access, located_.manifest.path + ": opened for reading only");
  HF_TRY(agree_outside_commit(adopt_commits()));
  if (uint64_t(ranks_.all_max({int64_t(file_end_)})[0]) >= bytes) return Status();
  if (bytes > always_held_bytes(reader_.geometry())) HF_TRY(agree_outside_commit(ranks_.rank() == 0 ? check_held(bytes) : Status()));
  const uint64_t end = file_end_, own = own_end_;
  reaches(bytes);
  Status status = commit(ranks_, {.durable = true, .forced = true});
  if (!status.ok()) file_end_ = end, own_end_ = own;
  return status;
}

Status File::close() {
  const LayerTime measured;
  std::lock_guard guard(mutex_);
  if (!access_.write) return agree(ranks_, members_, Status());
  const Status status = commit(ranks_, {.durable = !settings_.fast_close, .final = true});
  presence_.clear();
  located_.opener.clear();
  ranks_.barrier();
  leader_.clear();
  if (ranks_.rank() == 0) withdraw_opener(members_, located_, opener_, ranks_.size() > 1);
  spill_.clear();
  return status;
}

}  // namespace holdfast::engine
