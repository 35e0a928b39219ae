#include <algorithm>
#include <chrono>
#include <optional>
#include <thread>

#include <fmt/format.h>

#include "base/meter.hpp"
#include "layers/protected/agreement.hpp"
#include "layers/protected/file.hpp"
#include "layers/protected/object_sizes.hpp"

namespace holdfast::layers {

using layout::Manifest;

namespace {
constexpr auto lock_patience = std::chrono::minutes(10);
constexpr size_t most_running_writers = 256;  // commits need a generation each beside the session's
}

// The sidecar's lock is the one that every opener can see; where its directory is gone, the members' locks in order.
Result<Locks> lock_file(Members& members, const catalog::Located& located) {
  const auto give_up = std::chrono::steady_clock::now() + lock_patience;
  auto pause = std::chrono::microseconds(50);
  for (;;) {
    Locks locks;
    bool busy = false;
    auto main = located.path_keeper ? located.path_keeper->try_lock()
                                    : Result<std::unique_ptr<target::Lock>>(Status(Kind::not_found, "no sidecar"));
    if (main.ok()) {
      locks.push_back(std::move(*main));
      return locks;
    }
    busy = main.status().kind() == Kind::busy;
    for (int member = 0; member < members.count() && !busy; ++member) {
      if (!members.available(member)) continue;
      auto lock = members.lock(member, located.meta_name(member, "lock"));
      busy = lock.status().kind() == Kind::busy;
      if (lock.ok()) locks.push_back(std::move(*lock));
    }
    if (!busy) return locks;
    locks.clear();
    if (std::chrono::steady_clock::now() > give_up)
      return Status(Kind::busy, located.manifest.path + ": another program has been holding its lock for ten minutes");
    std::this_thread::sleep_for(pause);
    pause = std::min(pause * 2, std::chrono::microseconds(5000));
  }
}

File::File(catalog::Located located, Access access, const Settings& settings, exchange::Exchange& ranks)
    : located_(std::move(located)),
      access_(access),
      settings_(settings),
      ranks_(ranks),
      alone_(exchange::make_solo()),
      members_(located_),
      records_(members_, located_),
      rows_(members_, records_, located_, ranks.rank()),
      spill_(members_, located_, fmt::format("spill.{}.{}", layout::random_id(), ranks.rank()), ranks.rank()),
      pending_(located_.manifest.geometry.row_bytes(), settings.buffer_bytes, spill_) {
  rows_.is_abandoned = [this](uint64_t generation) {
    const auto& open = located_.manifest.open_generations;
    return generation != session_ && std::find(open.begin(), open.end(), generation) != open.end();
  };
  rows_.refresh = [this] {
    auto reading = read_manifest(members_, located_, settings_);
    if (reading.ok() && reading->manifest.epoch != located_.manifest.epoch) {
      located_.manifest = std::move(reading->manifest);
      use_journals();
    }
    records_.forget_all();
    return true;
  };
}

Result<std::unique_ptr<ProtectedFile>> ProtectedFile::open(catalog::Located located, Access access, const Settings& settings,
                                                           exchange::Exchange& exchange) {
  auto file = std::make_unique<File>(std::move(located), access, settings, exchange);
  HF_TRY(file->begin());
  return std::unique_ptr<ProtectedFile>(std::move(file));
}

// As long as a writer has the file open it holds a lock of its own on every member: the first number that nobody holds. So
// repair knows whether the sessions that the manifest lists have ended without closing.
Locks announce_writer(Members& members, const catalog::Located& located) {
  Locks locks;
  for (int member = 0; member < members.count(); ++member)
    for (int number = 0; members.available(member); ++number) {
      auto lock = members.lock(member, located.meta_name(member, fmt::format("{}{}", writer_lock_prefix, number)));
      if (lock.status().kind() == Kind::busy) continue;
      if (lock.ok()) locks.push_back(std::move(*lock));
      break;
    }
  return locks;
}

// A writer's open: a generation of its own, a crashed committer's journals folded in, losses written down.
Status File::begin_writing(Manifest& manifest) {
  located_.manifest = manifest;
  if (manifest.open_generations.size() + most_running_writers > layout::max_open_generations)
    return Status(Kind::busy, fmt::format("{}: {} writers of it were killed or are still running, more than it can bear; when "
                                          "none runs, run: holdfast repair {}",
                                          manifest.path, manifest.open_generations.size(), manifest.path));
  presence_ = announce_writer(members_, located_);
  if (!manifest.journals.empty()) {
    for (const std::string& name : manifest.journals) replay_journal(members_, records_, located_, name);
    members_.each([](int) -> MemberCall { return [](MemberHandle& handle) { return handle.settle(true); }; });
  }
  std::vector<std::string> folded;
  folded.swap(manifest.journals);
  manifest.open_generations.push_back(manifest.next_generation++);
  // Durable, so that after a power failure nobody takes this session's records for those of a generation that was synced. A
  // new file has none that could be.
  const bool durable = !folded.empty() || (!access_.fresh && !settings_.fast_close);
  HF_TRY(write_manifest(members_, located_, manifest, durable));
  for (const std::string& name : folded) remove_journal(members_, located_, name);
  return Status();
}

Status File::begin() {
  const LayerTime measured;
  HF_TRY(agree(ranks_, members_, Status()));
  Result<Manifest> mine(Status(Kind::internal, "rank 0 reads the manifest"));
  if (ranks_.rank() == 0) {
    mine = [&]() -> Result<Manifest> {
      if (access_.write) HF_TRY(located_.read_only);
      Locks locks;
      if (access_.write) {
        auto got = lock_file(members_, located_);
        if (!got.ok()) return got.status();
        locks = std::move(*got);
      }
      Manifest manifest = located_.manifest;
      // Also of a file just made: another opener may have found it and written before this one got the lock.
      auto reading = read_manifest(members_, located_, settings_);
      if (!reading.ok() && !access_.fresh) return reading.status();
      if (reading.ok()) {
        lose_stale_members(members_, *reading);
        manifest = std::move(reading->manifest);
        manifest.path = located_.manifest.path;
      }
      if (access_.write) HF_TRY(begin_writing(manifest));
      return manifest;
    }();
  }
  auto manifest = share_manifest(ranks_, mine);
  if (!manifest.ok()) return manifest.status();
  located_.manifest = std::move(*manifest);
  HF_TRY(agree(ranks_, members_, Status()));
  if (access_.write) session_ = located_.manifest.open_generations.back();
  file_end_ = located_.manifest.size;
  records_.forget_all();
  use_journals();
  if (access_.read && file_end_ > 0) open_ahead();
  return Status();
}

// The data objects are opened in their lanes while the program goes on; nobody waits for that. What is open can be read from
// memory without a lane.
void File::open_ahead() {
  const layout::Geometry& g = located_.manifest.geometry;
  for (int member = 0; member < members_.count(); ++member)
    for (int object = 0; members_.available(member) && object < layout::object_count(g); ++object)
      if (layout::holds(g, member, object))
        (void)members_.submit(member, [name = located_.data_name(object)](MemberHandle& handle) {
          return handle.object(name, target::OpenMode::read).status();
        });
}

Status File::settle(exchange::Exchange& ranks, bool durable, const Status& before) {
  if (before.ok())
    members_.each([&](int) -> MemberCall { return [durable](MemberHandle& handle) { return handle.settle(durable); }; });
  HF_TRY(agree(ranks, members_, before));
  return check_losses(members_, located_.manifest);
}

// By rank 0 (or the one rank that commits alone): excludes other openers and starts from what they committed.
Result<Manifest> File::start_commit(Locks& locks, const Commit& how) {
  if (!how.locked) {
    auto got = lock_file(members_, located_);
    if (!got.ok()) return got.status();
    locks = std::move(*got);
  }
  auto reading = read_manifest(members_, located_, settings_);
  if (!reading.ok()) return reading.status();
  lose_stale_members(members_, *reading);
  reading->manifest.path = located_.manifest.path;
  reading->manifest.path_state = located_.manifest.path_state;
  // The commit's own generation, open until the manifest says otherwise.
  reading->manifest.open_generations.push_back(reading->manifest.next_generation++);
  return std::move(reading->manifest);
}

// By rank 0: the manifest that makes the session's and the commit's records synced, and names the journals that replace rows.
Result<Manifest> File::write_committed(const Commit& how, uint64_t generation, uint64_t file_end, std::vector<std::string> journals) {
  Manifest manifest = located_.manifest;
  manifest.size = how.new_size ? *how.new_size : std::max(manifest.size, file_end);
  manifest.rows = divide_up(manifest.size, manifest.geometry.row_bytes());
  manifest.journals = std::move(journals);
  // The last row always has a record, so that a sums object that was cut short can be told from one that ends in holes.
  if (manifest.rows > 0) {
    auto last = rows_.record(manifest.rows - 1);
    if (!last.ok()) return last.status();
    if (last->generation == 0) write_hole_record(manifest.rows - 1, generation, how.durable);
  }
  std::erase(manifest.open_generations, generation);
  if (!how.keep_session) {
    std::erase(manifest.open_generations, session_);
    if (!how.final) manifest.open_generations.push_back(manifest.next_generation++);
  }
  HF_TRY(write_manifest(members_, located_, manifest, how.durable));
  return manifest;
}

void File::write_hole_record(uint64_t row, uint64_t generation, bool durable) {
  const layout::RowRecord hole{row, generation, {}};
  auto slot = std::make_shared<Bytes>(records_.encode(std::span(&hole, 1)));
  members_.each([&](int member) -> MemberCall {
    return [slot, name = records_.object_name(member), offset = row * records_.slot_bytes(), durable](MemberHandle& handle) {
      HF_TRY(handle.write(name, offset, *slot));
      return durable ? handle.settle(true) : Status();
    };
  });
  records_.remember(hole);
}

// Collective, after the manifest that names the journals: the new rows take their place.
Status File::fold_journals(exchange::Exchange& ranks, const Commit& how, Journal& journal) {
  if (!journal.empty()) journal.fold();
  HF_TRY(settle(ranks, how.durable, Status()));
  Result<Manifest> cleared(Status(Kind::internal, "rank 0 clears"));
  if (ranks.rank() == 0) {
    Manifest manifest = located_.manifest;
    manifest.journals.clear();
    Status written = write_manifest(members_, located_, manifest, how.durable);
    cleared = written.ok() ? Result<Manifest>(std::move(manifest)) : Result<Manifest>(written);
  }
  HF_TRY(adopt(ranks, cleared));
  journal.remove();
  return Status();
}

Status File::adopt(exchange::Exchange& ranks, const Result<Manifest>& from_rank_0) {
  auto shared = share_manifest(ranks, from_rank_0);
  if (!shared.ok()) return shared.status();
  located_.manifest = std::move(*shared);
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

Status File::commit(exchange::Exchange& ranks, const Commit& how) {
  const auto facts = ranks.all_max({int64_t(file_end_), dirty_ || !pending_.empty(), how.new_size ? 1 : 0});
  if (!facts[1] && !facts[2] && !how.final) return Status();
  Locks locks;
  Result<Manifest> manifest(Status(Kind::internal, "rank 0 starts"));
  if (ranks.rank() == 0) manifest = start_commit(locks, how);
  const uint64_t known_epoch = located_.manifest.epoch;
  HF_TRY(adopt(ranks, manifest));
  if (located_.manifest.epoch != known_epoch) records_.forget_all();
  const uint64_t generation = located_.manifest.next_generation - 1;
  const uint64_t file_end = how.new_size ? *how.new_size : std::max(uint64_t(facts[0]), located_.manifest.size);

  Journal journal(members_, records_, located_, fmt::format("{}.{}", generation, ranks_.rank()));
  Status folded = fold_pending(ranks, false, {}, generation, file_end, &journal);
  HF_TRY(settle(ranks, how.durable, folded));
  records_.forget_all();  // other ranks have written rows that this one may remember
  const std::vector<std::string> journals = gather_journals(ranks, journal);
  if (ranks.rank() == 0) manifest = write_committed(how, generation, file_end, journals);
  HF_TRY(adopt(ranks, manifest));
  if (!how.keep_session && !how.final) session_ = located_.manifest.open_generations.back();
  if (!journals.empty()) HF_TRY(fold_journals(ranks, how, journal));
  if (ranks.rank() == 0 && located_.manifest.size % rows_.geometry().block_bytes && is_plain(rows_.geometry(), 0)) {
    members_.each([&](int member) { return trim_call(located_, member, located_.manifest.size); });
    // What the sidecar remembers of the path is what it looks like after the cut.
    if (located_.path_keeper) (void)located_.path_keeper->publish(located_.manifest, how.durable);
  }

  file_end_ = located_.manifest.size;
  rows_.journal.clear();
  rows_.journal_records.clear();
  records_.forget_all();
  dirty_ = how.keep_session;  // one rank's own commit has still to be made durable by all
  return agree(ranks, members_, Status());
}

Status File::sync() {
  const LayerTime measured;
  std::lock_guard guard(mutex_);
  if (!access_.write) {
    // A reader's sync sees what others have written since.
    Status status = look_again();
    return agree(ranks_, members_, status);
  }
  const uint64_t known_epoch = located_.manifest.epoch;
  HF_TRY(commit(ranks_, {.durable = true}));
  records_.forget_all();
  if (located_.manifest.epoch != known_epoch) return Status();
  // Nothing of our own: but what other openers have synced is to be seen from here on.
  return agree(ranks_, members_, look_again());
}

uint64_t File::agreed_size() {
  std::lock_guard guard(mutex_);
  file_end_ = uint64_t(ranks_.all_max({int64_t(file_end_)})[0]);
  return file_end_;
}

Status File::set_atomic(bool atomic) {
  std::lock_guard guard(mutex_);
  Status status;
  if (access_.write)
    status = commit(ranks_, {.durable = false});
  else
    status = agree(ranks_, members_, look_again());
  if (status.ok()) atomic_ = atomic;
  return status;
}

// By rank 0: objects as long as the file's size says.
Status File::cut(uint64_t bytes) {
  members_.each([&](int member) { return cut_call(located_, member, bytes, records_.slot_bytes()); });
  records_.forget_all();
  return check_losses(members_, located_.manifest);
}

Status File::set_size(uint64_t bytes) {
  const LayerTime measured;
  std::lock_guard guard(mutex_);
  if (!access_.write) return Status(Kind::access, located_.manifest.path + ": opened for reading only");
  HF_TRY(commit(ranks_, {.durable = !settings_.fast_close}));
  // What lay beyond the new end in its last row must read as zeros if the file grows again.
  const uint64_t row_bytes = rows_.geometry().row_bytes();
  Status zeroed;
  if (bytes < file_end_ && bytes % row_bytes && ranks_.rank() == 0) {
    const uint64_t end = std::min(file_end_, round_up(bytes, row_bytes));
    const Bytes zeros(end - bytes);
    zeroed = pending_.add(bytes / row_bytes, bytes % row_bytes, zeros.data(), zeros.size());
  }
  HF_TRY(agree(ranks_, members_, zeroed));
  HF_TRY(commit(ranks_, {.durable = !settings_.fast_close, .new_size = bytes}));
  Status status = ranks_.rank() == 0 ? cut(bytes) : Status();
  dirty_ = true;
  records_.forget_all();
  return agree(ranks_, members_, status);
}

Status File::close() {
  const LayerTime measured;
  std::lock_guard guard(mutex_);
  if (!access_.write) return agree(ranks_, members_, Status());
  const Status status = commit(ranks_, {.durable = !settings_.fast_close, .final = true});
  presence_.clear();
  spill_.clear();
  return status;
}

}  // namespace holdfast::layers
