// One file as this process has it open, however many descriptors lead to it: they see each other's writes at once. Other processes see
// what was written when it is synced or the last writing descriptor is closed, and what they wrote shows here at an open.
// The file is a protected one, with buffers before it where the settings say so, or a plain one with buffers before it.
#pragma once
#include <sys/uio.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>

#include "base/config.hpp"
#include "base/file_layer.hpp"
#include "base/raw_syscalls.hpp"
#include "base/status.hpp"
#include "catalog/followed_directory.hpp"
#include "catalog/located.hpp"
#include "engine/protected_file.hpp"
#include "exchange/exchange.hpp"
#include "frontend/posix/presence.hpp"
#include "layers/buffered/buffered.hpp"
#include "tree/openings.hpp"

namespace holdfast::frontend::posix {

// How a descriptor uses the file.
struct Use {
  bool writes = false;
  bool fresh = false;  // the file was made just now, by catalog::create
  int inherited = -1;  // a descriptor that came through exec and may be the file's, whatever name it has by now
};

class OpenFile final : public tree::Opened, public std::enable_shared_from_this<OpenFile> {
 public:
  // The file that `located` is, shared with whoever has it open already.
  static Result<std::shared_ptr<OpenFile>> open(catalog::Located located, Use use, const Settings& settings);
  // The plain file that `native` is, which the program's own open has opened. Kind::unsupported: not with these rights beside
  // those that it is open with already; nothing is kept of it here then.
  static Result<std::shared_ptr<OpenFile>> open_plain(raw::Fd native, const std::string& path, Use use, const Settings& settings);
  // What a plain file goes by here.
  static std::string plain_id(uint64_t device, uint64_t inode);
  // This process has mapped the file by the kernel, shared: it keeps nothing back of it from then on, also when it opens it anew, and
  // does not put a protected file in its place.
  static void note_mapped(const std::string& plain_id);
  static bool was_mapped(const std::string& plain_id);
  // One that was open before an exec; storage is looked for when it is used.
  static std::shared_ptr<OpenFile> inherit(const std::string& file_id, const std::string& path, Use use, const Settings& settings);
  // Null where this process does not have it open.
  static std::shared_ptr<OpenFile> find(const std::string& file_id);
  // Whether this process has any file open for writing: what tells the doors that a look at a file may need more.
  static bool any_written() { return writing_.load(std::memory_order_relaxed) > 0; }
  // Whether it has any plain file open.
  static bool any_plain() { return plain_.load(std::memory_order_relaxed) > 0; }
  // Puts what was written into the files, for others to see (before fork, exec, exit), and lets go of storage until the next use.
  static Status let_go_all();
  // Around an exec: whether the next image gets the plain files' own descriptors, by which it finds them whatever their names have become.
  static void hand_over(bool yes);
  // At exit: those that had lost their names.
  static void remove_unlinked();
  // The directory is about to go: files in it that have lost their names go on in the one above.
  static void leave_directory(const std::string& absolute);
  // Around fork: nobody is in the middle of a call; the child has the same files, and reaches them by ways of its own.
  static void before_fork();
  static void after_fork(bool child);
  // getpid(2), asked once in a process: a small write must not cost a call of the system.
  static int32_t process();

  // A descriptor less. What it returns is of everything written so far: close's answer.
  Status leave(bool writes);

  std::string path();
  const std::string& file_id() const { return file_id_; }
  bool is_plain() const { return file_id_.starts_with(plain_prefix); }
  // Bytes moved, which is less than asked for at the end of the file; a failure only where none were.
  Result<uint64_t> read(uint64_t offset, std::span<const iovec> into);
  Result<uint64_t> write(uint64_t offset, std::span<const iovec> from);
  // At the end of the file, which is not before `at_least`; `offset` comes back as where that was. A protected file's bytes get their places
  // when they are put on storage: behind what other processes have put there by then.
  Result<uint64_t> append(uint64_t at_least, std::span<const iovec> from, uint64_t& offset);
  Result<uint64_t> size() override;
  // Zeros where no whole copy ever stands at the path.
  using Identity = tree::Identity;
  Identity identity_of_copy() override;
  int64_t written_ns() const override { return written_ns_.load(std::memory_order_relaxed); }
  Status set_size(uint64_t bytes);
  Status sync();
  // All that was written has arrived, so that nothing changes the file's times later on.
  Status settle();
  // Locks are the kernel's, on a descriptor of their own for each description: of the plain file itself, of a protected file's
  // lock file. `inherited` is taken where it is one. The caller owns it.
  Result<raw::Fd> lock_descriptor(int inherited);
  // Before an unlock and after a lock: what was written here is in the file, and what others wrote is seen.
  Status meet_others();
  // Locks of fcntl are the process's: it loses them when it closes any number of the file.
  void set_locked_by_process(bool locked) { locked_by_process_ = locked; }
  bool is_locked_by_process() const { return locked_by_process_; }
  // Of a plain file: fallocate(2), and the descriptor that it is reached by.
  Status allocate(int mode, uint64_t offset, uint64_t bytes);
  Result<int> native_descriptor(bool to_write = false);
  // lseek(2) with SEEK_DATA and SEEK_HOLE, of a plain file. -1 and errno are a Status.
  Result<int64_t> next_part(int64_t offset, int whence);
  // From now on nothing is kept in buffers: somebody reads or writes the file by other ways.
  Status write_through();
  // The name goes or changes under the open file.
  Status rename(const std::string& to) override;
  Status unlink() override;

  // A failure that no call has returned yet, told once to each descriptor: `seen` is how many it knows of.
  Status untold(uint64_t& seen);
  // Once: another process has been met, and what is written goes below at once from then on. For a line to the user.
  bool news_of_others() { return news_.load(std::memory_order_relaxed) && news_.exchange(false); }

 private:
  OpenFile(std::string file_id, std::string path, const Settings& settings)
      : file_id_(std::move(file_id)), path_(std::move(path)), settings_(settings), alone_(exchange::make_solo()) {}
  template <class Join>
  static Result<std::shared_ptr<OpenFile>> joined(const std::string& file_id, const std::string& path, const Settings& settings, Join join);
  void count(Use use);
  static std::shared_ptr<OpenFile> entry(const std::string& file_id, const std::string& path, const Settings& settings);

  static constexpr std::string_view plain_prefix = "plain-";
  Status join(catalog::Located& located, Use use);
  Status join_plain(raw::Fd& native, Use use);
  Status reach_plain(bool to_write);
  raw::Fd handed_over() const;
  // `reads`: the layer can be read; `writes`: it is going to be written.
  void stack_up(std::unique_ptr<FileLayer> file, uint64_t row_bytes, bool reads, bool writes);
  void forget_if_unused();
  Status show_and_look();
  Status buffers_flushed();
  void drop_stack();
  Status stored(const Status& status);
  void show_presence(bool writes);
  void mind_others();
  Status heard(const Status& status);
  Status reach(bool to_write);
  void follow_directory();
  std::string hide_in(const std::string& directory) const;
  Status move(const std::string& to);
  Status use(catalog::Located located, bool to_write, bool fresh);
  Status let_go();
  Result<uint64_t> append_natively(std::span<const iovec> from, uint64_t& offset);
  Result<uint64_t> append_protected(std::span<const iovec> from);
  Status place_appended(bool durable);
  void note_written();
  uint64_t end() const { return stack_->size() + appended_.size(); }
  Result<uint64_t> write_here(uint64_t offset, std::span<const iovec> from);

  const std::string file_id_;
  std::string path_;
  catalog::FollowedDirectory directory_;  // of a protected file: who renames a directory above it does not tell us
  const Settings& settings_;
  std::unique_ptr<exchange::Exchange> alone_;
  std::mutex mutex_;
  std::unique_ptr<FileLayer> stack_;            // null: to be reached at the next use
  engine::ProtectedFile* protected_ = nullptr;  // the stack's bottom, where that is one
  layers::BufferedFile* buffers_ = nullptr;     // of the stack, where there are any
  Bytes appended_;                              // what has no place in the protected file yet
  bool shared_ = false;                         // other processes have descriptors of this open file: appends get their places at once
  uint64_t buffer_failures_ = 0;                // of those, that have been told
  bool through_ = false;
  std::unique_ptr<Presence> presence_;  // since there were buffers
  bool present_as_writer_ = false;
  raw::Fd native_;      // a plain file's own
  int inherited_ = -1;  // Use::inherited; somebody else's to close
  bool stack_writes_ = false;
  std::optional<Identity> copy_;  // once it is known
  bool changed_ = false;          // since the times at the path were set
  int readers_ = 0, writers_ = 0;
  bool gone_ = false;      // the last descriptor has left; whoever still finds it opens the file anew
  bool unlinked_ = false;  // without a name: goes with its last descriptor
  raw::Fd held_;           // since then: says that it is in use
  Status failure_;
  uint64_t failures_ = 0;
  std::atomic<int64_t> written_ns_{0};
  std::atomic<bool> news_{false}, locked_by_process_{false};
  static std::atomic<int> writing_, plain_;
  static std::atomic<int32_t> process_;
};

}  // namespace holdfast::frontend::posix
