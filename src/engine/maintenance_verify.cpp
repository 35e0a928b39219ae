#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "engine/inspector.hpp"

namespace holdfast::engine {

using layout::Manifest;
using layout::RowRecord;

namespace {

constexpr size_t most_findings = 10000;

struct Verifier {
  Inspector& look;
  VerifyReport& report;

  void found(uint64_t row, int unit, int member, std::string what, std::string detail) {
    ++report.finding_count;
    if (member >= 0) ++report.status.members[member].damaged_units;
    if (report.findings.size() < most_findings) report.findings.push_back({row, unit, member, std::move(what), std::move(detail)});
  }

  void check_slots(const RowRecord& record, const std::vector<Bytes>& slots) {
    const Bytes sound = look.records.encode(std::span(&record, 1));
    for (const int member : look.records.holders(record.row)) {
      if (!look.members.available(member)) continue;
      const bool empty_is_right = record.generation == 0;
      if (slots[member] == sound || (empty_is_right && slots[member].empty())) continue;
      if (look.journals.holds(record.row)) continue;  // being replaced
      auto theirs = layout::decode_record(look.located.manifest.geometry, look.records.key(), record.row, slots[member]);
      if (slots[member].empty()) found(record.row, -1, member, "sums", "the row's checksums are missing");
      else if (theirs.ok() && theirs->generation < record.generation)
        found(record.row, -1, member, "stale", fmt::format("its checksums are of generation {}, not {}", theirs->generation, record.generation));
      else found(record.row, -1, member, "sums", "the row's checksums are damaged there");
    }
  }

  std::string name_damage(const RowRecord& record, int unit, int member, const Bytes& slot, std::string& detail) {
    auto own = layout::decode_record(look.located.manifest.geometry, look.records.key(), record.row, slot);
    if (!slot.empty() && own.ok() && own->generation < record.generation) return "stale";
    const auto place = layout::place(look.located.manifest.geometry, record.row, unit);
    const uint64_t end = place.offset + needed_bytes(look.rows.geometry(), record, unit, look.located.manifest.size);
    auto bytes = std::make_shared<uint64_t>(0);
    Status sized = look.members
                       .submit(member,
                               [bytes, name = look.located.data_name(place.object)](MemberHandle& handle) {
                                 auto object = handle.object(name, target::OpenMode::read);
                                 if (!object.ok()) return object.status();
                                 auto size = (*object)->size();
                                 if (!size.ok()) return size.status();
                                 *bytes = *size;
                                 return Status();
                               })
                       ->wait();
    if (sized.ok() && *bytes < end) {
      detail = fmt::format("{} ends at {} and should reach {}", look.located.data_name(place.object), *bytes, end);
      return "truncated";
    }
    return "corrupt";
  }

  // Units of the row on targets that the report calls so.
  int units_out_of_reach(uint64_t row) const {
    const auto& g = look.located.manifest.geometry;
    int units = 0;
    for (int unit = 0; unit < g.scheme.width(); ++unit)
      units += report.status.members[size_t(layout::place(g, row, unit).member)].state == "unreached";
    return units;
  }

  // One row: every unit, every checksum, the code. Reports each damaged unit once.
  void check_row(const RowRecord& record, const std::vector<Bytes>& slots) {
    const auto& g = look.located.manifest.geometry;
    const uint32_t step = std::max<uint32_t>(1, uint32_t(inspected_bytes / g.block_bytes));
    uint64_t reported = 0;  // units, as a mask
    const int unreached = units_out_of_reach(record.row);
    bool lost = false, gone = false;
    for (uint32_t block = 0; block < g.blocks_per_unit(); block += step) {
      const uint32_t blocks = std::min(step, g.blocks_per_unit() - block);
      const UnitReads reads = look.rows.read_units(record, block, blocks, look.members.available());
      const bool all_whole = report_damage(record, slots, reads, reported);
      for (uint32_t i = 0; i < blocks; ++i) {
        int good = 0;
        for (auto& read : reads) good += read->status.ok() && !read->bad[i];
        lost |= good < g.scheme.k;
        gone |= good + unreached < g.scheme.k;
      }
      if (all_whole && !code_holds(reads, blocks)) found(record.row, -1, -1, "code", "every checksum holds and the code does not");
    }
    if (!lost) return;
    ++report.lost_rows;
    report.gone_rows += gone;
    if (gone) found(record.row, -1, -1, "lost", fmt::format("fewer than {} units of the row are left", g.scheme.k));
    else found(record.row, -1, -1, "unreached", fmt::format("fewer than {} units of the row are in reach", g.scheme.k));
  }

  // False where any unit is not whole, also those of members that are known to be lost.
  bool report_damage(const RowRecord& record, const std::vector<Bytes>& slots, const UnitReads& reads, uint64_t& reported) {
    bool all_whole = true;
    for (int unit = 0; unit < int(reads.size()); ++unit) {
      const UnitBlocks& read = *reads[size_t(unit)];
      if (read.whole()) continue;
      all_whole = false;
      const int member = layout::place(look.located.manifest.geometry, record.row, unit).member;
      if ((reported >> unit & 1) || !look.members.available(member)) continue;
      reported |= 1ull << unit;
      std::string detail = read.status.sentence(), what;
      if (read.status.kind() == Kind::not_found) what = "missing";
      else if (!read.status.ok()) what = "unreadable";
      else what = name_damage(record, unit, member, slots[size_t(member)], detail);
      found(record.row, unit, member, what, detail);
    }
    return all_whole;
  }

  // Counts what of the row was looked at.
  void count_units(const RowRecord& record) {
    const Manifest& manifest = look.located.manifest;
    for (int unit = 0; unit < manifest.geometry.scheme.width(); ++unit) {
      const int member = layout::place(manifest.geometry, record.row, unit).member;
      if (!look.members.available(member)) continue;
      ++report.units;
      ++report.status.members[size_t(member)].units;
      report.bytes += stored_bytes(manifest.geometry, record, unit, manifest.size);
    }
  }

  // False where there was nothing to be read.
  bool look_at_row(uint64_t row) {
    auto record = look.rows.record(row);
    if (!record.ok()) {
      ++report.lost_rows;
      const bool gone = units_out_of_reach(row) == 0;
      report.gone_rows += gone;
      found(row, -1, -1, gone ? "lost" : "unreached", record.status().sentence());
      return false;
    }
    const std::vector<Bytes> slots = look.slots(row, look.members.available() & usable_in(look.located) & look.records.holders(row));
    check_slots(*record, slots);
    ++report.rows;
    if (record->hole()) return false;
    check_row(*record, slots);
    count_units(*record);
    return true;
  }

  bool code_holds(const UnitReads& reads, uint32_t blocks) {
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
  const bool lost = report.gone_rows > 0 || status.health == Health::lost;
  const bool unknown = !lost && (status.health == Health::unknown || report.lost_rows > 0);
  for (MemberReport& member : status.members) {
    if (member.state != "ok" || member.damaged_units == 0) continue;
    member.state = "damaged";
    member.why = fmt::format("{} damaged unit{}", member.damaged_units, member.damaged_units == 1 ? "" : "s");
  }
  judge(status);
  if (unknown) status.health = Health::unknown;
  else if (lost) status.health = Health::lost;
  else if (report.finding_count || status.health != Health::healthy) status.health = Health::degraded;
}

}  // namespace

Result<VerifyReport> verify(const catalog::Located& located, const Settings& settings, const Progress& progress) {
  Inspector look(located, settings);
  VerifyReport report;
  if (look.status.kind() == Kind::lost || look.status.kind() == Kind::stale) {
    report.status = describe_lost(look);
    report.findings.push_back({0, -1, -1, report.status.health == Health::unknown ? "unreached" : "lost", look.status.sentence()});
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
    if (verifier.look_at_row(row) && progress && !progress(report.bytes, std::max(total, report.bytes))) {
      report.stopped = true;
      break;
    }
  }
  judge_verified(report);
  return report;
}

}  // namespace holdfast::engine
