// The directory of a target: its descriptor, and how names are resolved below it: never through a symbolic link, never out of it.
#pragma once
#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/raw_syscalls.hpp"
#include "base/status.hpp"
#include "target/directory_held.hpp"

namespace holdfast::target {

class DirectoryRoot {
 public:
  DirectoryRoot(raw::Fd fd, std::string path, const DirectoryOptions& options);
  // directory_held.hpp
  DirectoryRoot(raw::Fd fd, std::string path, std::string label, const DirectoryOptions& options, LookThere look);

  int fd() const { return fd_.get(); }
  bool is_memory() const { return is_memory_; }
  bool maps() const { return maps_; }
  bool locks_reach_all() const { return locks_reach_all_; }
  bool caches_by_node() const { return caches_by_node_; }
  const std::string& label() const { return label_; }
  // What is at its path now.
  Status look_there(struct stat& found) const;
  const DirectoryOptions& options() const { return options_; }
  std::string at(const std::string& name) const { return name.empty() ? label_ : label_ + "/" + name; }
  mode_t file_mode() const { return options_.mode.value_or(0666); }
  mode_t directory_mode() const;
  const StripeWish* wish(const std::string& name) const;

  // As openat; "" is the root itself.
  raw::Fd open(const std::string& name, int flags, mode_t mode = 0) const;

  // The directory that holds `name`, and its last component there.
  struct Place {
    raw::Fd opened;
    int fd = -1;
    std::string leaf;
  };
  Result<Place> place(const std::string& name, const std::string& doing) const;

  // The reason for a failed open, with symbolic links called by their name.
  static Status unreachable(const std::string& what);

  // Makes the entries of `directory` durable, and its own in those above it, up to the root: that once, for nobody takes it away again.
  Status sync_directories(const std::string& directory) const;
  // The same as calls that may be made in any order. When all have succeeded: entry_is_durable(what this gave).
  uint64_t add_waits(const std::string& directory, std::vector<std::function<Status()>>& waits) const;
  void entry_is_durable(uint64_t inode) const { durable_inode_ = inode; }

 private:
  uint64_t inode_of(const std::string& directory) const;
  Status sync_directory(const std::string& directory) const;
  raw::Fd walk(const std::string& name, int flags, mode_t mode) const;

  raw::Fd fd_;
  std::string path_, label_;
  DirectoryOptions options_;
  LookThere look_;
  mutable std::atomic<bool> use_openat2_;
  // The directory, a file's own on this target, whose entry in those above it is durable: whoever opens a target works in one such directory.
  mutable std::atomic<uint64_t> durable_inode_{0};
  bool is_memory_ = false, maps_ = false, locks_reach_all_ = false, caches_by_node_ = true;
};

}  // namespace holdfast::target
