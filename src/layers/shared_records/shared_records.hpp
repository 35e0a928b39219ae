// The records that a process has written through the shared pointer of one open file and that have no place in the file yet.
//
// Positions are bytes of the view. A *segment* is a stretch of the program between two points at which all pending records were placed. The records
// of all processes in a segment lie one after another, in the order of merge.hpp, from where the shared pointer stood. So `holdfast merge` finds the
// same places again after the job's death.
#pragma once
#include <functional>
#include <memory>
#include <mutex>

#include "layers/shared_records/clock.hpp"
#include "layers/shared_records/log_scan.hpp"
#include "layers/shared_records/merge.hpp"
#include "layers/shared_records/record_log.hpp"

namespace holdfast::layers {

struct RecordOptions {
  uint64_t max_metadata_records = 65536;  // what is known of more than these is read from the log again
  Staging staging;                        // of a log that is made for this file
  // The log that serves several files of this process (the algorithm `single`); null: one is made for this file.
  std::shared_ptr<RecordLog> common_log;
  std::string common_log_place;  // its name as the note says it: absolute, or relative to the targets
};

class SharedRecords {
 public:
  // Collective. `main` says which file; what differs by rank is filled in. `notice` gets one sentence where an earlier run left records.
  static Result<std::unique_ptr<SharedRecords>> open(exchange::Exchange& ranks, layout::Session main, std::shared_ptr<Shelf> shelf,
                                                     std::shared_ptr<Clock> clock, RecordOptions options, std::string& notice);
  ~SharedRecords();

  // --- independent
  // Takes packed data, whole etypes. `pointer`: where the shared pointer stands, asked for once in a segment.
  Status append(ByteView packed, const std::function<Result<uint64_t>()>& pointer);
  uint64_t pending_bytes();
  // This process's own records get their place now, one after another from where `claim` has made room for so many bytes.
  Status place_own(const std::function<Result<uint64_t>(uint64_t bytes)>& claim, const Place& place);
  // A claim that could not be written then is written now.
  Status place_claimed(const Place& place);
  // The pointer moves without records until the next segment: whoever merges after a crash must know.
  Status note_pointer(uint64_t at);

  // --- collective
  // All ranks' data in rank order, to be merged later.
  Status append_ordered(exchange::Exchange& ranks, ByteView packed, const std::function<Result<uint64_t>()>& pointer);
  // Everything pending is placed from `base` on; answers where the pointer stands then. A new segment begins.
  // `make_durable`, collective, is called where a sync has promised these records already.
  Result<Merged> merge(exchange::Exchange& ranks, uint64_t base, const Place& place, const std::function<Status()>& make_durable);
  bool anything_pending(exchange::Exchange& ranks);
  // A collective call that finds nothing pending on any rank: the next segment begins. No communication.
  void pass_collective();
  // Whether any rank has logged anything that is not settled.
  bool used(exchange::Exchange& ranks);
  // After a merge: records are seen through another view from here on.
  void set_view(layout::SessionView view);
  // The main file is durable: what was placed needs no log any more.
  Status forget_placed(exchange::Exchange& ranks);
  // What is pending becomes durable in the logs.
  Status sync(exchange::Exchange& ranks);
  // With nothing pending all traces go; otherwise they stay for `holdfast merge`, with what the main file looks like.
  Status close(exchange::Exchange& ranks, bool main_is_durable, const layout::PathState& state);

  const std::string& where() const { return shelf_->where(); }
  Clock& clock() { return *clock_; }
  uint64_t largest_uncertainty_ns() const { return largest_uncertainty_ns_; }

 private:
  SharedRecords(layout::Session main, std::shared_ptr<Shelf> shelf, std::shared_ptr<Clock> clock, RecordOptions options);
  layout::Entry entry_of(layout::EntryKind kind) const;
  Status append_stamped(ByteView packed, Stamp stamp, const std::function<Result<uint64_t>()>& pointer);
  void find_log(exchange::Exchange& ranks);
  Status write_note(bool durable);
  void forget_pending();
  void begin_segment();
  std::string prefix() const;

  class OwnSource;

  layout::Session session_;
  std::shared_ptr<Shelf> shelf_;
  std::shared_ptr<Clock> clock_;
  RecordOptions options_;
  uint64_t key_ = 0;
  uint64_t number_ = 1;
  layout::SessionNote note_;
  bool note_written_ = false;
  std::shared_ptr<RecordLog> log_;

  std::mutex mutex_;
  uint64_t view_version_ = 1;
  uint32_t segment_ = 1;
  uint64_t collective_ = 0;
  bool base_known_ = false;
  uint64_t base_ = 0;
  uint64_t next_id_ = 0, first_pending_id_ = 0;
  uint64_t pending_bytes_ = 0;
  uint64_t pending_from_ = 0, uncached_to_ = 0;  // in the log: where pending records begin, and up to where none is in memory
  std::vector<PendingRecord> cache_;
  struct Claim {
    uint64_t at = 0;
    std::vector<PendingRecord> records;
  };
  std::vector<Claim> claims_;  // not written yet
  bool logged_ = false;        // something of this session lies in the log
  bool synced_ = false;        // a sync has made pending records durable
  uint64_t largest_uncertainty_ns_ = 0;
};

}  // namespace holdfast::layers
