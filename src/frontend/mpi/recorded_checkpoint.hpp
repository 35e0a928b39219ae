// A file of a 'shared:' pattern that a handle writes. Each of its ranks takes part as if it had opened the file by itself: other ranks find it by its record, by whatever way
// they open it (checkpoint/shared.hpp). docs/decisions/0108
#pragma once
#include <atomic>
#include <memory>
#include <string>

#include "base/config.hpp"
#include "frontend/mpi/written_checkpoint.hpp"
#include "frontend/posix/checkpoints.hpp"

namespace holdfast::frontend {

class RecordedCheckpoint final : public WrittenCheckpoint {
 public:
  // `anew`: MPI has no open that truncates. One that may create the file writes it anew.
  RecordedCheckpoint(std::string path, posix::Checkpoints::Shared shared, bool anew)
      : path_(std::move(path)), anew_(anew), shared_(std::move(shared)) {}
  // On the first rank of a handle; and on the others, once that one has it open.
  static Result<posix::Checkpoints::Shared> begin(posix::Checkpoints& all, const posix::Checkpoints::File& file, int flags, uint32_t mode);
  static Result<std::unique_ptr<RecordedCheckpoint>> join(const std::string& path, const posix::Checkpoints::Shared& there, int flags);

  bool minds_first_write() const override { return true; }
  Status first_write(bool resizes) override;
  Status opened(exchange::Exchange& ranks) override;
  void abandon() override;
  Status close(const Status& closed, bool and_remove, exchange::Exchange& ranks) override;

 private:
  const std::string path_;
  const bool anew_;
  posix::Checkpoints::Shared shared_;
  std::atomic<bool> has_written_{false};  // this rank
};

}  // namespace holdfast::frontend
