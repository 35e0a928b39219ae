#include "frontend/mpi/recorded_checkpoint.hpp"

#include <fcntl.h>

#include "catalog/user_files.hpp"
#include "exchange/agree.hpp"
#include "frontend/posix/own_code.hpp"
#include "tree/settings.hpp"

namespace holdfast::frontend {

using posix::Checkpoints;

namespace {

Checkpoints* checkpoints_here() { return Checkpoints::of_process(*tree::process_settings()); }

// A link goes itself, and what it leads to stays.
Status remove_at_close(const std::string& path) {
  Checkpoints& all = *checkpoints_here();
  if (all.is_link_to_one(path)) return catalog::unlink_file(path);
  const auto file = all.match(path);
  const Status removed = file ? all.remove(*file) : Status();
  return removed.kind() == Kind::not_found ? Status() : removed;
}

}  // namespace

Result<Checkpoints::Shared> RecordedCheckpoint::begin(Checkpoints& all, const Checkpoints::File& file, int flags, uint32_t mode) {
  return all.open_shared(file, flags, mode, Checkpoints::By::handle);
}

Result<std::unique_ptr<RecordedCheckpoint>> RecordedCheckpoint::join(const std::string& path, const Checkpoints::Shared& there, int flags) {
  const posix::OurCode ours_now;
  Checkpoints* const all = checkpoints_here();
  const auto file = all ? all->match(path, true) : std::nullopt;
  if (!file) return Status(Kind::unsupported, path + ": it is a checkpoint, and this rank is on none of the job's nodes; name its host in --hosts");
  HF_TRY(all->join_shared(*file, there, flags));
  return std::make_unique<RecordedCheckpoint>(path, there, (flags & O_CREAT) != 0);
}

Status RecordedCheckpoint::opened(exchange::Exchange& ranks) {
  const posix::OurCode ours_now;
  return exchange::agree(ranks, ranks.rank() == 0 ? checkpoints_here()->handle_opened(shared_) : Status());
}

Status RecordedCheckpoint::first_write(bool resizes) {
  const posix::OurCode ours_now;
  auto name = checkpoints_here()->shared_written(shared_, Checkpoints::By::handle, anew_ || resizes);
  if (!name) return name.status();
  shared_.name = std::move(*name);
  has_written_ = true;
  return {};
}

void RecordedCheckpoint::abandon() {
  const posix::OurCode ours_now;
  checkpoints_here()->handle_closed(shared_, true);
}

// What one rank could not bring to the nodes may be of any of them.
Status RecordedCheckpoint::close(const Status& closed, bool and_remove, exchange::Exchange& ranks) {
  const Status arrived = exchange::agree(ranks, closed);
  const bool is_written = ranks.all_max({has_written_.load()})[0] != 0;
  const posix::OurCode ours_now;
  // A close among others tells of an open to write as well, though nothing was written.
  if (!is_written && ranks.rank() == 0) (void)checkpoints_here()->handle_opened(shared_);
  if (!is_written) ranks.barrier();
  checkpoints_here()->handle_closed(shared_, arrived.ok());
  if (!and_remove) return closed;
  const Status removed = exchange::agree(ranks, exchange::agree(ranks, Status()) && ranks.rank() == 0 ? remove_at_close(path_) : Status());
  return closed.ok() ? removed : closed;
}

}  // namespace holdfast::frontend
