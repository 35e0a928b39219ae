#include "layers/protected/maintenance.hpp"

#include <algorithm>
#include <cstring>
#include <map>

#include <fmt/format.h>

#include "layers/protected/file.hpp"
#include "layers/protected/object_sizes.hpp"

namespace holdfast::layers {

using layout::Manifest;
using layout::RowRecord;

namespace {

constexpr size_t most_findings = 10000;
constexpr uint64_t chunk_bytes = 1 << 20;  // of each unit at a time

uint64_t usable_mask(const catalog::Located& located) {
  uint64_t mask = 0;
  for (const catalog::Member& member : located.members)
    if (member.usable()) mask |= 1ull << member.index;
  return mask;
}

// What every maintenance task looks through.
struct Inspector {
  Inspector(const catalog::Located& where, const Settings& settings)
      : located(where), members(located), records(members, located), rows(members, records, located, 0) {
    auto read = read_manifest(members, located, settings);
    if (!read.ok()) {
      status = read.status();
      return;
    }
    reading = std::move(*read);
    lose_stale_members(members, reading);
    located.manifest = reading.manifest;
    for (const std::string& name : located.manifest.journals) overlay_journal(members, records, located, name, rows);
    rows.is_unsynced_of_others = [this](uint64_t generation) {
      const auto& open = located.manifest.open_generations;
      return std::find(open.begin(), open.end(), generation) != open.end();
    };
  }
  catalog::Located located;
  Members members;
  RecordStore records;
  RowIo rows;
  ManifestReading reading;
  Status status;

  // The records of one row as each member's sums object has it, raw; empty where it cannot be read.
  std::vector<Bytes> slots(uint64_t row, uint64_t mask) {
    auto found = std::make_shared<std::vector<Bytes>>(members.count());
    std::vector<std::pair<int, std::shared_ptr<target::Ticket>>> tickets;
    for (int member = 0; member < members.count(); ++member) {
      if (!(mask >> member & 1)) continue;
      tickets.emplace_back(member, members.submit(member, [found, member, name = records.object_name(member), at = row * records.slot_bytes(),
                                                           bytes = records.slot_bytes()](MemberHandle& handle) {
        Bytes slot(bytes);
        auto object = handle.object(name, target::OpenMode::read);
        if (!object.ok()) return object.status();
        iovec into{slot.data(), slot.size()};
        auto got = (*object)->read(at, std::span<const iovec>(&into, 1));
        if (!got.ok()) return got.status();
        if (*got == bytes) (*found)[member] = std::move(slot);
        return Status();
      }));
    }
    std::vector<Bytes> answer(members.count());
    for (auto& [member, ticket] : tickets)
      if (ticket->wait().ok()) answer[member] = (*found)[member];
    return answer;
  }
};

std::string member_state(const Inspector& look, int member) {
  if (look.members.available(member)) return "ok";
  if (!look.located.members[member].usable()) return "lost";
  if (look.reading.manifest.members[member].stale) return "stale";
  return look.reading.answers[member].ok() ? "stale" : "damaged";
}

// What the members' states mean for the file, and for how many more losses it has left.
void judge(FileStatus& status) {
  const auto bad = std::count_if(status.members.begin(), status.members.end(), [](const MemberReport& m) { return m.state != "ok"; });
  const int m = status.manifest.geometry.scheme.m;
  status.health = bad == 0 ? Health::healthy : bad <= m ? Health::degraded : Health::lost;
  status.tolerates_more = std::max(0, m - int(bad));
}

FileStatus describe(Inspector& look) {
  FileStatus status;
  status.manifest = look.located.manifest;
  for (int member = 0; member < look.members.count(); ++member) {
    MemberReport report;
    report.member = member;
    report.path = look.located.members[member].path;
    report.state = member_state(look, member);
    if (report.state != "ok") report.why = look.members.why(member);
    status.members.push_back(std::move(report));
  }
  judge(status);
  return status;
}

// Where even the manifest cannot be had: everything that is known comes from the catalog.
FileStatus describe_lost(const Inspector& look) {
  FileStatus status;
  status.manifest = look.located.manifest;
  status.health = Health::lost;
  for (int member = 0; member < look.members.count(); ++member) {
    MemberReport report{member, look.located.members[member].path, "ok", "", 0, 0};
    if (!look.members.available(member)) report.state = "lost", report.why = look.members.why(member);
    else report.state = "damaged", report.why = look.status.sentence();
    status.members.push_back(std::move(report));
  }
  return status;
}

// First and last row are looked at for objects that are gone or cut: cheap, and enough for what `status` promises.
void look_at_objects(Inspector& look, FileStatus& status) {
  const Manifest& manifest = look.located.manifest;
  if (manifest.rows == 0) return;
  const auto& g = manifest.geometry;
  std::map<int, std::string> damage;
  for (uint64_t row : {uint64_t(0), manifest.rows - 1}) {
    std::vector<Bytes> slots = look.slots(row, ~look.members.lost_mask() & usable_mask(look.located));
    auto record = look.rows.record(row);
    if (!record.ok()) return;
    for (int member = 0; member < look.members.count(); ++member)
      if (look.members.available(member) && slots[member].empty() && row == manifest.rows - 1)
        damage[member] = "its checksums (sums) are missing or cut short";
    if (record->hole()) continue;
    for (int unit = 0; unit < g.scheme.width(); ++unit) {
      const auto place = layout::place(g, row, unit);
      const uint64_t stored = look.rows.needed_bytes(*record, unit, manifest.size);
      if (!look.members.available(place.member) || stored == 0) continue;
      Status there = look.members.submit(place.member, [name = look.located.data_name(place.object), end = place.offset + stored](MemberHandle& handle) {
        auto object = handle.object(name, target::OpenMode::read);
        if (!object.ok()) return object.status();
        auto size = (*object)->size();
        if (!size.ok()) return size.status();
        return *size < end ? Status(Kind::corrupt, name + " is cut short") : Status();
      })->wait();
      // Zeros at an object's end need not be there.
      if (there.kind() == Kind::corrupt &&
          look.rows.read_units(*record, 0, g.blocks_per_unit(), 1ull << place.member)[unit]->whole())
        continue;
      if (!there.ok()) damage[place.member] = there.sentence();
    }
  }
  for (auto& [member, why] : damage) {
    status.members[member].state = "damaged";
    status.members[member].why = why;
  }
  judge(status);
}

}  // namespace

const char* health_name(Health health) {
  return health == Health::healthy ? "healthy" : health == Health::degraded ? "degraded" : "lost";
}

Result<FileStatus> file_status(const catalog::Located& located, const Settings& settings) {
  Inspector look(located, settings);
  if (look.status.kind() == Kind::lost || look.status.kind() == Kind::stale) return describe_lost(look);
  if (!look.status.ok()) return look.status;
  FileStatus status = describe(look);
  look_at_objects(look, status);
  return status;
}

namespace {

struct Verifier {
  Inspector& look;
  VerifyReport& report;

  void found(uint64_t row, int unit, int member, std::string what, std::string detail) {
    ++report.finding_count;
    if (member >= 0) ++report.status.members[member].damaged_units;
    if (report.findings.size() < most_findings)
      report.findings.push_back({row, unit, member, std::move(what), std::move(detail)});
  }

  void check_slots(const RowRecord& record, const std::vector<Bytes>& slots) {
    const Bytes sound = look.records.encode(std::span(&record, 1));
    for (int member = 0; member < look.members.count(); ++member) {
      if (!look.members.available(member)) continue;
      const bool empty_is_right = record.generation == 0;
      if (slots[member] == sound || (empty_is_right && slots[member].empty())) continue;
      if (look.rows.journal_records.contains(record.row)) continue;  // being replaced
      auto theirs = layout::decode_record(look.located.manifest.geometry, look.records.key(), record.row, slots[member]);
      if (slots[member].empty())
        found(record.row, -1, member, "sums", "the row's checksums are missing");
      else if (theirs.ok() && theirs->generation < record.generation)
        found(record.row, -1, member, "stale", fmt::format("its checksums are of generation {}, not {}", theirs->generation, record.generation));
      else
        found(record.row, -1, member, "sums", "the row's checksums are damaged there");
    }
  }

  std::string name_damage(const RowRecord& record, int unit, int member, const Bytes& slot, std::string& detail) {
    auto own = layout::decode_record(look.located.manifest.geometry, look.records.key(), record.row, slot);
    if (!slot.empty() && own.ok() && own->generation < record.generation) return "stale";
    const auto place = layout::place(look.located.manifest.geometry, record.row, unit);
    const uint64_t end = place.offset + look.rows.needed_bytes(record, unit, look.located.manifest.size);
    auto bytes = std::make_shared<uint64_t>(0);
    Status sized = look.members.submit(member, [bytes, name = look.located.data_name(place.object)](MemberHandle& handle) {
      auto object = handle.object(name, target::OpenMode::read);
      if (!object.ok()) return object.status();
      auto size = (*object)->size();
      if (!size.ok()) return size.status();
      *bytes = *size;
      return Status();
    })->wait();
    if (sized.ok() && *bytes < end) {
      detail = fmt::format("{} ends at {} and should reach {}", look.located.data_name(place.object), *bytes, end);
      return "truncated";
    }
    return "corrupt";
  }

  // One row: every unit, every checksum, the code. Counts units; reports each damaged unit once.
  void check_row(const RowRecord& record, const std::vector<Bytes>& slots) {
    const auto& g = look.located.manifest.geometry;
    const int width = g.scheme.width();
    const uint32_t step = std::max<uint32_t>(1, uint32_t(chunk_bytes / g.block_bytes));
    std::vector<bool> reported(width, false);
    bool lost = false;
    for (uint32_t block = 0; block < g.blocks_per_unit(); block += step) {
      const uint32_t blocks = std::min(step, g.blocks_per_unit() - block);
      auto reads = look.rows.read_units(record, block, blocks, ~look.members.lost_mask());
      bool all_whole = true;
      for (int unit = 0; unit < width; ++unit) {
        const int member = layout::place(g, record.row, unit).member;
        if (reads[unit]->whole()) continue;
        all_whole = false;
        if (reported[unit] || !look.members.available(member)) continue;
        reported[unit] = true;
        std::string detail = reads[unit]->status.sentence(), what;
        if (reads[unit]->status.kind() == Kind::not_found) what = "missing";
        else if (!reads[unit]->status.ok()) what = "unreadable";
        else what = name_damage(record, unit, member, slots[member], detail);
        found(record.row, unit, member, what, detail);
      }
      for (uint32_t i = 0; i < blocks; ++i) {
        int good = 0;
        for (auto& read : reads) good += read->status.ok() && !read->bad[i];
        lost |= good < g.scheme.k;
      }
      if (all_whole && !code_holds(reads, blocks)) found(record.row, -1, -1, "code", "every checksum holds and the code does not");
    }
    if (lost) {
      ++report.lost_rows;
      found(record.row, -1, -1, "lost", fmt::format("fewer than {} units of the row are left", g.scheme.k));
    }
  }

  bool code_holds(const std::vector<std::shared_ptr<RowIo::RangeRead>>& reads, uint32_t blocks) {
    const auto& g = look.located.manifest.geometry;
    const size_t bytes = size_t(blocks) * g.block_bytes;
    std::vector<const std::byte*> data;
    for (int u = 0; u < g.scheme.k; ++u) data.push_back(reads[u]->buffer.data());
    Bytes arena(size_t(g.scheme.m) * bytes);
    std::vector<std::byte*> redundancy;
    for (int j = 0; j < g.scheme.m; ++j) redundancy.push_back(arena.data() + size_t(j) * bytes);
    coding::Code::make(g.scheme.k, g.scheme.m)->encode(data.data(), redundancy.data(), bytes);
    for (int j = 0; j < g.scheme.m; ++j)
      if (std::memcmp(redundancy[j], reads[g.scheme.k + j]->buffer.data(), bytes) != 0) return false;
    return true;
  }
};

// Every row was looked at: damage on more members than the scheme bears loses the file only where it meets in one row.
void judge_verified(VerifyReport& report) {
  FileStatus& status = report.status;
  const bool lost = report.lost_rows > 0 || status.health == Health::lost;
  for (MemberReport& member : status.members) {
    if (member.state != "ok" || member.damaged_units == 0) continue;
    member.state = "damaged";
    member.why = fmt::format("{} damaged unit{}", member.damaged_units, member.damaged_units == 1 ? "" : "s");
  }
  judge(status);
  if (lost) status.health = Health::lost;
  else if (report.finding_count || status.health != Health::healthy) status.health = Health::degraded;
}

}  // namespace

Result<VerifyReport> verify(const catalog::Located& located, const Settings& settings, const Progress& progress) {
  Inspector look(located, settings);
  VerifyReport report;
  if (look.status.kind() == Kind::lost || look.status.kind() == Kind::stale) {
    report.status = describe_lost(look);
    report.findings.push_back({0, -1, -1, "lost", look.status.sentence()});
    report.finding_count = 1;
    return report;
  }
  if (!look.status.ok()) return look.status;
  report.status = describe(look);
  const Manifest& manifest = look.located.manifest;
  Verifier verifier{look, report};
  for (int member = 0; member < look.members.count(); ++member)
    if (!look.reading.answers[member].ok() && look.located.members[member].usable())
      verifier.found(0, -1, member, "manifest", look.reading.answers[member].sentence());
  const uint64_t total = manifest.size / uint64_t(manifest.geometry.scheme.k) * uint64_t(manifest.geometry.scheme.width());
  for (uint64_t row = 0; row < manifest.rows; ++row) {
    auto record = look.rows.record(row);
    if (!record.ok()) {
      ++report.lost_rows;
      verifier.found(row, -1, -1, "lost", record.status().sentence());
      continue;
    }
    const std::vector<Bytes> slots = look.slots(row, ~look.members.lost_mask() & usable_mask(look.located));
    verifier.check_slots(*record, slots);
    ++report.rows;
    if (record->hole()) continue;
    verifier.check_row(*record, slots);
    for (int unit = 0; unit < manifest.geometry.scheme.width(); ++unit) {
      const int member = layout::place(manifest.geometry, row, unit).member;
      if (!look.members.available(member)) continue;
      ++report.units;
      ++report.status.members[member].units;
      report.bytes += look.rows.stored_bytes(*record, unit, manifest.size);
    }
    if (progress && !progress(report.bytes, std::max(total, report.bytes))) {
      report.stopped = true;
      break;
    }
  }
  judge_verified(report);
  return report;
}

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
    const uint32_t step = std::max<uint32_t>(1, uint32_t(chunk_bytes / g.block_bytes));
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
    look.rows.forget_journals();
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
