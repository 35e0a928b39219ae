// Target: one place where units lie. The only seam between Holdfast and storage; directory is the real one,
// memory its twin for tests, and filters inject errors, delays, limits and logs.
//
// Names are relative, with '/' between components; no component is empty, "." or "..", longer than 255 bytes or a
// symbolic link. A Target refuses others with Kind::invalid, so nothing that a manifest says can lead out of it.
// All calls may block; callers that must not wait for ever go through a Lane.
#pragma once
#include <sys/uio.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/bytes.hpp"
#include "base/status.hpp"
#include "target/stripes.hpp"

namespace holdfast::target {

enum class OpenMode : uint8_t { read, write /* read and write, must exist */, create /* read and write, created if missing */ };

// Who writes a page of an object. shared: other nodes write other bytes of the same page at the same time. No write may carry what its own node
// remembers of them: nodes that cache write whole pages, unless they are told not to.
enum class Pages : uint8_t { own, shared };

// Blocks of an object, and what their checksums are bound to (coding/checksum.hpp).
struct CheckedBlocks {
  uint64_t offset = 0;
  uint32_t count = 0, block_bytes = 0;
  uint64_t key = 0, row = 0;
  int32_t unit = 0;
  uint32_t first = 0;  // number of the first one within its unit
};

// A part of a sum that nodes make together (docs/protocol.md): `bytes` of an object times a coefficient; what the object does not have is zeros.
struct SumTerm {
  std::string address, object;
  uint64_t offset = 0, bytes = 0;
  uint8_t coefficient = 0;
};

// An open object: a sequence of bytes with holes. Safe to use from several threads.
class Object {
 public:
  virtual ~Object() = default;
  // Fills the vectors from `offset` on; returns how many bytes there were (less only at the object's end).
  virtual Result<size_t> read(uint64_t offset, std::span<const iovec> into) = 0;
  // The same, but only of what is in memory already: never waits for a device or a server, so that it needs no lane. Returns
  // less where it would have to wait (or where the object ends); 0 where that cannot be known.
  virtual size_t read_cached(uint64_t, std::span<const iovec>) { return 0; }
  // Computed where the object lies, for where bytes on their way cost more than that; what it does not have counts as zeros. Kind::unsupported: who
  // wants them reads it.
  virtual Result<std::vector<uint64_t>> checksums(const CheckedBlocks& blocks);
  // All of it or an error; a short write of the system is continued, then reported.
  virtual Status write(uint64_t offset, std::span<const iovec> from) = 0;
  // Makes these bytes of the object memory of this process, once for each object. They are allocated (zeros where there was nothing). What write()
  // puts wholly between them is copied there, with the kernel at once and without a system call. False where memory and the object's other readers
  // and writers could differ, or a full device would be found too late. It may have grown by zeros then.
  virtual bool map(uint64_t /*offset*/, uint64_t /*bytes*/) { return false; }
  virtual Status sync() = 0;
  // What was written goes to where another node's next open sees it (Target::caches_by_node); no device is waited for.
  virtual Status write_back() { return {}; }
  virtual Status truncate(uint64_t size) = 0;
  // Makes it at least so long, with zeros. What is there stays, also what others write to it at this moment.
  virtual Status grow(uint64_t size) = 0;
  virtual Result<uint64_t> size() = 0;
  // Whether the name under which it was opened still leads to it (a deleted or replaced object takes writes silently).
  virtual Status still_there() = 0;
};

struct Space {
  uint64_t total_bytes = 0;
  uint64_t free_bytes = 0;
};

// shared: with others who hold it so. probe: alone on a lock that others may hold shared, and only where nobody does. alone: on one that is
// never shared.
enum class Hold : uint8_t { alone, shared, probe };

// Holds an advisory lock until it is destroyed; the lock goes with the process that dies.
class Lock {
 public:
  virtual ~Lock() = default;
};

// Which directory it is: two ways to one directory have the same.
struct DirectoryId {
  std::string machine;  // its boot id
  uint64_t device = 0, inode = 0;
  bool operator==(const DirectoryId&) const = default;
};

class Target {
 public:
  virtual ~Target() = default;
  virtual std::string describe() const = 0;  // for messages: the directory's path
  // Nothing: it is none of a file system.
  virtual std::optional<DirectoryId> directory_id() const { return {}; }
  // The address by which nodes' agents ask each other for what lies here; empty where none serves it.
  virtual std::string address_for_agents() const { return ""; }
  // The sum of all terms, which fill no more than `into`. The first one's agent is this one's. It adds its part to what the next one answers, and so
  // on, so that no node gets or sends more than one term's bytes. Kind::unsupported where no agent serves it.
  virtual Status sum(std::span<const SumTerm> terms, ByteSpan into);
  // Each node keeps what it has read and written for itself (NFS, FUSE). It sees what others wrote there after their sync or write_back and a new
  // open of its own.
  virtual bool caches_by_node() const { return false; }
  virtual Result<std::shared_ptr<Object>> open(const std::string& name, OpenMode mode, Pages pages = Pages::own) = 0;
  // open(name, OpenMode::create, pages) for whoever goes on with a call on the object at once. Where an open costs a wait, a failure of it comes
  // with that call.
  virtual Result<std::shared_ptr<Object>> open_to_write(const std::string& name, Pages pages) { return open(name, OpenMode::create, pages); }
  // Makes an empty object and asks the file system to lay it out so, before anything is in it: what it was given, which may be anything
  // else. Kind::exists where there is an object. Where storage does not stripe it is an object like any other.
  virtual Result<Stripes> make_striped(const std::string& name, const StripeWish& wish) = 0;
  // How the file system says that the object lies.
  virtual Result<Stripes> stripes(const std::string& name) = 0;
  // Replaces a small object whole: after a crash it is the old or the new one. `durable` waits for the device.
  virtual Status put(const std::string& name, ByteView content, bool durable) = 0;
  // Whether each call costs a wait for another node, so that calls that belong together are better made as one.
  virtual bool is_far() const { return false; }
  // Whether `move` can be had.
  virtual bool moves_objects() const { return false; }
  // The object `from`, whose content is durable, takes the name `to` in the same directory from whatever had it: for good when this returns. A
  // crash before that leaves the old or the new one there.
  virtual Status move(const std::string& from, const std::string& to);
  // The object `from`, which is durable, goes by the name `to` as well: for good when this returns. What is written by one name shows by the other.
  // Ok where it has that name already; Kind::exists where another object has; Kind::unsupported where none can have two names.
  virtual Status link(const std::string& from, const std::string& to);
  // Kind::not_found where there is none; Kind::corrupt where it is larger than `max_bytes`.
  virtual Result<Bytes> get(const std::string& name, uint64_t max_bytes) = 0;
  virtual Status make_directory(const std::string& name) = 0;  // parents exist; existing is ok
  virtual Status remove(const std::string& name) = 0;          // an object; not_found where there is none
  // With all that is in it; missing is ok. It is gone for good before the first of that goes: after a crash it is there whole, or not at all.
  virtual Status remove_directory(const std::string& name) = 0;
  // Gives free a name that something else than an object has taken (a directory, a link, a FIFO). That is moved to another name beside it
  // and never followed. An object stays; nothing there is ok.
  virtual Status set_aside(const std::string& name) = 0;
  virtual Result<std::vector<std::string>> list(const std::string& directory) = 0;  // "" is the target itself
  // The small object `object`, of at most `max_bytes`, of each directory in this one. Each is told, with the name of the directory, also where that
  // has none. Where each call costs a wait they come many at a time.
  struct EachWish {
    std::string directory, object;  // "" is the target itself
    uint64_t max_bytes = 0;
  };
  using TellOfEach = std::function<void(const std::string& name, Result<Bytes> content)>;
  virtual Status get_each(const EachWish& wish, const TellOfEach& tell);
  virtual Result<Space> space() = 0;
  // Whether the path still leads to the directory that was opened (an unmounted mount, a replaced directory do not).
  virtual Status check_identity() = 0;
  // Writes in their order, as one call; ends at the first that fails. Objects are this target's.
  struct ObjectWrite {
    std::shared_ptr<Object> object;
    uint64_t offset = 0;
    std::vector<iovec> from;
  };
  virtual Status write_together(std::span<const ObjectWrite> writes);
  // The end of a commit here, as one call, for where each call costs a wait. This is still the directory that was opened, and `written` still stand
  // in it. With `durable` they are synced, and `left` too: what was written through handles that were let go of since. Objects are this target's.
  using Objects = std::span<const std::shared_ptr<Object>>;
  virtual Status settle(Objects written, Objects left, bool durable);
  // write_together, and then settle.
  virtual Status write_and_settle(std::span<const ObjectWrite> writes, Objects written, Objects left, bool durable);
  // Kind::busy where another opener (process or handle) holds it.
  virtual Result<std::unique_ptr<Lock>> try_lock(const std::string& name, Hold hold = Hold::alone) = 0;
  // The same as one call with what belongs to it: before it the directory is made, while it is held the object is read. Empty names: neither.
  struct LockWish {
    std::string name;
    Hold hold = Hold::alone;
    std::string directory, object;
    uint64_t max_bytes = 0;  // of the object
  };
  struct Locked {
    std::unique_ptr<Lock> lock;
    std::optional<Result<Bytes>> object;  // nothing: it is to be asked for
  };
  virtual Result<Locked> try_lock_with(const LockWish& wish);
  // By the user's word: removes the names by which locks are held in this directory (name_lock.hpp), whoever holds them. One sentence each.
  virtual Result<std::vector<std::string>> break_locks(const std::string& /*directory*/) { return std::vector<std::string>(); }
};

std::string path_of_each(const Target::EachWish& wish, const std::string& name);

}  // namespace holdfast::target
