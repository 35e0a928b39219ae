// The log of one process: entries appended to one object, on as many holders as the shelf says. What append() has taken is
// with the kernel of every holder: a killed process loses nothing of it.
//
// A log serves one session, or with the algorithm `single` those of all files that the process has open. Once all that
// its sessions wrote is settled it is removed, and the next entry starts a new generation under a new name: an old copy that
// turns up again is never read as part of a newer one.
#pragma once
#include <map>
#include <mutex>
#include <set>

#include "layers/shared_records/shelf.hpp"
#include "layout/shared_record.hpp"

namespace holdfast::layers {

class RecordLog {
 public:
  // `first_holder`: where the search for holders starts, other ones for other ranks.
  RecordLog(std::shared_ptr<Shelf> shelf, std::string name, int first_holder);
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
  void settled(uint64_t session);

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
  void replace_lost(size_t wanted);
  Status duplicate(const Copy& from, const Copy& to);
  void drop();

  std::shared_ptr<Shelf> shelf_;
  std::string name_;
  int first_holder_;
  std::mutex mutex_;
  std::string object_name_;  // with the generation; empty: there is no object
  uint64_t generation_ = 0, key_ = 0, end_ = 0;
  std::vector<Copy> copies_;
  std::shared_ptr<target::Lock> lock_;
  std::set<int> failed_;                       // holders that have lost a write
  std::map<uint64_t, uint64_t> described_;     // session -> version, in this generation
};

}  // namespace holdfast::layers
