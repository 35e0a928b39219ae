// Reading a log back: entry by entry, from whichever copy has it whole.
#pragma once
#include <functional>

#include "layers/shared_records/merge.hpp"
#include "layers/shared_records/record_log.hpp"

namespace holdfast::layers {

struct ScannedEntry {
  layout::Entry entry;
  uint64_t position = 0;
};

// The entries of a session in the process's own log from `from` to `to`, headers only: at most `most` of them, and
// where the next call goes on.
Result<std::vector<ScannedEntry>> own_entries(RecordLog& log, uint64_t session, uint64_t& from, uint64_t to, size_t most);

// Reads records that follow each other in a log in few large pieces; `read` fills bytes of the log.
Status read_packed(uint64_t log_key, std::span<const PendingRecord> records, ByteSpan packed,
                   const std::function<Status(uint64_t offset, ByteSpan into, const std::function<bool()>& sound)>& read);

// A log that some process left behind: all of its copies, opened to be read.
class LeftLog {
 public:
  // `object_name` with its generation, without the shelf's prefix.
  static Result<std::shared_ptr<LeftLog>> open(const Shelf& shelf, const std::string& object_name);
  // Every whole entry in order, payloads checked; those too that never left their stage. What is torn or damaged in all copies is passed over and counted.
  Status scan(const std::function<Status(const ScannedEntry&)>& each);
  Result<Bytes> payload(const ScannedEntry& entry);
  Status read(std::span<const PendingRecord> records, ByteSpan packed);
  Status read_part(uint64_t offset, ByteSpan into) {
    return read_checked(offset, into, [] { return true; });
  }
  uint64_t key() const { return key_; }
  const std::string& name() const { return name_; }
  uint64_t torn() const { return torn_; }        // entries (or stretches of bytes) that could not be read
  uint64_t torn_at() const { return torn_at_; }  // the first one's position

 private:
  struct Copy {
    Shelf::Holder holder;
    std::shared_ptr<target::Object> object;
    uint64_t size = 0;
  };
  // What lay in a stage when the process ended: the newest entries, for places from `from` on.
  struct Staged {
    uint64_t from = 0;
    Bytes bytes;
    uint64_t end() const { return from + bytes.size(); }
  };
  void load_stage(uint64_t position, uint64_t length);
  Result<layout::Entry> staged_entry_at(uint64_t position) const;
  Status read_copy(const Copy& copy, uint64_t offset, ByteSpan into);
  Status read_checked(uint64_t offset, ByteSpan into, const std::function<bool()>& sound);
  Result<layout::Entry> whole_entry(uint64_t position, Status& refused);
  uint64_t next_entry(uint64_t after);

  std::string name_;
  uint64_t key_ = 0, end_ = 0;
  std::vector<Copy> copies_;
  std::vector<Staged> staged_;
  uint64_t torn_ = 0, torn_at_ = 0;
};

}  // namespace holdfast::layers
