#include "frontend/shared_pointer/logged.hpp"

#include <atomic>
#include <cstdio>

#include <fmt/format.h>

#include "base/shell_word.hpp"
#include "catalog/user_files.hpp"
#include "exchange/agree.hpp"
#include "frontend/shared_pointer/individual.hpp"
#include "frontend/shared_pointer/single.hpp"

namespace holdfast::frontend {

namespace {

class LoggedRecords final : public RecordLog {
 public:
  LoggedRecords(RecordPlan plan, std::unique_ptr<layers::SharedRecords> records, RecordHost& host)
      : plan_(std::move(plan)), records_(std::move(records)), host_(host), later_(plan_.settings.merge_later) {}

  Status append(ByteView packed) override {
    if (!ready_.load(std::memory_order_acquire)) HF_TRY(get_ready(host_));
    if (pointer_serves_.load(std::memory_order_relaxed)) return Status(Kind::unsupported, "");
    return told(records_->append(packed, pointer()));
  }

  // From then on the pointer serves this process, for its pattern is a mixed one.
  Status before_independent(RecordHost& host) override {
    // Ordered data of one call belongs together: it gets its place with that of the other ranks only. The file is not read then.
    if (ordered_pending_.load(std::memory_order_relaxed)) return Status();
    if (records_->pending_bytes() == 0) return told(records_->place_claimed(place(host)));
    pointer_serves_.store(true, std::memory_order_relaxed);
    auto claim = [&](uint64_t bytes) -> Result<uint64_t> {
      const int64_t at = host.pointer().fetch_add(int64_t(bytes) / etype_bytes_);
      if (at < 0) return lost_pointer(host);
      return uint64_t(at * etype_bytes_);
    };
    return told(records_->place_own(claim, place(host)));
  }

  Status at_collective(RecordHost& host) override {
    const Status status = merge(host);
    if (status.ok()) forget_view();
    return once(told(status));
  }

  bool keeps_ordered(RecordHost& host) override {
    if (!later_ || plan_.reads) return false;
    (void)get_ready(host);
    return loggable_;
  }
  Status append_ordered(RecordHost&, ByteView packed) override {
    ordered_pending_ = true;
    return once(told(records_->append_ordered(*plan_.exchange, packed, pointer())));
  }

  void written_through_pointer(int64_t etypes) override {
    (void)get_ready(host_);
    if (loggable_) (void)records_->note_pointer(uint64_t(etypes * etype_bytes_));
  }

  Status at_sync(RecordHost& host) override {
    if (!later_) return at_collective(host);
    return once(told(records_->sync(*plan_.exchange)));
  }

  Status at_close(RecordHost& host) override {
    const Status status = later_ ? Status() : at_collective(host);
    used_ = records_->used(*plan_.exchange);
    if (used_ && !plan_.settings.fast_close && !records_->anything_pending(*plan_.exchange)) {
      const Status durable = host.make_durable();
      durable_ = durable.ok();
      if (status.ok()) return once(durable);
    }
    return status;
  }

  Status after_close() override {
    layout::PathState state;
    if (!plan_.located)
      if (auto file = catalog::look(plan_.path, true); file.ok()) state = file->path_state();
    return once(told(records_->close(*plan_.exchange, durable_ || (plan_.located && !plan_.settings.fast_close), state)));
  }

  const char* algorithm() const override { return plan_.settings.shared_pointer == "single" ? "single" : "individual"; }
  std::string remark() const override {
    const uint64_t uncertainty = records_->largest_uncertainty_ns();
    return uncertainty == 0 ? std::string("records in the order of one clock")
                            : fmt::format("the order of records between nodes is true within {} us", uncertainty / 1000 + 1);
  }

 private:
  // Once in a segment: what the records are seen through.
  Status get_ready(RecordHost& host) {
    std::lock_guard guard(mutex_);
    if (ready_) return Status();
    layout::SessionView view;
    etype_bytes_ = host.etype_bytes();
    loggable_ = etype_bytes_ > 0 && host.describe(view);
    if (!loggable_) pointer_serves_ = true;
    if (loggable_ && !(view == view_)) {
      view_ = view;
      records_->set_view(view);
    }
    ready_.store(true, std::memory_order_release);
    return Status();
  }
  void forget_view() {
    std::lock_guard guard(mutex_);
    pointer_serves_ = false;
    ordered_pending_ = false;
    ready_ = false;
  }

  std::function<Result<uint64_t>()> pointer() {
    return [this]() -> Result<uint64_t> {
      const int64_t at = host_.pointer().load();
      if (at < 0) return lost_pointer(host_);
      return uint64_t(at * etype_bytes_);
    };
  }
  static Status lost_pointer(RecordHost& host) {
    const Status status = host.pointer().failure();
    return status.ok() ? Status(Kind::io, "the shared file pointer does not answer") : status;
  }
  layers::Place place(RecordHost& host) {
    return [this, &host](std::span<const Extent> extents, ByteView packed) {
      uint64_t at = 0;
      for (const Extent& extent : extents) {
        HF_TRY(host.place(int64_t(extent.offset) / etype_bytes_, packed.subspan(at, extent.length)));
        at += extent.length;
      }
      return Status();
    };
  }

  Status merge(RecordHost& host) {
    exchange::Exchange& ranks = *plan_.exchange;
    if (!records_->anything_pending(ranks)) {
      records_->pass_collective();
      return Status();
    }
    (void)get_ready(host);  // on a rank that has written nothing
    // Everybody has arrived: the pointer stands still until rank 0 moves it.
    const int64_t base = ranks.all_max({ranks.rank() == 0 ? host.pointer().load() : INT64_MIN})[0];
    if (base < 0) return lost_pointer(host);
    auto merged = records_->merge(ranks, uint64_t(base * etype_bytes_), place(host), [&] { return host.make_durable(); });
    if (!merged) return merged.status();
    const bool stored = ranks.rank() != 0 || host.pointer().store(int64_t(merged->end) / etype_bytes_);
    return exchange::agree(ranks, stored ? Status() : lost_pointer(host));
  }

  Status told(const Status& status) const {
    if (status.ok() || status.kind() == Kind::unsupported || status.sentence().empty()) return status;
    return Status(status.kind(),
                  fmt::format("{}: records of the shared file pointer: {}; all that was written is kept in {}; when there is room again, run: "
                              "holdfast merge {}",
                              plan_.path, status.sentence(), records_->where(), shell_word(plan_.path)),
                  status.sys_errno());
  }
  // All ranks have it, one says it.
  Status once(const Status& status) const {
    return status.ok() || plan_.exchange->rank() == 0 ? status : Status(status.kind(), "", status.sys_errno());
  }

  RecordPlan plan_;
  std::unique_ptr<layers::SharedRecords> records_;
  RecordHost& host_;
  bool later_;
  std::mutex mutex_;
  std::atomic<bool> ready_{false}, pointer_serves_{false}, ordered_pending_{false};
  bool loggable_ = false;
  int64_t etype_bytes_ = 0;
  layout::SessionView view_;
  bool durable_ = false, used_ = false;
};

// What rank-local work comes to before the ranks talk.
struct Prepared {
  layout::Session session;
  std::shared_ptr<layers::Shelf> shelf;
  layers::RecordOptions options;
};

Status prepare(const RecordPlan& plan, Prepared& into) {
  if (plan.deletes_on_close) return Status(Kind::unsupported, "the file is deleted when it is closed");
  auto shelf = shelf_of(plan);
  if (!shelf) return shelf.status();
  into.shelf = *shelf;
  into.session.path = plan.path;
  if (plan.located) {
    into.session.file_id = plan.located->manifest.file_id;
  } else {
    auto file = catalog::look(plan.path, true);
    if (!file) return file.status();
    if (!file->regular()) return Status(Kind::unsupported, "it is not a regular file");
    into.session.path = catalog::resolved_path(plan.path);
    into.session.device = file->device;
    into.session.inode = file->inode;
  }
  into.options.max_metadata_records = plan.settings.max_metadata_records;
  if (plan.settings.shared_pointer == "single") return join_common_log(plan, into.shelf, into.options);
  return Status();
}

}  // namespace

std::unique_ptr<RecordLog> open_records(RecordPlan plan, RecordHost& host, std::string& takeover) {
  Prepared prepared;
  Status status = exchange::agree(*plan.exchange, prepare(plan, prepared));
  if (!status.ok()) {
    takeover = status.sentence();
    return nullptr;
  }
  std::string notice;
  auto clock = std::make_shared<layers::Clock>(layers::system_time());
  auto records =
      layers::SharedRecords::open(*plan.exchange, std::move(prepared.session), prepared.shelf, std::move(clock), std::move(prepared.options), notice);
  if (!records) {
    takeover = records.status().sentence();
    return nullptr;
  }
  if (!notice.empty() && plan.exchange->rank() == 0) std::fprintf(stderr, "holdfast: %s\n", notice.c_str());
  return std::make_unique<LoggedRecords>(std::move(plan), std::move(*records), host);
}

}  // namespace holdfast::frontend
