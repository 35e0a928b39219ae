#include "frontend/mpi/shared_checkpoint.hpp"

#include <fcntl.h>
#include <fmt/format.h>

#include <functional>
#include <map>
#include <mutex>
#include <utility>

#include "base/node_path.hpp"
#include "catalog/growing.hpp"
#include "catalog/user_files.hpp"
#include "catalog/versions.hpp"
#include "checkpoint/local.hpp"
#include "checkpoint/protect.hpp"
#include "checkpoint/run.hpp"
#include "checkpoint/shared.hpp"
#include "exchange/agree.hpp"
#include "frontend/mpi/errors.hpp"
#include "frontend/mpi/recorded_checkpoint.hpp"
#include "frontend/posix/own_code.hpp"
#include "real_mpi.h"
#include "tree/settings.hpp"

namespace holdfast::frontend {

using posix::Checkpoints;
using tree::process_settings;

namespace {

Checkpoints* of_process() {
  const posix::OurCode ours_now;
  return Checkpoints::of_process(*process_settings());
}

// Rank 0's bytes, on all ranks.
Bytes from_first(exchange::Exchange& ranks, const Bytes& mine) { return ranks.size() == 1 ? mine : std::move(ranks.all_gather(mine)[0]); }

bool writes(int amode) { return (amode & (MPI_MODE_WRONLY | MPI_MODE_RDWR)) != 0; }

int flags_of(int amode) {
  int flags = amode & MPI_MODE_WRONLY ? O_WRONLY : O_RDWR;
  if (amode & MPI_MODE_CREATE) flags |= O_CREAT;
  if (amode & MPI_MODE_EXCL) flags |= O_EXCL;
  return flags;
}

// What the first rank tells the others of what it has begun, or found.
struct Told {
  bool fresh = false, may_stay_so = false, is_recorded = false;
  std::optional<checkpoint::LocalName> name = {};  // nothing: it is only read
  Bytes manifest = {};

  static Told decode(ByteView bytes) {
    Told told;
    told.fresh = bytes[0] != std::byte(0), told.may_stay_so = bytes[1] != std::byte(0), told.is_recorded = bytes[2] != std::byte(0);
    const auto length = size_t(bytes[3]);
    told.name = checkpoint::decode_local_name(std::string(reinterpret_cast<const char*>(bytes.data()) + told_numbers, length));
    const ByteView rest = bytes.subspan(told_numbers + length);
    told.manifest.assign(rest.begin(), rest.end());
    return told;
  }
  static constexpr size_t told_numbers = 4;

  Bytes encode() const {
    const auto text = name ? checkpoint::encode(*name) : Result<std::string>("");  // of at most 255 bytes
    Bytes bytes{std::byte(fresh), std::byte(may_stay_so), std::byte(is_recorded), std::byte(text->size())};
    const auto view = std::as_bytes(std::span(*text));
    bytes.insert(bytes.end(), view.begin(), view.end());
    bytes.insert(bytes.end(), manifest.begin(), manifest.end());
    return bytes;
  }
};

Told told_of(const std::optional<Checkpoints::Together>& growing, const std::optional<Checkpoints::Shared>& recorded,
             const layout::Manifest& manifest) {
  Told told;
  if (growing) told.fresh = growing->fresh, told.may_stay_so = growing->may_stay_so, told.name = growing->name;
  if (recorded) told.may_stay_so = recorded->may_stay_so, told.is_recorded = true, told.name = recorded->name;
  const std::string text = layout::encode(manifest);
  const auto view = std::as_bytes(std::span(text));
  told.manifest.assign(view.begin(), view.end());
  return told;
}

}  // namespace

// Of this process, by the path of the checkpoint's file.
class SharedCheckpoint::AllOpen {
 public:
  static AllOpen& here() {
    static AllOpen all;
    return all;
  }
  void add(const std::string& path, const OpenPtr& one) {
    const std::lock_guard lock(mutex_);
    std::erase_if(all_, [](const auto& other) { return other.second.expired(); });
    all_[key_of(path)] = one;
  }
  OpenPtr find(const std::string& path) {
    const std::lock_guard lock(mutex_);
    if (all_.empty()) return {};
    const auto found = all_.find(key_of(path));
    OpenPtr one = found == all_.end() ? OpenPtr() : found->second.lock();
    return one && one->is_over ? OpenPtr() : one;
  }

 private:
  static std::string key_of(const std::string& path) {
    const posix::OurCode ours_now;
    Checkpoints* const all = of_process();
    const auto file = all ? all->match(path, true) : std::nullopt;
    return file ? file->path : path;
  }

  std::mutex mutex_;
  std::map<std::string, std::weak_ptr<Open>> all_;
};

bool SharedCheckpoint::is_meant(const Settings& settings, const std::string& path, int amode, int ranks) {
  if (settings.checkpoint.empty()) return false;
  if (AllOpen::here().find(path)) return true;
  const posix::OurCode ours_now;
  Checkpoints* const all = of_process();
  const auto file = all ? all->match(path, true) : std::nullopt;
  if (!file) return false;
  if (writes(amode)) return ranks > 1 || all->is_shared(*file);
  const auto version = all->version_to_read(*file);
  return ranks > 1 && version && *version;
}

Result<layout::Manifest> SharedCheckpoint::find() const {
  const posix::OurCode ours_now;
  Checkpoints* const all = of_process();
  const auto file = all ? all->match(path_, true) : std::nullopt;
  const auto version = file ? all->version_to_read(*file) : Status(Kind::not_found, "", ENOENT);
  if (!version) return version.status();
  return *version ? Result<layout::Manifest>(**version) : Status(Kind::not_found, "", ENOENT);
}

Result<layout::Manifest> SharedCheckpoint::begin(int amode, uint32_t mode) {
  const posix::OurCode ours_now;
  Checkpoints* const all = of_process();
  const auto file = all ? all->match(path_, true) : std::nullopt;
  if (!file) return Status(Kind::not_found, "", ENOENT);
  if (all->grows(*file)) {
    auto recorded = RecordedCheckpoint::begin(*all, *file, flags_of(amode), mode);
    if (!recorded) return recorded.status();
    recorded_ = std::move(*recorded);
    return recorded_->manifest;
  }
  auto begun = all->begin_together(*file, flags_of(amode), mode, settings_);
  if (!begun) return begun.status();
  growing_ = std::move(*begun);
  return growing_->located.manifest;
}

// Where only some have, or each half with others, two versions would be written side by side.
Result<bool> SharedCheckpoint::all_have_it_open(const OpenPtr& mine, const std::string& path, exchange::Exchange& ranks) {
  if (ranks.size() == 1) return mine != nullptr;
  const auto which = mine ? int64_t(std::hash<std::string>()(mine->manifest.file_id) >> 2) : 0;
  const auto found = ranks.all_max({int64_t(mine != nullptr), int64_t(mine == nullptr), which, -which});
  if (found[0] && (found[1] || found[2] != -found[3]))
    return Status(Kind::busy, path + ": some of these ranks have it open together with others: let these open it, or all close it before", EBUSY);
  return found[0] != 0;
}

Result<SharedCheckpoint::Found> SharedCheckpoint::join(std::unique_ptr<SharedCheckpoint> one, const OpenPtr& there, int amode) {
  if ((amode & MPI_MODE_CREATE) && (amode & MPI_MODE_EXCL)) return Status(Kind::exists, "", EEXIST);
  one->open_ = there;
  one->has_joined_ = true;
  one->writes_ = writes(amode);
  one->may_stay_so_ = there->may_stay_so;
  if (one->writes_) ++there->joined;
  auto located = catalog::locate_growing(there->manifest, one->settings_);
  return Found{std::move(located), false, std::move(one)};
}

Result<SharedCheckpoint::Found> SharedCheckpoint::open(const Settings& settings, const std::string& path, int amode, uint32_t mode,
                                                       exchange::Exchange& ranks) {
  Settings durable = settings;
  durable.fast_close = false;  // a version is durable before its manifest says that it is there
  std::unique_ptr<SharedCheckpoint> one(new SharedCheckpoint(durable, path));
  const OpenPtr there = AllOpen::here().find(path);
  const auto joins = all_have_it_open(there, path, ranks);
  if (!joins) return joins.status();
  if (*joins) return join(std::move(one), there, amode);
  const bool first = ranks.rank() == 0;
  const auto mine = !first          ? Result<layout::Manifest>(Status(Kind::internal, "rank 0 begins it"))
                    : writes(amode) ? one->begin(amode, mode)
                                    : one->find();
  HF_TRY(exchange::agree(ranks, first ? mine.status() : Status()));
  const Told told = Told::decode(from_first(ranks, first ? told_of(one->growing_, one->recorded_, *mine).encode() : Bytes()));
  one->may_stay_so_ = told.may_stay_so;
  one->anew_ = (amode & MPI_MODE_CREATE) != 0;
  auto manifest = layout::decode(told.manifest);
  if (!manifest) return manifest.status();
  manifest->path = path;
  if (told.is_recorded) return join_recorded(*one, {*told.name, *manifest, told.may_stay_so}, amode, ranks);
  if (writes(amode)) {
    one->open_ = std::make_shared<Open>();
    one->open_->manifest = *manifest, one->open_->name = *told.name, one->open_->may_stay_so = told.may_stay_so;
    AllOpen::here().add(path, one->open_);
  }
  if (first && writes(amode)) return Found{one->growing_->located, told.fresh, std::move(one)};
  if (!writes(amode)) return Found{catalog::locate_version(*manifest, settings), false, nullptr, manifest->file_id};
  {
    const posix::OurCode ours_now;
    if (Checkpoints* const all = of_process())
      if (const auto file = all->match(path, true)) all->seen_together(*file, one->anew_ && !told.may_stay_so);
  }
  return Found{catalog::locate_growing(*manifest, durable), told.fresh, std::move(one)};
}

Result<SharedCheckpoint::Found> SharedCheckpoint::join_recorded(const SharedCheckpoint& one, const Checkpoints::Shared& there, int amode,
                                                                exchange::Exchange& ranks) {
  auto recorded = one.recorded_ ? Result<std::unique_ptr<RecordedCheckpoint>>(
                                      std::make_unique<RecordedCheckpoint>(one.path_, *one.recorded_, (amode & MPI_MODE_CREATE) != 0))
                                : RecordedCheckpoint::join(one.path_, there, flags_of(amode));
  if (const Status all = exchange::agree(ranks, recorded.status()); !all) {
    if (recorded) (*recorded)->abandon();
    return all;
  }
  return Found{checkpoint::locate_shared(there.manifest, one.settings_), false, std::move(*recorded)};
}

void SharedCheckpoint::could_not_read(const std::string& version, const std::string& why) {
  const posix::OurCode ours_now;
  const auto run = checkpoint::decode_run(environment_variable(checkpoint::run_variable));
  const std::string node = run ? checkpoint::own_node(*run, checkpoint::own_rank()) : "";
  if (!node.empty()) (void)checkpoint::LocalFiles(parse_node_path(node).path, run->id, run->attempt).note_unread(version, why);
}

SharedCheckpoint::~SharedCheckpoint() {
  if (has_joined_ && writes_) --open_->joined;
  if (!has_joined_ && open_) open_->is_over = true;
}

void SharedCheckpoint::abandon() {
  if (!growing_) return;
  const posix::OurCode ours_now;
  (void)of_process()->end_together(*growing_, false);
  growing_.reset();
}

Status SharedCheckpoint::first_write(bool) {
  const posix::OurCode ours_now;
  if (Checkpoints* const all = of_process()) HF_TRY(all->written_together(open_->name));
  open_->has_written = true;
  return {};
}

// On the rank that has begun it.
Status SharedCheckpoint::end(bool keeps, bool removes_it) {
  const posix::OurCode ours_now;
  Checkpoints& all = *of_process();
  const int most = growing_->located.manifest.geometry.scheme.m;
  // A link goes itself, and what it leads to stays.
  const bool removes_link = removes_it && all.is_link_to_one(path_), removes = removes_it && !removes_link;
  const auto lost = all.end_together(*growing_, keeps && !removes);
  growing_.reset();
  if (!lost) return lost.status();
  if (*lost > 0) say(checkpoint::degraded(path_, *lost, *lost >= most));
  if (removes_link) return catalog::unlink_file(path_);
  const auto file = removes ? all.match(path_) : std::nullopt;
  const Status removed = file ? all.remove(*file) : Status();
  return removed.kind() == Kind::not_found ? Status() : removed;
}

// The file is a version when the open is closed that this one has joined.
Status SharedCheckpoint::close_joined(const Status& closed, bool and_remove) {
  if (writes_ && !closed) open_->has_failed = true;
  if (std::exchange(writes_, false)) --open_->joined;
  if (!closed || !and_remove) return closed;
  return Status(Kind::busy, path_ + ": it is open still, and is not removed: let the last close remove it", EBUSY);
}

Status SharedCheckpoint::close(const Status& closed, bool and_remove, exchange::Exchange& ranks) {
  if (has_joined_) return close_joined(closed, and_remove);
  open_->is_over = true;
  const auto of_all = ranks.all_max({open_->has_written.load(), open_->has_failed.load(), open_->joined.load() > 0});
  const bool is_written = !may_stay_so_ || of_all[0], has_failed = of_all[1] != 0, is_open = of_all[2] != 0;
  const auto with_own = [](const auto& call) {
    const posix::OurCode ours_now;
    if (Checkpoints* const all = of_process()) call(*all);
  };
  if (may_stay_so_ && is_written && anew_)
    with_own([&](Checkpoints& all) {
      if (const auto file = all.match(path_, true)) all.seen_together(*file, true);
    });
  Status ended = exchange::agree(ranks, growing_ ? end(closed.ok() && is_written && !has_failed && !is_open, and_remove) : Status());
  if (open_->has_written) with_own([&](Checkpoints& all) { all.ended_together(open_->name, !ended); });
  if (ended && is_open && !and_remove)
    ended = Status(Kind::busy, path_ + ": a rank that has opened it once more has it open still: it is not protected; let that one be closed before",
                   EBUSY);
  if (ended && has_failed) ended = Status(Kind::io, path_ + ": a rank could not write all of it by another open: it is not protected", EIO);
  return closed.ok() ? ended : closed;
}

}  // namespace holdfast::frontend
