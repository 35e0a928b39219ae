// One protected file as this process has it open, however many descriptors lead to it: they see each other's writes at once. Other
// processes see what was written when it is synced or the last writing descriptor is closed, and what they wrote shows here at an open.
#pragma once
#include <sys/uio.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <span>
#include <string>

#include "base/config.hpp"
#include "base/status.hpp"
#include "catalog/located.hpp"
#include "exchange/exchange.hpp"
#include "layers/file_layer.hpp"

namespace holdfast::frontend::posix {

// How a descriptor uses the file.
struct Use {
  bool writes = false;
  bool fresh = false;  // the file was made just now, by catalog::create
};

class OpenFile : public std::enable_shared_from_this<OpenFile> {
 public:
  // The file that `located` is, shared with whoever has it open already.
  static Result<std::shared_ptr<OpenFile>> open(catalog::Located located, Use use, const Settings& settings);
  // One that was open before an exec; storage is looked for when it is used.
  static std::shared_ptr<OpenFile> inherit(const std::string& file_id, const std::string& path, Use use, const Settings& settings);
  // Null where this process does not have it open.
  static std::shared_ptr<OpenFile> find(const std::string& file_id);
  // Whether this process has any file open for writing: what tells the doors that a look at a file may need more.
  static bool any_written() { return writing_.load(std::memory_order_relaxed) > 0; }
  // Puts what was written into the files, for others to see (before fork, exec, exit), and lets go of storage until the next use.
  static Status let_go_all();
  // At exit: those that had lost their names.
  static void remove_unlinked();
  // Around fork: nobody is in the middle of a call; the child has the same files, and reaches them by ways of its own.
  static void before_fork();
  static void after_fork(bool child);

  // A descriptor less. What it returns is of everything written so far: close's answer.
  Status leave(bool writes);

  std::string path();
  const std::string& file_id() const { return file_id_; }
  // Bytes moved, which is less than asked for at the end of the file; a failure only where none were.
  Result<uint64_t> read(uint64_t offset, std::span<const iovec> into);
  Result<uint64_t> write(uint64_t offset, std::span<const iovec> from);
  // At the end of the file, which is not before `at_least`; `offset` comes back as where that was.
  Result<uint64_t> append(uint64_t at_least, std::span<const iovec> from, uint64_t& offset);
  Result<uint64_t> size();
  Status set_size(uint64_t bytes);
  Status sync();
  // The name goes or changes under the open file.
  Status rename(const std::string& to);
  Status unlink();

  // A failure that no call has returned yet, told once to each descriptor: `seen` is how many it knows of.
  Status untold(uint64_t& seen);

 private:
  OpenFile(std::string file_id, std::string path, const Settings& settings)
      : file_id_(std::move(file_id)), path_(std::move(path)), settings_(settings), alone_(exchange::make_solo()) {}
  static std::shared_ptr<OpenFile> entry(const std::string& file_id, const std::string& path, const Settings& settings);

  Status join(catalog::Located& located, Use use);
  Status reach(bool to_write);
  Status use(catalog::Located located, bool to_write, bool fresh);
  Status let_go();
  Result<uint64_t> write_here(uint64_t offset, std::span<const iovec> from);

  const std::string file_id_;
  std::string path_;
  const Settings& settings_;
  std::unique_ptr<exchange::Exchange> alone_;
  std::mutex mutex_;
  std::unique_ptr<layers::FileLayer> stack_;  // null: to be reached at the next use
  bool stack_writes_ = false;
  int readers_ = 0, writers_ = 0;
  bool gone_ = false;      // the last descriptor has left; whoever still finds it opens the file anew
  bool unlinked_ = false;  // without a name: goes with its last descriptor
  Status failure_;
  uint64_t failures_ = 0;
  static std::atomic<int> writing_;
};

}  // namespace holdfast::frontend::posix
