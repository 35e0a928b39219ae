#include "frontend/mpi/shared_checkpoint.hpp"

#include <fcntl.h>
#include <fmt/format.h>

#include "base/node_path.hpp"
#include "catalog/growing.hpp"
#include "catalog/user_files.hpp"
#include "catalog/versions.hpp"
#include "checkpoint/local.hpp"
#include "checkpoint/run.hpp"
#include "exchange/agree.hpp"
#include "frontend/mpi/errors.hpp"
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
  int flags = O_RDWR;
  if (amode & MPI_MODE_CREATE) flags |= O_CREAT;
  if (amode & MPI_MODE_EXCL) flags |= O_EXCL;
  return flags;
}

}  // namespace

bool SharedCheckpoint::is_meant(const Settings& settings, const std::string& path, int amode, int ranks) {
  if (settings.checkpoint.empty()) return false;
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
  auto begun = all->begin_together(*file, flags_of(amode), mode, settings_);
  if (!begun) return begun.status();
  growing_ = std::move(*begun);
  return growing_->located.manifest;
}

Result<SharedCheckpoint::Found> SharedCheckpoint::open(const Settings& settings, const std::string& path, int amode, uint32_t mode,
                                                       exchange::Exchange& ranks) {
  Settings durable = settings;
  durable.fast_close = false;  // a version is durable before its manifest says that it is there
  std::unique_ptr<SharedCheckpoint> one(new SharedCheckpoint(durable, path));
  const bool first = ranks.rank() == 0;
  const auto mine = !first          ? Result<layout::Manifest>(Status(Kind::internal, "rank 0 begins it"))
                    : writes(amode) ? one->begin(amode, mode)
                                    : one->find();
  HF_TRY(exchange::agree(ranks, first ? mine.status() : Status()));
  Bytes told(1, std::byte(first && one->growing_ && one->growing_->fresh));
  if (first) {
    const std::string text = layout::encode(*mine);
    const auto view = std::as_bytes(std::span(text));
    told.insert(told.end(), view.begin(), view.end());
  }
  told = from_first(ranks, told);
  const bool fresh = told[0] != std::byte(0);
  if (first && writes(amode)) return Found{one->growing_->located, fresh, std::move(one)};
  auto manifest = layout::decode(ByteView(told).subspan(1));
  if (!manifest) return manifest.status();
  manifest->path = path;
  if (!writes(amode)) return Found{catalog::locate_version(*manifest, settings), false, nullptr, manifest->file_id};
  {
    const posix::OurCode ours_now;
    if (Checkpoints* const all = of_process())
      if (const auto file = all->match(path, true)) all->seen_together(*file, (amode & MPI_MODE_CREATE) != 0);
  }
  return Found{catalog::locate_growing(*manifest, durable), fresh, std::move(one)};
}

void SharedCheckpoint::could_not_read(const std::string& version, const std::string& why) {
  const posix::OurCode ours_now;
  const auto run = checkpoint::decode_run(environment_variable(checkpoint::run_variable));
  const std::string node = run ? checkpoint::own_node(*run, checkpoint::own_rank()) : "";
  if (!node.empty()) (void)checkpoint::LocalFiles(parse_node_path(node).path, run->id, run->attempt).note_unread(version, why);
}

void SharedCheckpoint::abandon() {
  if (!growing_) return;
  const posix::OurCode ours_now;
  (void)of_process()->end_together(*growing_, false);
  growing_.reset();
}

Status SharedCheckpoint::close(const Status& closed, bool and_remove, exchange::Exchange& ranks) {
  Status ended;
  if (growing_) {
    const posix::OurCode ours_now;
    Checkpoints& all = *of_process();
    const int most = growing_->located.manifest.geometry.scheme.m;
    // A link goes itself, and what it leads to stays.
    const bool removes_link = and_remove && all.is_link_to_one(path_), removes = and_remove && !removes_link;
    const auto lost = all.end_together(*growing_, closed.ok() && !removes);
    growing_.reset();
    ended = lost.status();
    if (lost && *lost > 0)
      say(fmt::format("{}: protected, but {} of its targets are lost{}", path_, *lost, *lost >= most ? ", and no further loss is tolerated" : ""));
    if (removes_link && ended) ended = catalog::unlink_file(path_);
    const auto file = removes ? all.match(path_) : std::nullopt;
    if (file && ended)
      if (const Status removed = all.remove(*file); removed.kind() != Kind::not_found) ended = removed;
  }
  ended = exchange::agree(ranks, ended);
  return closed.ok() ? ended : closed;
}

}  // namespace holdfast::frontend
