#include "engine/repair_batch.hpp"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "base/node_path.hpp"
#include "engine/object_sizes.hpp"

namespace holdfast::engine {

using layout::Manifest;
using layout::RowRecord;

namespace {

// The replacements of `moved` in their places.
catalog::Located goal_of(catalog::Located located, const MemberSet& moved) {
  for (catalog::Member& fresh : located.replacements)
    if (moved.has(fresh.index)) located.members[size_t(fresh.index)] = std::move(fresh);
  located.replacements.clear();
  return located;
}

// A place that the one who was to take it was meant for has gone to somebody else, or he has another one by now.
std::string taken_by_now(const catalog::Located& located, const catalog::Member& fresh, const Manifest& manifest) {
  for (size_t member = 0; member < manifest.members.size(); ++member) {
    const layout::ManifestMember& now = manifest.members[member];
    const bool own = int(member) == fresh.index;
    const bool of_one_node = manifest.pool && node_of(now.path) == node_of(fresh.path);
    if (!own && (now.uuid == fresh.uuid || of_one_node)) return fmt::format("{} has become another member", now.path);
    if (own && now.uuid != fresh.uuid && now.uuid != located.manifest.members[member].uuid)
      return fmt::format("{} was replaced by {}", located.manifest.members[member].path, now.path);
  }
  return "";
}

// Who repairs names the members that it has found in the manifest: one that was replaced meanwhile would come back.
Status check_places(const catalog::Located& located, const Manifest& manifest) {
  std::string why;
  for (const catalog::Member& member : located.members)
    if (why.empty()) why = replaced_by_now(located, member.index, manifest);
  for (const catalog::Member& fresh : located.replacements)
    if (why.empty()) why = taken_by_now(located, fresh, manifest);
  return why.empty() ? Status() : Status(Kind::stale, fmt::format("{} while this repair looked for the file; repair again", why), ESTALE);
}

}  // namespace

void RepairLedger::lacks(const MemberSet& members, const std::string& why) {
  reasons.resize(failed.size());
  for (const int member : members - incomplete) reasons[size_t(member)] = why;
  incomplete |= members;
}

Result<std::unique_ptr<RepairBatch>> RepairBatch::begin(RepairLedger& ledger, const Settings& settings) {
  Members for_lock(ledger.located, settings);
  auto locks = lock_file(for_lock, ledger.located);
  if (!locks.ok()) return locks.status();
  std::unique_ptr<RepairBatch> batch(new RepairBatch(ledger, settings, std::move(*locks)));
  HF_TRY(batch->look_.status);
  HF_TRY(batch->look_.journals.unread());
  HF_TRY(check_places(ledger.located, batch->look_.located.manifest));
  return batch;
}

RepairBatch::RepairBatch(RepairLedger& ledger, const Settings& settings, Locks locks)
    : ledger_(ledger),
      locks_(std::move(locks)),
      look_(ledger.located, settings),
      alone_(look_.status.ok() && nobody_writes()),
      moved_(members_to_move()),
      goal_(goal_of(look_.located, moved_)),
      onto_(goal_),
      no_journals_(onto_, look_.records, goal_),
      places_(onto_, look_.records, goal_, no_journals_, 0),
      there_(onto_, goal_, places_),
      sources_(look_.members, look_.records, look_.located, look_.journals, 0),
      sums_(ledger.askers, look_.members, look_.located, sources_) {}

// To a running job a target that is replaced is one that is lost, and it may have no other to lose.
MemberSet RepairBatch::members_to_move() {
  MemberSet moved;
  for (const catalog::Member& fresh : ledger_.located.replacements) {
    if (alone_ || !look_.members.available(fresh.index)) moved.add(fresh.index);
    else
      ledger_.lacks(fresh.index,
                    fmt::format("{}, whose place it is to take, is in use; repair again when the job has ended", look_.members.path(fresh.index)));
  }
  return moved;
}

MemberSet RepairBatch::targets() const {
  MemberSet members = usable_in(goal_);
  for (size_t member = 0; member < ledger_.failed.size(); ++member)
    if (!ledger_.failed[member].empty()) members.remove(int(member));
  return members;
}

MemberSet RepairBatch::newcomers() const {
  MemberSet members = targets();
  for (int member = 0; member < onto_.count(); ++member)
    if (current(member)) members.remove(member);
  return members;
}

MemberSet RepairBatch::complete() const { return newcomers() - ledger_.incomplete; }

void RepairBatch::on_targets(const std::function<MemberCall(int member)>& make_call) {
  std::vector<Write> calls;
  for (int member = 0; member < onto_.count(); ++member)
    if (targets().has(member))
      if (MemberCall call = make_call(member)) calls.push_back({member, onto_.submit(member, std::move(call))});
  for (const Write& call : calls) (void)end(call);
}

RepairBatch::Write RepairBatch::begin_to_write(int member, std::string name, uint64_t offset, Bytes bytes) {
  if (!targets().has(member)) return {member, nullptr};
  auto kept = std::make_shared<const Bytes>(std::move(bytes));
  return {member, onto_.submit(member, [kept, name = std::move(name), offset](MemberHandle& handle) { return handle.write(name, offset, *kept); })};
}

Status RepairBatch::end(const Write& write) {
  if (!write.ticket) return Status(Kind::lost, ledger_.failed[size_t(write.member)]);
  Status status = write.ticket->wait();
  if (!status.ok()) ledger_.give_up(write.member, status.sentence());
  return status;
}

// A member's objects beside the data whose names begin so, with their whole names.
Result<std::vector<std::string>> RepairBatch::objects_like(Members& members, int member, const std::string& prefix) {
  const std::string sample = look_.located.meta_name(member, prefix);
  const size_t slash = sample.rfind('/');
  const std::string directory = slash == std::string::npos ? "" : sample.substr(0, slash), begin = sample.substr(slash + 1);
  auto found = std::make_shared<std::vector<std::string>>();
  HF_TRY(members
             .submit(member,
                     [=](MemberHandle& handle) {
                       auto names = handle.target().list(directory);
                       if (!names.ok()) return names.status();
                       for (const std::string& name : *names)
                         if (name.starts_with(begin)) found->push_back(directory.empty() ? name : directory + "/" + name);
                       return Status();
                     })
             ->wait());
  return std::move(*found);
}

// Who opens a file to write needs the lock that we hold, so none can come while we work. A lock or a list that fails says nothing about
// writers. M + 1 members that know of none are enough, for a writer has lost at most M. Where fewer are left, the sidecar has to vouch that no writer
// has set them aside.
bool RepairBatch::nobody_writes() {
  int asked = 0;
  for (int member = 0; member < look_.members.count(); ++member) {
    if (!look_.members.available(member)) continue;
    auto names = objects_like(look_.members, member, writer_lock_prefix);
    if (!names.ok()) return false;
    for (const std::string& name : *names) {
      const std::string lock = look_.located.meta_name(member, writer_lock_prefix + opener_number(name));
      if (!look_.members.lock(member, lock, target::Hold::probe).ok()) return false;
    }
    ++asked;
  }
  return asked > manifest().geometry.scheme.m || (asked > 0 && look_.reading.sidecar_agrees);
}

Status RepairBatch::clear_the_way() {
  if (alone_) {
    remove_litter();  // first of all: where a target is full, it makes room
    HF_TRY(replay_journals());
  }
  make_room_for_objects();
  return Status();
}

// Journals that no manifest names, what writers parked for want of memory, manifests that never got their name: of writers that are gone.
void RepairBatch::remove_litter() {
  const std::vector<std::string>& named = manifest().journals;
  std::vector<const char*> prefixes{"journal.", "spill."};
  if (onto_.can_stage()) prefixes.push_back("new.");
  for (int member = 0; member < onto_.count(); ++member) {
    if (!targets().has(member)) continue;
    std::vector<std::string> litter;
    for (const char* prefix : prefixes) {
      auto names = objects_like(onto_, member, prefix);
      if (names.ok()) litter.insert(litter.end(), names->begin(), names->end());
    }
    for (const std::string& name : named) std::erase(litter, goal_.meta_name(member, "journal." + name));
    if (litter.empty()) continue;
    (void)on(member, [litter](MemberHandle& handle) {
      for (const std::string& name : litter) (void)handle.target().remove(name);
      return Status();
    });
  }
}

// What a killed job has committed takes its place. Rows that cannot be had from too few members stay as they are.
Status RepairBatch::replay_journals() {
  Manifest& manifest = look_.located.manifest;
  const bool nothing_left = manifest.journals.empty() && !manifest.cut_to;
  if (nothing_left || look_.members.lost_count() > manifest.geometry.scheme.m) return Status();
  look_.journals.forget();
  const std::vector<std::string> names = std::exchange(manifest.journals, {});
  const auto cut_to = std::exchange(manifest.cut_to, {});
  // What journals have behind a cut that was broken off was committed after it.
  if (cut_to) cut_under(look_.members, look_.located, *cut_to, manifest.size, look_.records.slot_bytes());
  for (const std::string& name : names) ledger_.report.journals_replayed += replay_journal(look_.members, look_.records, look_.located, name) > 0;
  if (cut_to) cut_objects(look_.members, look_.located, manifest.size, look_.records.slot_bytes());
  manifest.lone = 0;
  look_.members.each([](int) -> MemberCall { return [](MemberHandle& handle) { return handle.settle(true); }; });
  manifest.path = ledger_.located.path_now(manifest);
  HF_TRY(write_manifest(look_.members, look_.located, manifest, true));
  for (const std::string& name : names) remove_journal(look_.members, look_.located, name);
  return Status();
}

// A new member has nothing yet, not even the file's directory; and a name of an object may have been taken by something else. Only in
// the file's own directory: the name of a plain file is the user's.
void RepairBatch::make_room_for_objects() {
  const layout::Geometry& g = manifest().geometry;
  on_targets([&](int member) -> MemberCall {
    std::vector<std::string> names{goal_.meta_name(member, "manifest"), goal_.meta_name(member, "sums")};
    for (int object = 0; object < layout::object_count(g); ++object)
      if (layout::holds(g, member, object)) names.push_back(goal_.data_name(object));
    std::erase_if(names, [](const std::string& name) { return name.find('/') == std::string::npos; });
    return [names, directory = manifest().directory](MemberHandle& handle) {
      if (!directory.empty()) HF_TRY(handle.target().make_directory(directory));
      for (const std::string& name : names)
        if (Status there = handle.target().open(name, target::OpenMode::read).status(); !there.ok() && there.kind() != Kind::not_found)
          HF_TRY(handle.target().set_aside(name));  // an object that only cannot be opened stays
      return Status();
    };
  });
}

void RepairBatch::make_durable() {
  on_targets([](int) -> MemberCall { return [](MemberHandle& handle) { return handle.settle(true); }; });
}

// Where nobody writes, objects end where the file does: what was cut off while a member was away must not come back when it grows.
// Beside a job nothing is cut, for it may have written there since. Old rows of a newcomer make it wait until the job has ended.
void RepairBatch::set_ends() {
  const uint64_t size = manifest().size, slot_bytes = look_.records.slot_bytes(), records = manifest().rows * slot_bytes;
  const bool say_holes = !ledger_.records_lost;  // zeros at the end of the records mean holes: not where nobody knows
  on_targets([&](int member) -> MemberCall {
    MemberCall ends;
    if (alone_) ends = cut_call(goal_, member, size, slot_bytes);
    else if (newcomers().has(member)) ends = lengthen_call(goal_, member, size);
    if (!say_holes || records == 0) return ends;
    return [ends, records, name = look_.records.object_name(member)](MemberHandle& handle) {
      if (ends) HF_TRY(ends(handle));
      return handle.grow(name, records);
    };
  });
}

void RepairBatch::distrust_old_ends() {
  for (int member = 0; member < onto_.count(); ++member)
    if (newcomers().has(member) && records_beyond_end(member))
      ledger_.lacks(member, "it holds rows that were cut off while it was away; repair again when the job has ended");
}

// Whether a newcomer has synced records, or bytes of a whole copy, behind the file's end.
bool RepairBatch::records_beyond_end(int member) {
  const size_t slot_bytes = look_.records.slot_bytes();
  auto found = std::make_shared<bool>(false);
  const Status looked =
      on(member, [found, slot_bytes, where = look_.located.manifest, key = look_.records.key(), name = look_.records.object_name(member),
                  longer = is_longer_call(goal_, member, manifest().size)](MemberHandle& handle) {
        if (longer(handle).kind() == Kind::corrupt) return *found = true, Status();
        auto object = handle.object(name, target::OpenMode::read);
        if (object.status().kind() == Kind::not_found) return Status();
        if (!object.ok()) return object.status();
        auto size = (*object)->size();
        if (!size.ok()) return size.status();
        Bytes slot(slot_bytes);
        for (uint64_t row = where.rows; !*found && (row + 1) * slot_bytes <= *size; ++row) {
          HF_TRY(handle.read(name, row * slot_bytes, slot));
          auto record = layout::decode_record(where.geometry, key, row, slot);
          *found = record.ok() && where.is_synced(record->generation);
        }
        return Status();
      });
  if (!looked.ok()) ledger_.give_up(member, looked.sentence());
  return *found;
}

Status RepairBatch::finish() {
  if (!alone_) distrust_old_ends();
  set_ends();
  make_durable();
  // Who cannot be made whole stays what it was: current members go on as they are, and so do those that were to be replaced.
  Manifest mended = manifest();
  mended.path = ledger_.located.path_now(mended);
  catalog::Located next = look_.located;
  const MemberSet whole = complete();
  for (int member = 0; member < onto_.count(); ++member) {
    if (!whole.has(member)) continue;
    next.members[size_t(member)] = goal_.members[size_t(member)];
    mended.members[size_t(member)] = {next.members[size_t(member)].uuid, next.members[size_t(member)].path, false, "",
                                      mended.members[size_t(member)].nodes};
  }
  Members kept(next);
  for (int member = 0; member < kept.count(); ++member)
    if (!whole.has(member) && !look_.members.available(member)) kept.lose(member, look_.members.why(member));
  if (whole.none() && kept.lost_count() > 0) {  // nothing was gained, so no member's state changes; the user's path may have lost its entry
    if (alone_ && next.path_keeper) (void)next.path_keeper->publish(mended, true);
    return Status();
  }
  HF_TRY(write_manifest(kept, next, mended, true));
  for (int member = 0; member < kept.count(); ++member) ledger_.report.manifests_rewritten += kept.available(member);
  for (catalog::Member& member : next.members) member.untold = false;  // the sidecar names them now
  next.manifest = mended;
  next.path_keeper = ledger_.located.path_keeper;
  next.replacements = ledger_.located.replacements;
  std::erase_if(next.replacements, [&](const catalog::Member& fresh) { return whole.has(fresh.index) && kept.available(fresh.index); });
  ledger_.located = std::move(next);
  return Status();
}

Status RepairBatch::fold_sessions() {
  Manifest& manifest = look_.located.manifest;
  if (manifest.open_generations.empty() || !alone_ || !ledger_.lost_rows.empty()) return Status();
  if (look_.members.lost_count() > manifest.geometry.scheme.m) return Status();
  manifest.path = ledger_.located.path_now(manifest);
  const size_t sessions = manifest.open_generations.size();
  const uint64_t generation = manifest.next_generation++;
  if (sessions < layout::max_open_generations) manifest.open_generations.push_back(generation);
  HF_TRY(write_manifest(look_.members, look_.located, manifest, true));
  RowWriter writer(look_.members, look_.records, look_.located);
  for (uint64_t row = 0; row < manifest.rows; ++row) {
    auto record = look_.rows.record(row);
    if (!record.ok()) return record.status();
    // Also what a commit wrote that failed before any manifest knew of its generation: it may be the one that is given away here.
    if (record->generation != 0 && !manifest.is_synced(record->generation)) HF_TRY(write_again(writer, row, generation));
  }
  const uint64_t size = manifest.size;
  cut_objects(look_.members, look_.located, size, look_.records.slot_bytes());
  look_.members.each([](int) -> MemberCall { return [](MemberHandle& handle) { return handle.settle(true); }; });
  HF_TRY(check_losses(look_.members, manifest));
  manifest.open_generations.clear();
  manifest.lone = 0;
  HF_TRY(write_manifest(look_.members, look_.located, manifest, true));
  ledger_.located.manifest = manifest;
  ledger_.report.sessions_folded = sessions;
  return Status();
}

Status RepairBatch::write_again(RowWriter& writer, uint64_t row, uint64_t generation) {
  const auto& g = manifest().geometry;
  const uint64_t begin = row * g.row_bytes(), valid = std::min(g.row_bytes(), manifest().size - begin);
  auto buffer = std::make_shared<Buffer>(g.row_bytes());
  if (!buffer->valid()) return Status(Kind::internal, fmt::format("no memory for a row of {} bytes", g.row_bytes()));
  std::memset(buffer->data(), 0, g.row_bytes());
  const RowRange whole{row, 0, valid, buffer->data()};
  HF_TRY(look_.rows.read(std::span(&whole, 1)));
  RowImage image{row, {}, valid};
  for (int unit = 0; unit < g.scheme.k; ++unit) image.data.push_back(buffer->data() + uint64_t(unit) * g.unit_bytes);
  const CodedRow coded = writer.code(image, generation);
  return writer.write_in_place(std::span(&coded, 1));
}

}  // namespace holdfast::engine
