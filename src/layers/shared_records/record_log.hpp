// The log of one process: entries appended to one object, on as many holders as the shelf says. What append() has taken is
// with the kernel of every holder: a killed process loses nothing of it.
//
// Small entries are gathered in a *stage*: room in the log itself that is memory of this process (Object::map), so that an append is a copy.
// They are moved to their places, many at once, when the stage is full or a large entry follows. Whoever reads the log of a
// process that was killed finds them in the stage (LeftLog). Logs with several copies, or behind a lane, have none.
//
// A log serves one session, or with the algorithm `single` those of all files that the process has open. Once all that its sessions wrote is
// settled it is removed, and the next entry starts a new generation under a new name. An old copy that turns up again is never read as part of a
// newer one.
#pragma once
#include <map>
#include <mutex>
#include <set>

#include "layers/shared_records/shelf.hpp"
#include "layout/shared_record.hpp"

namespace holdfast::layers {

struct Staging {
  uint64_t bytes = 256 << 10;   // 0: never
  uint64_t after_entries = 32;  // so many small ones first: a log of few needs no stage
};

class RecordLog {
 public:
  // `first_holder`: where the search for holders starts, other ones for other ranks.
  RecordLog(std::shared_ptr<Shelf> shelf, std::string name, int first_holder, Staging staging = {});
  ~RecordLog();

  struct Appended {
    uint64_t position = 0;  // of the entry
    uint64_t checksum = 0;
  };
  // Fills in the entry's length and checksum. Nothing is kept of an append that failed.
  Result<Appended> append(layout::Entry entry, ByteView payload);
  // The same for an entry that describes a session, unless this generation has it already as `version`.
  Status describe(uint64_t session, uint64_t version, const layout::Entry& entry, const std::string& text);
  bool described(uint64_t session, uint64_t version);
  // From any copy that has it.
  Status read(uint64_t offset, ByteSpan into) { return read_checked(offset, into, nullptr); }
  // From the first copy whose bytes `sound` accepts.
  Status read_checked(uint64_t offset, ByteSpan into, const std::function<bool()>& sound);
  Status sync();
  // This session needs nothing of what it wrote any more: where none does, the object goes.
  void release(uint64_t session);

  const std::string& name() const { return name_; }  // without the generation
  Shelf& shelf() { return *shelf_; }
  uint64_t key() const { return key_; }  // of this generation
  uint64_t end() const { return end_; }

 private:
  struct Copy {
    int holder = 0;
    std::shared_ptr<target::Object> object;
  };
  Status begin();
  Result<Copy> open_copy(int holder);
  Status write_copies(uint64_t at, std::span<const iovec> vectors);
  bool local() const { return copies_.size() == 1 && !shelf_->holders()[size_t(copies_[0].holder)].lane; }
  bool can_stage(uint64_t payload_bytes);
  void make_stage();
  Status append_staged(ByteView header, ByteView payload);
  Status append_in_place(ByteView header, ByteView payload);
  Status move_staged();
  void read_staged(uint64_t offset, ByteSpan into) const;
  Status read_copy(const Copy& copy, uint64_t offset, ByteSpan into) const;
  void replace_lost(size_t wanted);
  Status duplicate(const Copy& from, const Copy& to);
  void drop();

  std::shared_ptr<Shelf> shelf_;
  std::string name_;
  int first_holder_;
  Staging staging_;
  std::mutex mutex_;
  std::string object_name_;  // with the generation; empty: there is no object
  uint64_t generation_ = 0, key_ = 0, end_ = 0;
  std::vector<Copy> copies_;
  uint64_t small_entries_ = 0;  // in this generation, before there was a stage
  uint64_t stage_at_ = 0;       // in the object; 0: there is none
  Bytes staged_;                // what is in it, and not in its place yet
  uint64_t staged_from_ = 0;    // the place of that
  std::shared_ptr<target::Lock> lock_;
  std::set<int> failed_;                    // holders that have lost a write
  std::map<uint64_t, uint64_t> described_;  // session -> version, in this generation
};

}  // namespace holdfast::layers
