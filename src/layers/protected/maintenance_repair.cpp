#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "layers/protected/file.hpp"
#include "layers/protected/inspector.hpp"
#include "layers/protected/object_sizes.hpp"

namespace holdfast::layers {

using layout::Manifest;
using layout::RowRecord;

namespace {

struct Repairer {
  Inspector& look;
  RepairReport& report;
  uint64_t targets = 0;  // members that can be written, stale ones and replacements included
  std::vector<std::string> failed;  // by member: why it could not be repaired
  bool alone = false;               // no writer has the file open

  void give_up(int member, const std::string& why) {
    targets &= ~(1ull << member);
    failed[member] = why;
  }

  Status write(int member, std::string name, uint64_t offset, Bytes bytes) {
    auto kept = std::make_shared<const Bytes>(std::move(bytes));
    Status status = look.members.submit(member, [kept, name = std::move(name), offset](MemberHandle& handle) {
      return handle.write(name, offset, *kept);
    })->wait();
    if (!status.ok()) give_up(member, status.sentence());
    return status;
  }

  void mend_slots(const RowRecord& record) {
    const std::vector<Bytes> slots = look.slots(record.row, targets);
    const Bytes sound = look.records.encode(std::span(&record, 1));
    const bool last = record.row + 1 == look.located.manifest.rows;
    for (int member = 0; member < look.members.count(); ++member) {
      if (!(targets >> member & 1) || slots[member] == sound) continue;
      if (record.generation == 0 && slots[member].empty() && !last) continue;
      if (write(member, look.records.object_name(member), record.row * look.records.slot_bytes(), sound).ok())
        ++report.records_rewritten;
    }
  }

  // Rebuilds the units of one row that are not whole on members that can be written. False: the row is lost.
  bool mend_row(const RowRecord& record) {
    const auto& g = look.located.manifest.geometry;
    const int width = g.scheme.width();
    const uint32_t step = std::max<uint32_t>(1, uint32_t(inspected_bytes / g.block_bytes));
    uint64_t rebuilt = 0;
    for (uint32_t block = 0; block < g.blocks_per_unit(); block += step) {
      const uint32_t blocks = std::min(step, g.blocks_per_unit() - block);
      auto reads = look.rows.read_units(record, block, blocks, targets);
      std::vector<std::byte*> into(width, nullptr);
      std::vector<Bytes> buffers(width);
      bool any = false;
      for (int unit = 0; unit < width; ++unit) {
        const int member = layout::place(g, record.row, unit).member;
        if (reads[unit]->whole() || !(targets >> member & 1)) continue;
        const Kind kind = reads[unit]->status.kind();
        if (kind == Kind::timed_out) {
          give_up(member, reads[unit]->status.sentence());
          continue;
        }
        any = true;
        buffers[unit].resize(size_t(blocks) * g.block_bytes);
        into[unit] = buffers[unit].data();
      }
      if (!any) continue;
      if (!look.rows.reconstruct(record, block, blocks, into.data(), 0).ok()) return false;
      for (int unit = 0; unit < width; ++unit) {
        if (!into[unit]) continue;
        const auto place = layout::place(g, record.row, unit);
        const uint64_t stored = look.rows.stored_bytes(record, unit, look.located.manifest.size), at = uint64_t(block) * g.block_bytes;
        if (at >= stored) continue;
        buffers[unit].resize(std::min<uint64_t>(buffers[unit].size(), stored - at));
        const uint64_t bytes = buffers[unit].size();
        if (!write(place.member, look.located.data_name(place.object), place.offset + at, std::move(buffers[unit])).ok()) continue;
        report.bytes_rebuilt += bytes;
        if (!(rebuilt >> unit & 1)) ++report.units_rebuilt, ++report.per_member_units[place.member];
        rebuilt |= 1ull << unit;
      }
    }
    return true;
  }

  // A member that was away may have rows that a set_size cut off meanwhile; they must not come back when the file grows.
  // Current members are left alone while a job runs: it may have written rows there that are not synced yet.
  void cut_those_that_were_away() {
    for (int member = 0; member < look.members.count(); ++member) {
      if (!(targets >> member & 1)) continue;
      const uint64_t size = look.located.manifest.size;
      Status status = look.members.submit(member, look.members.available(member) && !alone
                                                      ? trim_call(look.located, member, size)
                                                      : cut_call(look.located, member, size, look.records.slot_bytes()))->wait();
      if (!status.ok()) give_up(member, status.sentence());
    }
  }

  void settle() {
    for (int member = 0; member < look.members.count(); ++member) {
      if (!(targets >> member & 1)) continue;
      Status status = look.members.submit(member, [](MemberHandle& handle) { return handle.settle(true); })->wait();
      if (!status.ok()) give_up(member, status.sentence());
    }
  }

  // A member's objects beside the data whose names begin so, with their whole names.
  std::vector<std::string> objects_like(const catalog::Located& where, int member, const std::string& prefix) {
    const std::string sample = where.meta_name(member, prefix);
    const size_t slash = sample.rfind('/');
    const std::string directory = slash == std::string::npos ? "" : sample.substr(0, slash), begin = sample.substr(slash + 1);
    auto found = std::make_shared<std::vector<std::string>>();
    Status listed = look.members.submit(member, [=](MemberHandle& handle) {
      auto names = handle.target().list(directory);
      if (!names.ok()) return names.status();
      for (const std::string& name : *names)
        if (name.starts_with(begin)) found->push_back(directory.empty() ? name : directory + "/" + name);
      return Status();
    })->wait();
    return listed.ok() ? *found : std::vector<std::string>();
  }

  // Who opens a file to write needs the lock that we hold, so none can come while we work.
  bool nobody_writes() {
    for (int member = 0; member < look.members.count(); ++member) {
      if (!look.members.available(member)) continue;
      for (const std::string& name : objects_like(look.located, member, writer_lock_prefix))
        if (look.members.lock(member, name).status().kind() == Kind::busy) return false;
    }
    return true;
  }

  // Writers that ended without closing: what they wrote and never synced is read once more (what verifies, else zeros) and written
  // as a generation of its own, which the manifest of this repair makes a synced one. Dying in it leaves what was before.
  Status fold_sessions() {
    Manifest& manifest = look.located.manifest;
    std::vector<uint64_t> ended = manifest.open_generations;
    if (ended.empty()) return Status();
    const uint64_t generation = manifest.next_generation++;
    if (ended.size() < layout::max_open_generations) manifest.open_generations.push_back(generation);
    HF_TRY(write_manifest(look.members, look.located, manifest, true));
    for (uint64_t row = 0; row < manifest.rows; ++row) {
      auto record = look.rows.record(row);
      if (record.ok() && std::find(ended.begin(), ended.end(), record->generation) != ended.end()) HF_TRY(write_again(row, generation));
    }
    manifest.open_generations.clear();
    report.sessions_folded = ended.size();
    return Status();
  }

  Status write_again(uint64_t row, uint64_t generation) {
    const auto& g = look.located.manifest.geometry;
    const uint64_t begin = row * g.row_bytes(), valid = std::min(g.row_bytes(), look.located.manifest.size - begin);
    auto buffer = std::make_shared<Buffer>(g.row_bytes());
    if (!buffer->valid()) return Status(Kind::internal, fmt::format("no memory for a row of {} bytes", g.row_bytes()));
    std::memset(buffer->data(), 0, g.row_bytes());
    const Piece whole{row, 0, valid, buffer->data()};
    HF_TRY(look.rows.read(std::span(&whole, 1)));
    RowImage image{row, {}, valid};
    for (int unit = 0; unit < g.scheme.k; ++unit) image.data.push_back(buffer->data() + uint64_t(unit) * g.unit_bytes);
    const CodedRow coded = look.rows.code(image, generation);
    return look.rows.write_in_place(std::span(&coded, 1));
  }

  // Journals exist only while a commit holds the lock that we hold: whatever the manifest does not name is litter. What writers
  // parked for want of memory is, when none is left.
  void remove_litter(const catalog::Located& where) {
    for (int member = 0; member < look.members.count(); ++member) {
      if (!(targets >> member & 1)) continue;
      std::vector<std::string> litter = objects_like(where, member, "journal.");
      if (alone)
        for (std::string& name : objects_like(where, member, "spill.")) litter.push_back(std::move(name));
      (void)look.members.submit(member, [litter](MemberHandle& handle) {
        for (const std::string& name : litter) (void)handle.target().remove(name);
        return Status();
      })->wait();
    }
  }
};

}  // namespace

Result<RepairReport> repair(catalog::Located& located, const Settings& settings, const Progress& progress) {
  RepairReport report;
  Members for_lock(located);
  auto locks = lock_file(for_lock, located);
  if (!locks.ok()) return locks.status();
  Inspector look(located, settings);
  if (!look.status.ok()) return look.status;
  report.per_member_units.resize(look.members.count());
  Repairer repairer{look, report, usable_mask(located), std::vector<std::string>(look.members.count())};
  const uint64_t lost_before = look.members.lost_mask();
  if (!look.located.manifest.journals.empty()) {
    look.rows.journal.clear();
    look.rows.journal_records.clear();
    for (const std::string& name : look.located.manifest.journals)
      report.journals_replayed += replay_journal(look.members, look.records, look.located, name) > 0;
  }
  repairer.alone = repairer.nobody_writes();
  if (repairer.alone) HF_TRY(repairer.fold_sessions());
  for (int member = 0; member < look.members.count(); ++member)  // what failed now is no member any more
    if ((lost_before ^ look.members.lost_mask()) >> member & 1) repairer.give_up(member, look.members.why(member));
  const Manifest& manifest = look.located.manifest;
  // A new member has nothing yet, not even the file's directory.
  for (int member = 0; member < look.members.count(); ++member)
    if ((repairer.targets >> member & 1) && !manifest.directory.empty()) {
      Status made = look.members.submit(member, [directory = manifest.directory](MemberHandle& handle) {
        return handle.target().make_directory(directory);
      })->wait();
      if (!made.ok()) repairer.give_up(member, made.sentence());
    }
  for (uint64_t row = 0; row < manifest.rows; ++row) {
    auto record = look.rows.record(row);
    if (!record.ok()) {
      report.lost_rows.push_back(row);
      continue;
    }
    if (!record->hole() && !repairer.mend_row(*record)) report.lost_rows.push_back(row);
    repairer.mend_slots(*record);
    if (progress && !progress((row + 1) * manifest.geometry.row_bytes(), manifest.rows * manifest.geometry.row_bytes())) {
      report.stopped = true;
      break;
    }
  }
  repairer.cut_those_that_were_away();
  repairer.settle();
  if (!report.stopped) {
    Manifest mended = manifest;
    mended.path = located.manifest.path;
    mended.journals.clear();
    Members current(located);
    for (int member = 0; member < current.count(); ++member) {
      if (!current.available(member)) continue;
      if (!(repairer.targets >> member & 1)) {
        current.lose(member, repairer.failed[member]);
        continue;
      }
      mended.members[member] = {located.members[member].uuid, located.members[member].path, false, "", mended.members[member].nodes};
      ++report.manifests_rewritten;
    }
    HF_TRY(write_manifest(current, located, mended, true));
    repairer.remove_litter(located);
    located.manifest = mended;
  }
  auto after = file_status(located, settings);
  if (after.ok()) report.status = std::move(*after);
  return report;
}

}  // namespace holdfast::layers
