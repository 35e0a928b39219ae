// Repair, in batches: between them a running job gets the file's lock.
#include <algorithm>
#include <chrono>

#include <fmt/format.h>

#include "engine/repair_batch.hpp"
#include "engine/waiting.hpp"

namespace holdfast::engine {

using layout::Manifest;

namespace {

constexpr uint64_t batch_bytes = 16 << 20;
constexpr auto batch_time = std::chrono::milliseconds(100);
// Where nobody has the file open, and nodes rebuild it over links that are slower than disks.
constexpr uint64_t times_by_nodes = 10;
// Longer than any who waits for the lock sleeps between two tries.
constexpr auto between_batches = std::chrono::milliseconds(6);
// A pass that a job's commit has interrupted is followed by one over what was committed since, in batches four times as large.
constexpr int most_passes = 4;

class Repair {
 public:
  Repair(catalog::Located& located, const Settings& settings, const Progress& progress)
      : settings_(settings), progress_(progress), ledger_(located, settings) {}

  Result<RepairReport> run() {
    HF_TRY(enough_answer());
    bool done = false;
    for (int number = 0; number < most_passes && !done && !ledger_.report.stopped; ++number) {
      auto finished = pass(number);
      if (!finished.ok()) return finished.status();
      done = *finished;
    }
    if (!ledger_.report.stopped) HF_TRY(fold_sessions());
    RepairReport report = std::move(ledger_.report);
    report.lost_rows.assign(ledger_.lost_rows.begin(), ledger_.lost_rows.end());
    tell_what_is_left(report);
    auto after = file_status(ledger_.located, settings_);
    if (after.ok()) report.status = std::move(*after);
    return report;
  }

 private:
  // With more targets out of reach than the scheme bears, nothing can be rebuilt and nothing is touched.
  Status enough_answer() const {
    const catalog::Located& located = ledger_.located;
    const Members members(located);
    return check_losses(members, located.manifest);
  }

  Result<std::unique_ptr<RepairBatch>> begin_batch() {
    auto batch = RepairBatch::begin(ledger_, settings_);
    if (!batch.ok() || prepared_) return batch;
    prepared_ = true;
    HF_TRY((*batch)->clear_the_way());
    return batch;
  }

  // All rows, or those that were committed since the last pass began. True: the members are as current as they can be made.
  Result<bool> pass(int number) {
    std::optional<Manifest> began;
    for (uint64_t row = 0;;) {
      auto batch = begin_batch();
      if (!batch.ok()) return batch.status();
      if (!began) began = (*batch)->manifest();
      row = mend_rows(**batch, row, number);
      (*batch)->make_durable();
      if (ledger_.report.stopped) return false;
      if (row >= (*batch)->manifest().rows) {
        // Rows that a job has synced meanwhile are not on the members that it has set aside.
        const bool undisturbed = (*batch)->manifest().epoch == began->epoch;
        ledger_.overtaken = undisturbed ? MemberSet() : (*batch)->newcomers();
        if (ledger_.overtaken.none()) HF_TRY((*batch)->finish());
      }
      if (settings_.accept_epoch) settings_.accept_epoch = std::max((*batch)->manifest().epoch, ledger_.located.manifest.epoch);
      const bool end = row >= (*batch)->manifest().rows;
      batch->reset();
      if (end) break;
      wait_while_busy(between_batches);
    }
    // Rows that waited in journals then may have come to their place since, on fewer members, under the generation that they had. The next pass
    // looks at all.
    since_ = began->journals.empty() ? std::move(began) : std::nullopt;
    return ledger_.overtaken.none();
  }

  // As many rows as one holding of the lock is for; returns the next one.
  uint64_t mend_rows(RepairBatch& batch, uint64_t row, int number) {
    const Manifest& manifest = batch.manifest();
    const layout::Geometry& g = manifest.geometry;
    const bool longer = batch.by_nodes() && batch.alone();
    const uint64_t times = (longer ? times_by_nodes : 1) << (2 * number);
    const uint64_t most = std::max<uint64_t>(1, batch_bytes * times / (g.unit_bytes * uint64_t(g.scheme.width())));
    const uint64_t end = now_ns() + uint64_t(std::chrono::nanoseconds(batch_time).count()) * times;
    for (uint64_t mended = 0; row < manifest.rows && mended < most && now_ns() < end; ++mended) {
      batch.mend(row, since_ ? &*since_ : nullptr);
      ++row;
      if (!progress_ || progress_(row * g.row_bytes(), manifest.rows * g.row_bytes())) continue;
      ledger_.report.stopped = true;
      break;
    }
    batch.mend_rest();
    return row;
  }

  // With the members that are current by now: what is written again is whole on them.
  Status fold_sessions() {
    if (ledger_.located.manifest.open_generations.empty()) return Status();
    auto batch = RepairBatch::begin(ledger_, settings_);
    if (!batch.ok()) return batch.status();
    return (*batch)->fold_sessions();
  }

  void tell_what_is_left(RepairReport& report) const {
    MemberSet replaced;
    for (const catalog::Member& fresh : ledger_.located.replacements) {
      replaced.add(fresh.index);
      tell(report, size_t(fresh.index), fresh.path);
    }
    for (const catalog::Member& member : ledger_.located.members) {
      const size_t index = size_t(member.index);
      const bool away = ledger_.located.manifest.members[index].stale || ledger_.overtaken.has(member.index);
      if (member.usable() && !replaced.has(member.index) && (away || !ledger_.failed[index].empty())) tell(report, index, member.path);
    }
  }
  void tell(RepairReport& report, size_t member, const std::string& path) const {
    std::string why = ledger_.failed[member];
    if (why.empty() && ledger_.incomplete.has(int(member))) why = ledger_.reasons[member];
    if (why.empty() && ledger_.overtaken.has(int(member))) why = "the job wrote meanwhile; repair again when it has ended";
    if (!why.empty()) report.left.push_back(fmt::format("{} is not brought up to date: {}", path, why));
  }

  Settings settings_;
  const Progress& progress_;
  RepairLedger ledger_;
  std::optional<Manifest> since_;
  bool prepared_ = false;
};

}  // namespace

Status enough_left(const catalog::Located& located, const Settings& settings) {
  const Inspector look(located, settings);
  HF_TRY(look.status);
  return check_losses(look.members, look.located.manifest);
}

Result<RepairReport> repair(catalog::Located& located, const Settings& settings, const Progress& progress) {
  return Repair(located, settings, progress).run();
}

}  // namespace holdfast::engine
