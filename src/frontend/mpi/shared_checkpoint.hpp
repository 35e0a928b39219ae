// A file of a checkpoint (docs/checkpoints.md) that ranks open together. To write, it is a protected file over the nodes' directories, which becomes
// a version when all of them have closed it, or by its pattern's word is one that others may open by themselves (recorded_checkpoint.hpp). To read, it is a version.
#pragma once
#include <atomic>
#include <memory>
#include <optional>
#include <string>

#include "base/config.hpp"
#include "base/status.hpp"
#include "catalog/located.hpp"
#include "exchange/exchange.hpp"
#include "frontend/mpi/written_checkpoint.hpp"
#include "frontend/posix/checkpoints.hpp"

namespace holdfast::frontend {

// A process may open a file once more that it has open with others, as PnetCDF does to write on its own (MPI_COMM_SELF): it joins them, and the file is a version
// when the first open is closed.
class SharedCheckpoint final : public WrittenCheckpoint {
 public:
  // Whether an open of that path is one of these; by one rank.
  static bool is_meant(const Settings& settings, const std::string& path, int amode, int ranks);

  // Collective. `located` is this rank's way to it; `fresh`: nothing is in it yet. `checkpoint` is null where it is only read.
  struct Found {
    catalog::Located located;
    bool fresh;
    std::unique_ptr<WrittenCheckpoint> checkpoint;
    std::string version = {};  // its id, where it is only read
  };
  static Result<Found> open(const Settings& settings, const std::string& path, int amode, uint32_t mode, exchange::Exchange& ranks);
  ~SharedCheckpoint() override;
  // A rank could not read that version: a note on its node says so before the next attempt begins (checkpoint/unread.hpp).
  static void could_not_read(const std::string& version, const std::string& why);
  // It began as a copy, and is a version where some rank writes to it. Each rank says so before its first write.
  bool minds_first_write() const override { return may_stay_so_; }
  Status first_write(bool resizes) override;
  void abandon() override;
  // It is a version from then on, or gone.
  Status close(const Status& closed, bool and_remove, exchange::Exchange& ranks) override;

 private:
  // What this process has open to write, with others.
  struct Open {
    layout::Manifest manifest;
    checkpoint::LocalName name;
    bool may_stay_so = false;              // the same on all ranks
    std::atomic<bool> has_written{false};  // this rank
    std::atomic<bool> has_failed{false};   // ... in an open that has joined
    std::atomic<int> joined{0};            // opens to write that have, and are not closed
    std::atomic<bool> is_over{false};      // the first open is closed: nobody joins any more
  };
  using OpenPtr = std::shared_ptr<Open>;
  class AllOpen;

  SharedCheckpoint(const Settings& settings, std::string path) : settings_(settings), path_(std::move(path)) {}
  static Result<bool> all_have_it_open(const OpenPtr& mine, const std::string& path, exchange::Exchange& ranks);
  static Result<Found> join(std::unique_ptr<SharedCheckpoint> one, const OpenPtr& there, int amode);
  static Result<Found> join_recorded(const SharedCheckpoint& one, const posix::Checkpoints::Shared& there, int amode, exchange::Exchange& ranks);
  Status close_joined(const Status& closed, bool and_remove);
  Result<layout::Manifest> begin(int amode, uint32_t mode);
  Result<layout::Manifest> find() const;

  Status end(bool keeps, bool removes);

  const Settings settings_;
  const std::string path_;
  bool anew_ = false;  // as opposed to an update
  bool may_stay_so_ = false;
  bool has_joined_ = false, writes_ = true;              // another open, and whether it is to write
  OpenPtr open_;                                         // null until it is open
  std::optional<posix::Checkpoints::Together> growing_;  // on the rank that has begun it
  std::optional<posix::Checkpoints::Shared> recorded_;   // ... by its pattern's word
};

}  // namespace holdfast::frontend
