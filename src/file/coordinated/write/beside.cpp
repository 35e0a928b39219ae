#include "file/coordinated/write/beside.hpp"

#include <condition_variable>
#include <mutex>
#include <optional>

namespace holdfast::file {

struct WriteBeside::Run {
  std::mutex mutex;
  std::condition_variable ended;
  std::optional<Status> status;
};

void WriteBeside::start(FileLayer& below, std::span<const Extent> extents, ByteView data) {
  run_ = std::make_shared<Run>();
  const auto write = [&below, data, run = run_, places = std::vector<Extent>(extents.begin(), extents.end())] {
    const Status status = below.write(places, data);
    std::lock_guard lock(run->mutex);
    run->status = status;
    run->ended.notify_all();
  };
  if (!background_.submit(write)) write();
}

void WriteBeside::wait() const {
  if (!run_) return;
  std::unique_lock lock(run_->mutex);
  run_->ended.wait(lock, [this] { return run_->status.has_value(); });
}

Status WriteBeside::finish(FileLayer& below) {
  if (!is_under_way()) return Status();
  wait();
  if (const auto run = std::move(run_)) return *run->status;
  return below.write(extents_, data_);
}

void WriteBeside::is_to_be_written_again() {
  wait();
  run_.reset();
}

}  // namespace holdfast::file
