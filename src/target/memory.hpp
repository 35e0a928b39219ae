// A target in memory, for tests: the directory's twin, with a power switch. Several targets (of several ranks) open
// one MemoryDirectory, as several processes open one directory.
//
// Crash model: what was synced stays. Every unsynced write is, sector by sector (512 bytes), there or not; unsynced creations,
// replacements and removals have happened or not. A new directory is durable with the first object in it; its removal is when the call ends.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "target/name_lock.hpp"
#include "target/target.hpp"

namespace holdfast::target {

// The bytes of one object, with holes. Copies share their pages until one of them is written.
class SparseBytes {
 public:
  uint64_t size() const { return size_; }
  size_t read(uint64_t offset, ByteSpan into) const;  // returns how many bytes there were
  void write(uint64_t offset, ByteView from);
  void truncate(uint64_t size);
  uint64_t allocated_bytes() const { return pages_.size() * kPageBytes; }

 private:
  static constexpr uint64_t kPageBytes = 4096;
  using Page = Bytes;
  Page& own_page(uint64_t index);

  uint64_t size_ = 0;
  std::map<uint64_t, std::shared_ptr<Page>> pages_;
};

class MemoryDirectory {
 public:
  // An old state of everything, to be put back (a target that comes back stale).
  struct Snapshot {
    std::map<std::string, SparseBytes> objects;
    std::set<std::string> directories;
  };

  // Power goes: open objects and locks of before are dead, `seed` chooses what of the unsynced is left.
  void power_loss(uint64_t seed);
  // Every process that held something is gone; storage stays as it is.
  void release_locks();

  Snapshot snapshot() const;
  void restore(const Snapshot& snapshot);
  Result<SparseBytes> snapshot_object(const std::string& name) const;
  void restore_object(const std::string& name, const SparseBytes& content);

  // For tests that damage what lies there. False where there is no such object, or no such byte.
  bool flip_bit(const std::string& name, uint64_t bit);
  bool truncate_object(const std::string& name, uint64_t size);
  bool remove_object(const std::string& name);
  std::vector<std::string> object_names() const;

  // An object as a path outside the target leads to it.
  struct Look {
    uint64_t inode = 0, size = 0;
    int64_t changed = 0;  // when: a number that grows
  };
  Result<Look> look(const std::string& name);
  bool is_directory(const std::string& name) const;
  Status sync_object(const std::string& name);  // fsync(2): with its time, which Object::sync may leave behind

  // As after `umount -l`: handles still work, but the path leads elsewhere (check_identity says lost).
  void set_mounted(bool mounted);
  // All objects together may not allocate more; writes beyond say ENOSPC.
  void set_capacity(uint64_t bytes);
  // Whether objects can be mapped (Object::map), as on a local file system.
  void set_mappable(bool mappable);

 private:
  friend class MemoryTarget;
  friend class MemoryObject;
  friend class MemoryLock;
  friend class MemoryNames;

  struct Operation {
    bool is_truncate = false;
    uint64_t offset = 0;  // or the new size
    Bytes data;
    bool only_grows = false;
  };
  struct Node {
    SparseBytes now;
    SparseBytes durable;              // content at the last sync
    std::vector<Operation> unsynced;  // what happened since
    uint64_t inode = 0;               // given at the first look
    int64_t changed = 0, durable_changed = 0;
  };
  using NodePtr = std::shared_ptr<Node>;

  NodePtr find(const std::string& name) const;
  bool has_directory(const std::string& name) const;
  uint64_t allocated_bytes() const;
  void make_durable(const std::string& name, NodePtr node);
  static SparseBytes content_left(const Node& node, unsigned style, std::mt19937_64& random);
  static void write_torn(SparseBytes& into, const Operation& op, std::mt19937_64& random);
  void lose_directories(std::mt19937_64& random);
  void rename_directory(const std::string& from, const std::string& to);

  mutable std::mutex mutex_;
  std::map<std::string, NodePtr> objects_;
  std::map<std::string, NodePtr> durable_objects_;  // names that a crash cannot take; a node may be an older one
  std::set<std::string> directories_, durable_directories_;
  struct Held {
    uint64_t token;
    Hold hold;
    int node;
  };
  std::multimap<std::string, Held> locks_;  // by name
  uint64_t next_token_ = 1, next_inode_ = 1;
  int64_t clock_ = 0;
  bool mounted_ = true, mappable_ = true;
  uint64_t capacity_bytes_ = 1ull << 50;
};

// Storage whose locks stop at the node: those of one node alone keep each other out. With `names` they are names too (name_lock.hpp), for which
// it says who holds them and who is dead.
struct NodeLocks {
  int node = 0;
  std::optional<Processes> names = {};
};
std::shared_ptr<Target> make_memory_target(std::shared_ptr<MemoryDirectory> directory, std::string name, NodeLocks locks = {});

}  // namespace holdfast::target
