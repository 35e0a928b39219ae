// The shared file pointer of one open file: a number that all its processes advance. One algorithm per file in
// this folder; whoever opens the file chooses. `SharedAccess` is what an open file has of it.
#pragma once
#include <cstdint>
#include <memory>
#include <string>

#include "base/bytes.hpp"
#include "base/status.hpp"
#include "layout/shared_record.hpp"

namespace holdfast::frontend {

// Positions are etypes of the file's view, never negative.
class SharedPointer {
 public:
  virtual ~SharedPointer() = default;  // collective
  // Where it stood before; -1: failure() says why. May be called by one rank alone at any time: it never waits until
  // another rank enters MPI.
  virtual int64_t fetch_add(int64_t etypes) = 0;
  virtual int64_t load() = 0;              // -1 as above
  virtual bool store(int64_t etypes) = 0;  // by one process; the caller keeps the others away
  virtual Status failure() const { return Status(); }
  virtual const char* algorithm() const = 0;  // window or process
  // The number itself, where processor atomics on it are all that the algorithm does; else null.
  virtual int64_t* in_memory() { return nullptr; }
};

// A file's open as a log of records sees it.
class RecordHost {
 public:
  virtual ~RecordHost() = default;
  virtual SharedPointer& pointer() = 0;
  virtual int64_t etype_bytes() = 0;  // of the present view; 0 where it has no data
  // Writes packed data, whole etypes, at a position of the present view. Not collective.
  virtual Status place(int64_t etypes, ByteView packed) = 0;
  // The present view, for a log. False: its data does not lie in the file as it was given, or must be there at once (atomic mode).
  virtual bool describe(layout::SessionView& view) = 0;
  virtual Status make_durable() { return Status(); }  // collective
};

// A log that takes the writes through the shared pointer and gives them their places in the file later. Null for the
// algorithms that write at once.
class RecordLog {
 public:
  virtual ~RecordLog() = default;
  // A write_shared or iwrite_shared of this process: whole etypes, packed. Unsupported: this one is written through the
  // pointer instead, after before_independent().
  virtual Status append(ByteView packed) = 0;
  // Before this process reads through the shared pointer, asks for it, or touches the file in any other way by itself: its
  // own records get their places.
  virtual Status before_independent(RecordHost& host) = 0;
  // Before a collective call on the file (ordered access, set_view, sync, close ...): all records of all ranks. Collective.
  virtual Status at_collective(RecordHost& host) = 0;
  // Whether a write_ordered is logged too, to be merged later: then all ranks call append_ordered() in the place of
  // at_collective(), each with its data.
  virtual bool keeps_ordered(RecordHost&) { return false; }
  virtual Status append_ordered(RecordHost&, ByteView) { return Status(Kind::unsupported, ""); }
  // A write of this process went through the pointer, which stands there now at least.
  virtual void written_through_pointer(int64_t) {}
  // Before MPI_File_sync; before the file is closed; after it was closed. Collective.
  virtual Status at_sync(RecordHost& host) { return at_collective(host); }
  virtual Status at_close(RecordHost& host) { return at_collective(host); }
  virtual Status after_close() { return Status(); }
  virtual const char* algorithm() const = 0;         // individual or single
  virtual std::string remark() const { return {}; }  // for the job log
};

struct SharedAccess {
  std::unique_ptr<SharedPointer> pointer;
  std::unique_ptr<RecordLog> records;
  std::string asked;     // what the settings said
  std::string takeover;  // why another algorithm than the asked one serves; empty where none does
  const char* serving() const { return records ? records->algorithm() : pointer ? pointer->algorithm() : "native"; }
};

}  // namespace holdfast::frontend
