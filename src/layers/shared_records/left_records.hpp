// Records that were left in the logs: by a job that was killed, or that was told to leave the merging for later. Finds the same places
// for them that the job would have found.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "layers/shared_records/log_scan.hpp"
#include "layers/shared_records/merge.hpp"

namespace holdfast::layers {

struct LeftSession {
  uint64_t number = 0;
  std::string id;
  bool superseded = false;  // a later opening of the same file is known
  bool described = false;   // `about` is valid: some log says what the session was
  layout::Session about;
  layout::SessionNote note;
  uint64_t records = 0, bytes = 0;  // not in the main file for certain
  uint64_t torn = 0;                // entries that are not whole; never merged
  std::string torn_in;              // the first one's log and place
  uint64_t uncertainty_ns = 0;      // largest of the timestamps'
};

// What the main file should get at bytes of the view. `filling`: the bytes were there before the job died. Only what a crash of the machine has taken
// (zeros) is to be put back.
using PlaceInView = std::function<Status(const layout::SessionView& view, std::span<const Extent> extents, ByteView packed, bool filling)>;

// For `filling`: puts what the main file has at `offset` (`there`, perhaps shorter) over `packed`, but for sectors of zeros.
void keep_what_is_there(ByteSpan packed, ByteView there, uint64_t offset);

class LeftRecords {
 public:
  // `common` opens what a note says about logs that serve several files: the shelf, and what its objects' names begin with.
  using FindCommon = std::function<Result<std::pair<std::shared_ptr<Shelf>, std::string>>(const std::string& log)>;
  // `is_left` says of another file's session whether its records still wait in such a log.
  using IsLeft = std::function<bool(const layout::Session& other)>;
  static Result<std::unique_ptr<LeftRecords>> find(std::shared_ptr<Shelf> shelf, const FindCommon& common, IsLeft is_left = nullptr);

  const std::vector<LeftSession>& sessions() const { return sessions_; }  // newest last
  // Kind::busy where a process still holds one of the session's logs.
  Status check_not_running(const LeftSession& session) const;
  // By the user's word: whoever holds logs by name counts as dead. One sentence for each.
  Result<std::vector<std::string>> break_locks() const;
  // `keeps_unsynced`: what was written to the main file and not synced is there unless the machine went down (a plain file).
  Result<Merged> merge(const LeftSession& session, bool keeps_unsynced, const PlaceInView& place, const MergeProgress& progress);
  // After the main file was synced, or to throw them away: the logs go. Logs that serve other files stay while those need them.
  Status discard(const LeftSession& session);
  // The other files for whose records discard() has left a log where it is.
  const std::set<std::string>& kept_for() const { return kept_for_; }
  Shelf& shelf() { return *shelf_; }

 private:
  struct Log {
    std::shared_ptr<LeftLog> log;
    std::shared_ptr<Shelf> shelf;
    std::string object_name;
    bool common = false;
    // Of a common log: by the key of each other session in it, what that says it is; nothing where its description is torn off.
    std::map<uint64_t, std::optional<layout::Session>> others;
    // of this session
    std::vector<layout::Session> descriptions;
    struct Item {
      ScannedEntry entry;
      size_t description = 0;
    };
    std::vector<Item> items;
  };
  struct Group;
  class SegmentOfLog;
  static Result<Merged> place_group(Group& group, const PlaceInView& place, const MergeProgress& progress);
  bool still_needed(const Log& log);
  static Status take_other(Log& log, const ScannedEntry& found);
  Status scan(LeftSession& session, std::vector<Log>& logs);
  Status take_entry(LeftSession& session, Log& log, const ScannedEntry& found);
  void count(LeftSession& session, const std::vector<Log>& logs) const;

  std::shared_ptr<Shelf> shelf_;
  IsLeft is_left_;
  std::set<std::string> kept_for_;
  std::vector<LeftSession> sessions_;
  std::map<std::string, std::vector<Log>> logs_;  // by session
};

}  // namespace holdfast::layers
