// One file as this process has it open, however many descriptors lead to it: they see each other's writes at once. Other processes see
// what was written when it is synced or the last writing descriptor is closed, and what they wrote shows here at an open.
// Its origin is a protected file, with buffers before it where the settings say so, or a plain one with buffers before it (src/file).
#pragma once
#include <sys/uio.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>

#include "base/config.hpp"
#include "base/raw_syscalls.hpp"
#include "base/status.hpp"
#include "base/turns.hpp"
#include "file/plain_origin.hpp"
#include "file/protected_origin.hpp"
#include "file/stack.hpp"
#include "frontend/posix/growing_origin.hpp"
#include "frontend/posix/presence.hpp"
#include "tree/openings.hpp"

namespace holdfast::frontend::posix {

// How a descriptor uses the file.
struct Use {
  bool writes = false;
  int inherited = -1;  // a descriptor that came through exec and may be the file's, whatever name it has by now
};

class ProcessFile final : public tree::Opened, public std::enable_shared_from_this<ProcessFile> {
 public:
  // The protected file that was found, shared with whoever has it open already.
  static Result<std::shared_ptr<ProcessFile>> open(file::Found found, Use use, const Settings& settings);
  // The plain file that `native` is, which the program's own open has opened. Kind::unsupported: not with these rights beside
  // those that it is open with already; nothing is kept of it here then.
  static Result<std::shared_ptr<ProcessFile>> open_plain(raw::Fd native, const std::string& path, Use use, const Settings& settings);
  // A checkpoint's file that processes of several nodes write (Checkpoints::open_shared).
  static Result<std::shared_ptr<ProcessFile>> open_growing(const Checkpoints::Shared& shared, const std::string& path, Use use,
                                                           const Settings& settings);
  // What a plain file goes by here.
  static std::string plain_id(uint64_t device, uint64_t inode) { return file::PlainOrigin::id_of(device, inode); }
  // This process has mapped the file by the kernel, shared. It keeps nothing back of it from then on, also when it opens it anew, and does not put a
  // protected file in its place.
  static void note_mapped(const std::string& plain_id);
  static bool was_mapped(const std::string& plain_id);
  // One that was open before an exec; storage is looked for when it is used.
  static std::shared_ptr<ProcessFile> inherit(const std::string& file_id, const std::string& path, Use use, const Settings& settings);
  // Null where this process does not have it open.
  static std::shared_ptr<ProcessFile> find(const std::string& file_id);
  // Whether this process has any file open for writing: what tells the doors that a look at a file may need more.
  static bool any_written() { return writing_.load(std::memory_order_relaxed) > 0; }
  // Whether it may hold bytes that it was given, and that no file has yet.
  static bool any_held();
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

  // One of its descriptors has O_APPEND.
  void will_append() { appends_.store(true, std::memory_order_relaxed); }
  std::string path();
  const std::string& file_id() const { return file_id_; }
  bool is_plain() const { return plain() != nullptr; }
  // Permission bits, where no name says them.
  std::optional<mode_t> mode();
  // In a program that a replica has started: whether what it appends to a plain file of this path is to be there once for all teams.
  static void asks_before_appends(bool (*to)(const std::string& path)) { asks_before_appends_ = to; }
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
  Status flush_below();
  // Each description has one of its own for its locks; see origin.hpp.
  Result<raw::Fd> lock_descriptor(int inherited);
  // Before an unlock and after a lock: what was written here is in the file, and what others wrote is seen.
  Status meet_others();
  // In a redundant job, where one replica renames or removes the file for all: before that, and after it in the others.
  void put_down();
  void follow_rename(const std::string& to);
  void follow_removal();
  // Locks of fcntl are the process's: it loses them when it closes any number of the file.
  void set_locked_by_process(bool locked) { locked_by_process_ = locked; }
  bool is_locked_by_process() const { return locked_by_process_; }
  Status allocate(int mode, const Extent& extent);
  Result<uint64_t> next(FileLayer::Stretch stretch, uint64_t offset);
  // That a plain file is reached by.
  Result<int> native_descriptor(bool to_write = false);
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
  ProcessFile(std::string file_id, const std::string& path, const Settings& settings);
  template <class Join>
  static Result<std::shared_ptr<ProcessFile>> joined(const std::string& file_id, const std::string& path, const Settings& settings, Join join);
  static std::shared_ptr<ProcessFile> entry(const std::string& file_id, const std::string& path, const Settings& settings);
  void count(Use use);
  // The origin, as what it is; else null.
  file::PlainOrigin* plain() const { return plain_origin_; }
  file::ProtectedOrigin* protected_origin() const { return protected_origin_; }
  GrowingOrigin* growing() const { return growing_origin_; }

  Status join(file::Found& found, Use use);
  Status join_growing(const Checkpoints::Shared& shared, Use use);
  Status join_plain(raw::Fd& native, Use use);
  Result<uint64_t> read_pieces(uint64_t offset, std::span<const iovec> into);
  bool is_ready_to_read() const;
  Status reach(bool to_write);
  Status stack_up(Result<file::Bottom> bottom, bool will_be_written);
  void drop_stack() { stack_ = {}; }
  void forget_if_unused();
  Status let_go();
  Result<Extent> append_below(std::span<const ByteView> pieces);
  Status show_and_look();
  Status buffers_flushed();
  Status stored(const Status& status);
  void show_presence(bool writes);
  void mind_others();
  bool met_another();
  bool may_have_met(const redundant::Replica& replica);
  // Before it is used: what other processes have appended through descriptors that they share with this one is there at once.
  void take_in_appends();
  Status heard(const Status& status);
  void failed(const Status& status);
  void note_written();

  const std::string file_id_;
  const Settings& settings_;
  std::unique_ptr<file::Origin> origin_;
  file::PlainOrigin* plain_origin_ = nullptr;
  file::ProtectedOrigin* protected_origin_ = nullptr;
  GrowingOrigin* growing_origin_ = nullptr;
  Turns mutex_;                         // reads that change nothing side by side, everybody else alone
  file::Stack stack_;                   // none: to be reached at the next use
  std::atomic<bool> appends_{false};    // a descriptor of it has or had O_APPEND
  bool shared_ = false;                 // other processes have descriptors of this open file: appends get their places at once
  bool through_ = false;                // nothing is kept in buffers
  uint64_t buffer_failures_ = 0;        // of those, that have been told
  std::unique_ptr<Presence> presence_;  // since there were buffers
  bool present_as_writer_ = false;
  std::unordered_map<uint64_t, uint64_t> looked_;  // in a replica: by thread, at which of its calls of MPI
  int readers_ = 0, writers_ = 0;
  bool gone_ = false;  // the last descriptor has left; whoever still finds it opens the file anew
  Status failure_;
  uint64_t failures_ = 0;
  std::atomic<int64_t> written_ns_{0};
  std::atomic<bool> news_{false}, locked_by_process_{false};
  static std::atomic<int> writing_, plain_;
  static std::atomic<bool (*)(const std::string&)> asks_before_appends_;
  static std::atomic<int32_t> process_;
};

}  // namespace holdfast::frontend::posix
