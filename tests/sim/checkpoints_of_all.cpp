// Files that all ranks write: each opens it by itself, or all open it together as by MPI.
#include <algorithm>

#include <fmt/format.h>

#include "catalog/growing.hpp"
#include "checkpoint/shared.hpp"
#include "engine/protected_file.hpp"
#include "exchange/exchange.hpp"
#include "sim/checkpoints_world.hpp"

namespace holdfast::sim {

// The content is one write of the model: the first rank that comes begins it, and each writes its own part, which is here and there.
bool CheckpointsWorld::write_shared(RankOf& rank, const std::string& path, uint64_t round, uint64_t step) {
  constexpr size_t sizes_of_all[] = {1000, 4096, 9001, 30000};
  const CheckpointsModel::Round of{attempts_.size(), round};
  OfAll& all = of_all_[of];
  if (all.number == 0) all.number = model_.begin_write(of, step, path, rank.number, any_size(sizes_of_all), random_);
  const auto file = rank.front->match(path);
  if (!file) return found(path + " is no checkpoint"), false;
  std::optional<Front::Shared> before;
  // No slot is written anew before the round before is over: natively both would be in one file.
  const auto last = naming_ == Naming::shared_slots ? of_all_.find({attempts_.size(), round - 1}) : of_all_.end();
  if (last != of_all_.end() && !wait_for_all([&] { return last->second.ranks.size() == ranks_; })) return false;
  if (!write_before(rank, *file, all)) return false;
  if (!all.looks) all.looks = one_in(5);
  if (*all.looks && !look_first(rank, *file, all, before)) return false;
  if (!all.way)
    all.way = *all.looks || *writes_before_ || !one_in(4) ? OfAll::Way::written : one_in(2) ? OfAll::Way::resized : OfAll::Way::resized_by_handle;
  if (*all.way != OfAll::Way::written) return write_resized(rank, *file, all);
  // Who truncates it waits for the others before it writes. Or the first one alone does, and the others open it then, some when others have closed it.
  if (!all.truncated_by_one) all.truncated_by_one = !*all.looks && one_in(2);
  const bool truncates = !*all.truncated_by_one || rank.number == 0;
  if (!truncates && !wait_for_all([&] { return all.opened > 0; })) return false;
  const auto shared = rank.front->open_shared(*file, O_WRONLY | O_CREAT | (truncates ? O_TRUNC : 0), 0644);
  if (Schedule::dead()) return false;
  if (before) rank.front->shared_closed(*before, true, !shared);
  if (Schedule::dead()) return false;
  ++all.opened;
  if (!*all.truncated_by_one && shared && !wait_for_all([&] { return all.opened == ranks_; })) return false;
  if (!shared) {
    if (all_well()) found(fmt::format("{} cannot be opened: {}", path, shared.status().sentence()));
    return false;
  }
  note(fmt::format("rank {} writes version {} of {}", rank.number, shared->name.number, path));
  model_.name(all.number, CheckpointsModel::key_of(shared->name.version_in(run_), catalog::digits_of_node(run_.nodes.front())));
  Status written = rank.front->shared_written(*shared).status();
  if (written && !Schedule::dead())
    written = write_own_part(rank, checkpoint::locate_shared(shared->manifest, durable()), model_.write(all.number).content, durable());
  if (Schedule::dead()) return false;
  if (written && all.ranks.insert(rank.number).second && all.ranks.size() == ranks_)
    model_.write(all.number).complete = true, count(Did::files_shared);
  rank.front->shared_closed(*shared, written.ok(), true);
  if (!written && !Schedule::dead() && all_well()) found(fmt::format("{} cannot be written: {}", path, written.sentence()));
  return written.ok() && !Schedule::dead();
}

// All have it open to read and write, by descriptors or by MPI's handles. Then one of them sets its size, and all write.
bool CheckpointsWorld::write_resized(RankOf& rank, const Front::File& file, OfAll& all) {
  const auto by = *all.way == OfAll::Way::resized ? Front::By::number : Front::By::handle;
  const auto shared = rank.front->open_shared(file, O_RDWR | O_CREAT, 0644, by);
  if (Schedule::dead()) return false;
  if (!shared && all_well()) found(fmt::format("{} cannot be opened to be resized: {}", file.path, shared.status().sentence()));
  if (!shared) return false;
  const auto located = checkpoint::locate_shared(shared->manifest, durable());
  Status status;
  if (by == Front::By::handle) status = open_by_handle(rank, *shared);
  if (Schedule::dead()) return false;
  if (++all.opened; !wait_for_all([&] { return all.opened == ranks_; })) return false;
  if (status && rank.number == 0) status = rank.front->shared_written(*shared, by, true).status();
  if (status && rank.number == 0 && !Schedule::dead()) status = checkpoint::truncate_shared_file(shared->manifest, durable());
  if (rank.number == 0) all.is_resized = status.ok();
  if (!wait_for_all([&] { return all.is_resized.has_value(); })) return false;
  const auto name = status ? rank.front->shared_written(*shared, by) : Result<checkpoint::LocalName>(status);
  if (name) note(fmt::format("rank {} has version {} of {} open, and writes version {}", rank.number, shared->name.number, file.path, name->number));
  if (name) model_.name(all.number, CheckpointsModel::key_of(name->version_in(run_), catalog::digits_of_node(run_.nodes.front())));
  status = name.status();
  if (status && *all.is_resized && !Schedule::dead()) status = write_own_part(rank, located, model_.write(all.number).content, durable());
  if (Schedule::dead()) return false;
  const bool has_written = status.ok() && *all.is_resized;
  if (has_written && all.ranks.insert(rank.number).second && all.ranks.size() == ranks_)
    model_.write(all.number).complete = true, count(Did::files_shared), count(Did::resized);
  if (by == Front::By::handle) rank.front->handle_closed(*shared, has_written);
  else rank.front->shared_closed(*shared, has_written, true);
  if (!status && !Schedule::dead() && all_well()) found(fmt::format("{} cannot be resized and written: {}", file.path, status.sentence()));
  return has_written && !Schedule::dead();
}

// It opens the file to write, whether it will or not.
Status CheckpointsWorld::open_by_handle(const RankOf& rank, const Front::Shared& shared) {
  const auto alone = exchange::make_solo();
  auto file = engine::ProtectedFile::open(checkpoint::locate_shared(shared.manifest, durable()), {.read = true, .write = true}, durable(), *alone);
  if (!file) return file.status();
  HF_TRY(rank.front->handle_opened(shared));
  return (*file)->close();
}

// One rank alone. Then it is truncated, and nobody ever sees that. A program that does so does it each time.
bool CheckpointsWorld::write_before(RankOf& rank, const Front::File& file, OfAll& all) {
  if (!writes_before_) writes_before_ = ranks_ > 1 && one_in(5);
  if (!*writes_before_) return true;
  if (!all.written_before_by) all.written_before_by = uint32_t(random(ranks_));
  if (rank.number != *all.written_before_by) return wait_for_all([&] { return all.is_written_before; });
  const auto shared = rank.front->open_shared(file, O_WRONLY | O_CREAT | O_TRUNC, 0644);
  if (Schedule::dead()) return false;
  if (!shared && all_well()) found(fmt::format("{} cannot be opened before: {}", file.path, shared.status().sentence()));
  if (!shared) return false;
  Status written = rank.front->shared_written(*shared).status();
  if (written && !Schedule::dead())
    written = write_own_part(rank, checkpoint::locate_shared(shared->manifest, durable()), Bytes(3000, std::byte(0xee)), durable());
  if (Schedule::dead()) return false;
  rank.front->shared_closed(*shared, written.ok(), true);
  if (Schedule::dead()) return false;
  if (!written && all_well()) found(fmt::format("{} cannot be written before: {}", file.path, written.sentence()));
  note(fmt::format("rank {} has written version {} of {} before", rank.number, shared->name.number, file.path));
  count(Did::written_before, written.ok());
  return all.is_written_before = written.ok();
}

// Programs make the file first, or look whether they may write it. Then all ranks truncate it, before any of them writes.
bool CheckpointsWorld::look_first(RankOf& rank, const Front::File& file, OfAll& all, std::optional<Front::Shared>& before) {
  constexpr int ways[] = {O_RDWR | O_CREAT, O_WRONLY | O_CREAT, O_WRONLY | O_CREAT | O_TRUNC};
  if (one_in(2)) {
    auto opened = rank.front->open_shared(file, ways[random(std::size(ways))], 0644);
    if (Schedule::dead()) return false;
    if (!opened && all_well()) found(fmt::format("{} cannot be opened at first: {}", file.path, opened.status().sentence()));
    if (opened && one_in(2)) before = std::move(*opened);
    else if (opened) rank.front->shared_closed(*opened, true, true);
    if (Schedule::dead()) return false;
  }
  ++all.looked;
  return wait_for_all([&] { return all.looked == ranks_; });
}

Settings CheckpointsWorld::durable() const {
  Settings settings = settings_;
  settings.fast_close = false;
  return settings;
}

Status CheckpointsWorld::write_own_part(const RankOf& rank, const catalog::Located& located, const Bytes& content, const Settings& durable,
                                        std::set<int>* lost) {
  constexpr size_t part = 700;
  const auto alone = exchange::make_solo();
  auto file = engine::ProtectedFile::open(located, {.read = true, .write = true}, durable, *alone);
  if (!file) return file.status();
  for (size_t at = rank.number * part; at < content.size(); at += ranks_ * part) {
    const Extent extent{at, std::min(part, content.size() - at)};
    HF_TRY((*file)->write({&extent, 1}, ByteView(content).subspan(at, size_t(extent.length))));
  }
  const Status closed = (*file)->close();
  if (lost)
    for (const int member : (*file)->lost_members()) lost->insert(member);
  return closed;
}

// --- together

// A job of MPI does not outlive any of its ranks: false where one has died. Else when it is so.
bool CheckpointsWorld::wait_for_all(const std::function<bool()>& is_so) const {
  const auto has_died = [this](const RankOf& one) { return schedule_.is_dead(one.process) || (schedule_.has_ended(one.process) && !one.ended_well); };
  while (!Schedule::dead() && !is_so()) {
    if (std::any_of(job_.begin(), job_.end(), has_died)) return false;
    Schedule::yield(true);
  }
  return !Schedule::dead();
}

// By the first rank, which tells the others where it lies.
bool CheckpointsWorld::begin_together(RankOf& rank, const std::string& path, OfAll& all) {
  const auto file = rank.front->match(path);
  if (!file) return found(path + " is no checkpoint"), false;
  auto begun = rank.front->begin_together(*file, (one_in(2) ? O_RDWR : O_WRONLY) | O_CREAT, 0644, durable());
  if (Schedule::dead()) return false;
  all.is_refused = !begun.ok();
  if (!begun && all_well()) found(fmt::format("{} cannot be opened together: {}", path, begun.status().sentence()));
  if (!begun) return false;
  all.key = CheckpointsModel::key_of(begun->name.version_in(run_), catalog::digits_of_node(site_.disks[size_t(rank.node)].address));
  // Where all nodes that know of a number are lost it is given again. What nobody closes does not take the name of what was whole.
  if (const auto* const before = model_.named(all.key); !before || !before->complete) model_.name(all.number, all.key);
  all.begun = std::move(*begun);
  return true;
}

bool CheckpointsWorld::write_together(RankOf& rank, const std::string& path, uint64_t round, uint64_t step) {
  const CheckpointsModel::Round of{attempts_.size(), round};
  OfAll& all = of_all_[of];
  if (all.number == 0) all.number = model_.begin_write(of, step, path, 0, together_bytes_, random_);  // what was there stays behind a shorter one
  const bool is_first = rank.number == 0;
  if (is_first && !begin_together(rank, path, all)) return false;
  if (!wait_for_all([&] { return all.begun || all.is_refused; }) || all.is_refused) return false;
  const auto file = rank.front->match(path);
  const bool may_stay_so = all.begun->may_stay_so;
  if (!is_first) rank.front->seen_together(*file, !may_stay_so);
  const auto located = is_first ? all.begun->located : catalog::locate_growing(all.begun->located.manifest, durable());
  Status written = may_stay_so ? rank.front->written_together(all.begun->name) : Status();
  std::set<int> lost;
  if (written) written = write_own_part(rank, located, model_.write(all.number).content, durable(), &lost);
  all.lost.insert(lost.begin(), lost.end());
  if (is_first) all.lost_of_first = lost;
  if (Schedule::dead()) return false;
  ++all.closed, all.is_closed_well &= written.ok();
  if (!written && all_well()) found(fmt::format("{} cannot be written together: {}", path, written.sentence()));
  if (!wait_for_all([&] { return all.closed == ranks_; })) return false;
  if (may_stay_so) rank.front->seen_together(*file, true);
  if (is_first) {
    // Ranks of MPI tell each other which targets they have found lost: where each could do without its own, they cannot do without all of these. The first one would
    // go on without them. Here it cannot be told, so that such a file fails.
    all.is_closed_well &= all.lost == all.lost_of_first && all.lost.size() <= size_t(located.manifest.geometry.scheme.m);
    model_.write(all.number).complete = all.is_closed_well;
    if (all.is_closed_well) model_.name(all.number, all.key);
    const auto lost = rank.front->end_together(*all.begun, all.is_closed_well);
    if (Schedule::dead()) return false;
    if (!lost && all_well()) found(fmt::format("{} is no version: {}", path, lost.status().sentence()));
    all.is_version = lost.ok() && all.is_closed_well;
    count(Did::files_shared, *all.is_version);
  }
  if (!wait_for_all([&] { return all.is_version.has_value(); })) return false;
  if (may_stay_so) rank.front->ended_together(all.begun->name, !*all.is_version);
  return *all.is_version;
}

// Of one that is opened to read and write, and only read.
std::optional<Bytes> CheckpointsWorld::bytes_at_all(const catalog::Located& located) const {
  const auto alone = exchange::make_solo();
  const auto file = engine::ProtectedFile::open(located, {}, durable(), *alone);
  const auto size = file ? (*file)->size() : Result<uint64_t>(file.status());
  if (!size) return {};
  Bytes bytes(*size);
  const Extent all{0, bytes.size()};
  const auto got = (*file)->read({&all, 1}, bytes);
  return got && *got == bytes.size() ? std::optional(std::move(bytes)) : std::nullopt;
}

std::optional<Bytes> CheckpointsWorld::bytes_to_update_of_all(RankOf& rank, const Front::File& file, Status& status) {
  if (is_shared()) {
    const auto shared = rank.front->open_shared(file, O_RDWR, 0);
    if (Schedule::dead()) return {};
    if (!shared) return status = shared.status(), std::nullopt;
    auto bytes = bytes_at_all(checkpoint::locate_shared(shared->manifest, durable()));
    if (!Schedule::dead()) rank.front->shared_closed(*shared, true, true);
    return bytes;
  }
  const auto begun = rank.front->begin_together(file, O_RDWR, 0, durable());
  if (Schedule::dead()) return {};
  if (!begun) return status = begun.status(), std::nullopt;
  auto bytes = bytes_at_all(begun->located);
  if (!Schedule::dead()) (void)rank.front->end_together(*begun, false);
  return bytes;
}

}  // namespace holdfast::sim
