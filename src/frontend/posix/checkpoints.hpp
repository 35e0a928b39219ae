// The checkpoints of this process: which of its files are some, and where in the node's own directory they lie. What the program gets is a
// descriptor of the kernel's on the local file; only opens, closes and names are heard.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "base/config.hpp"
#include "base/status.hpp"
#include "catalog/located.hpp"
#include "checkpoint/at_close.hpp"
#include "checkpoint/drained.hpp"
#include "checkpoint/local.hpp"
#include "checkpoint/pattern.hpp"
#include "checkpoint/run.hpp"
#include "file/coordinated/coordinated.hpp"

namespace holdfast::frontend::posix {

// In a redundant job each replica writes a copy of its own on its node's disk, natively. The calls on names are made as one (checkpoints_twins.cpp).
class Checkpoints {
 public:
  // Null where the job keeps none.
  static Checkpoints* of_process(const Settings& settings);
  // Of a process that has none as it is on none of the job's nodes: why what is at this path is no checkpoint, where it looks like one. A sentence, once; of
  // a file for each rank only in the first one on this host, where the launcher says which that is. Else empty.
  static std::string why_none(const std::string& path);
  static bool is_on_no_node();  // only then it says something
  // Its job has ended well, and this process lives on: what it makes from then on nobody protects.
  bool is_over() const;
  bool is_each_by_itself() const;  // files of no checkpoint: each version that is protected serves
  // Those of one rank of a job, on a node (its address); where the job is redundant of one of its teams.
  struct Rank {
    uint32_t number, of;
    std::string node;
    int team = 0;
    redundant::Replica* replica = nullptr;                        // null: this process's
    std::optional<checkpoint::Run::From> resumes = std::nullopt;  // of a team that was started again
    std::string process = {};                                     // its name in "openers"; empty: this one's
  };
  static std::unique_ptr<Checkpoints> make(const Settings& settings, checkpoint::Patterns patterns, checkpoint::Run run, const Rank& rank);

  struct File {
    checkpoint::Named named;
    std::string path;  // absolute, as the pattern has it
  };
  // `path` relative to the working directory, or absolute. `follow`: also of a link that leads to one; nothing need be there.
  std::optional<File> match(const std::string& path, bool follow = false) const;
  // A link that leads to one, and is no file of that name. Replicas look at different times, and do not look.
  bool is_link_to_one(const std::string& path) const;
  // The checkpoint of which that is the local file; empty where it is of none.
  std::string path_of(const std::string& local_path) const;
  // Its name is one of many that its pattern means: a link there is followed.
  bool may_be_link(const File& file) const;

  // What of a file is to be seen.
  struct Sight {
    enum What : uint8_t { local, absent, as_without } what = as_without;
    std::string path;  // of the local file
    // Its id and its size where it is written on the nodes' targets just now. The local file has its size and permissions, and no content.
    std::string grows = {};
    uint64_t bytes = 0;
    std::optional<uint32_t> described = std::nullopt;  // the number of one of which the local file has the size and permissions alone
  };
  // Looks for it here, then in the pool; what is found there becomes a local file. Not ok: it is there and cannot be read. All replicas look, and see the
  // same.
  Result<Sight> look(const File& file) { return look_as_one(file, true); }
  // The same of this replica alone: where it has looked, and the file has gone on to its next state meanwhile.
  Result<Sight> look_alone(const File& file) { return look_alone(file, true); }
  // For who asks for its size and permissions alone: of what is in the pool nothing is fetched. The local file has these, and no content yet.
  Result<Sight> describe(const File& file) { return look_as_one(file, false); }

  // Whether files in that directory (absolute) may be some, by the patterns alone.
  bool may_lie_in(const std::string& directory) const;
  bool may_lie_below(const std::string& directory) const;
  // What of the files in a directory (absolute) is to be seen. Nothing where none of these checkpoints can lie there.
  struct Listing {
    std::string directory;
    std::set<std::string> names, removed;
    checkpoint::PlainFiles::Shown plain;
    mutable std::optional<std::set<std::string>> holding;  // directories in or below which some are to be seen, once somebody has asked
  };
  Result<std::optional<Listing>> list(const std::string& directory);
  // Whether what stands there under this name is not.
  bool hides(const Listing& listing, const std::string& name) const;
  // The same of a directory there: it is another step's than the one that the attempt has begun with, and holds files of checkpoints, of which none is to be seen. A program
  // that goes on from the last of its directories would choose it. One that holds nothing may be the program's own.
  bool hides_directory(const Listing& listing, const std::string& name);
  // Cheap: what is always so, or never, in an attempt.
  bool may_have_unseen_directories() const;
  // A directory (absolute) at a step's path is not there to the program, though it is to its user: it holds drained files alone of which none is to be seen, and the program has
  // removed it, or it is of a later step than all that the program can know.
  bool is_unseen_directory(const std::string& directory);
  // The program makes such a one; Kind::exists where another rank has. It removes one in which it sees nothing; Kind::not_found where another rank has.
  Status directory_is_made(const std::string& directory);
  Status directory_is_removed(const std::string& directory);
  // Nothing is left in it but what these two have noted: that has gone.
  bool cleared_of_marks(const std::string& directory) const;

  // A new name in the node's own directory, which is seen by nobody.
  std::string scratch() const;
  // Of an open that writes: a descriptor for the program. -1 and errno; `status` says more where there is more to say. The file stays in the
  // state "writing" until closed() has been told of all such descriptors.
  int open_to_write(const File& file, int flags, mode_t mode, Status& status);
  // Whether the number is one of them: one load where it is none.
  static bool is_written(int fd);
  // A second number of such a descriptor; told of like the first when it is closed.
  void duplicated(int from, int to);
  // It has set the file's size: it is written anew, and no update of what was there.
  void truncated(int fd, int64_t length = 0);
  // A call that writes by this number, or by what closing() has answered, has failed with this errno: what the file has is not what the program meant, and
  // it is not protected.
  void write_failed(int fd, int error);
  // What the C library still had to write of the files that are open has failed: of which ones it does not say.
  void end_failed(int error);
  // Before a call that closes the number: from then on another thread may get it, for a checkpoint of its own. What closed() is told of in the
  // number's place afterwards, below zero; 0 where nothing is written by it.
  int closing(int fd);
  // The program's close has succeeded. `given_up`: what it has written was never meant to stay. The path of the file that nobody of this process has open to
  // write any more; empty where somebody has. `late`: why one of take_when_closed() is not taken.
  std::string closed(int fd, bool given_up = false, Status* late = nullptr);
  // After that, and after take(): with `--protect-at close`, until what is closed of the file here is protected or has failed. Not ok: it is not
  // protected yet, and why.
  Status protected_at_close(const std::string& path) { return at_close_.wait(path); }
  // The process ends. What it still has open is complete where it has ended well; of a redirection (handed_over()) also where not.
  // By path why those of take_when_closed() are not taken.
  std::map<std::string, Status> closed_all(bool ended_well);

  // Before an exec: what this process writes, the next image writes and has no word of. `is_served`: that image tells of its end as well.
  static bool writes_any();
  void handed_over(bool is_served);
  void not_handed_over();  // the exec has failed

  // A file that ranks open together to write, or that is to be written so by the pattern's word.
  bool is_shared(const File& file) const;
  struct Together {
    catalog::Located located;
    checkpoint::LocalName name;
    bool fresh = true;         // nothing is in it yet
    bool may_stay_so = false;  // a copy, which is opened to read and write: it is a version where somebody writes to it
  };
  // By one of those ranks: a new version, which begins as a copy of the last where there is one. It is not to be seen before its end.
  Result<Together> begin_together(const File& file, int flags, mode_t mode, const Settings& settings);
  // On the other ranks: what this node has of it may be outdated from now on. `anew`: it is not updated. Of one that may stay so that is said when it is
  // known that somebody has written to it, on all ranks and before the end.
  void seen_together(const File& file, bool anew);
  // Before a rank's first write to one that may stay so; and when that has come to its end.
  Status written_together(const checkpoint::LocalName& name);
  void ended_together(const checkpoint::LocalName& name, bool is_torn);
  // Of a file that ranks open together to read: the version, where they can read it as it lies on the nodes.
  Result<std::optional<layout::Manifest>> version_to_read(const File& file);
  // When all have closed it: it is a version of its checkpoint from then on, or nothing of it stays. The number of its targets that are lost.
  Result<int> end_together(const Together& file, bool keep);

  // A file that processes of several nodes write, each by an open of its own, by the pattern's word. It lies on the nodes' targets.
  bool grows(const File& file) const;
  struct Shared {
    checkpoint::LocalName name;
    layout::Manifest manifest;
    bool may_stay_so = false;  // it began as a copy of the version before
  };
  // By whom it is opened. What a handle of MPI holds is lost with the process, so who has one tells of its end.
  enum class By : uint8_t { number, handle };
  // To be written: the version that is being written, or a new one. Each such open has its shared_closed(), or handle_closed().
  Result<Shared> open_shared(const File& file, int flags, mode_t mode, By by = By::number);
  // By a handle, on a rank that another one has told what it has opened, and still has open.
  Status join_shared(const File& file, const Shared& there, int flags);
  // Handles open the file to write at once, by whichever rank. Of a copy that nobody has written to, that is said by one of them.
  Status handle_opened(const Shared& shared);
  // To be read, while it is written. Nothing: it is a version, or there is none. `file_id`: that one; empty: the newest to which somebody has written.
  Result<std::optional<Shared>> find_shared(const File& file, const std::string& file_id = "");
  // Before this process writes to one for the first time. `anew`: what it was while ranks only looked at it becomes another version, as by a truncation. What it
  // goes by now: another rank may have truncated it since it was opened.
  Result<checkpoint::LocalName> shared_written(const Shared& shared, By by = By::number, bool anew = false);
  // `arrived`: all that this process has written of it. `last`: it has it open by no other number. `alone`: no child of it has it open either.
  void shared_closed(const Shared& shared, bool arrived, bool last, bool alone = true);
  void handle_closed(const Shared& shared, bool arrived);
  // The process ends, and all that it wrote has arrived.
  void shared_ended();
  // What look() has found of one: a local file of that size, or one of its content (the caller's) for who reads it by other ways.
  Result<Sight> stand_in_for(const Shared& shared, uint64_t bytes);
  Result<std::string> content_of(const Shared& shared);

  // One that is being written, and that nobody has open just now, gets another name of a checkpoint. False: it is a version, and to be renamed as any.
  Result<bool> rename_shared(const File& from, const File& to);

  // The program says that this rank has written, or at least opened, all its files of that step.
  Status complete(uint64_t step);

  Status remove(const File& file);  // Kind::not_found where the program sees none, but for what shows_plain()
  // Whether what lies at the path itself is to be seen, where there is no other.
  bool shows_plain(const File& file) const;
  // A file that the program has written elsewhere gets a checkpoint's name.
  Status take(const std::string& plain, const File& to);
  // The same of one that is open to write still, and lies at its path: it is taken when the last number is closed. False: no number of this process writes
  // it, and its checkpoint is never whole.
  Result<bool> take_when_closed(const File& file);
  // Its permissions are others now. What is closed gets a version that says so, over the units of the last one.
  void mode_changed(const File& file);
  // The content of a checkpoint, which lies at `from`, as a plain file that is new, with its permissions.
  Status copy_out(const File& file, const std::string& from, const std::string& to) const;
  // The files of a directory that has got its name, which this process found: in a redundant job those that its first replica has found. For each of them
  // all replicas have to call take(), also one in which links lead elsewhere by now.
  std::vector<File> files_of_directory(const std::string& directory, std::vector<std::string> found) const;

  ~Checkpoints();
  Checkpoints(const Checkpoints&) = delete;

 private:
  struct State;
  explicit Checkpoints(std::unique_ptr<State> state);
  Result<Sight> look_alone(const File& file, bool fetches);
  Result<Sight> look_as_one(const File& file, bool fetches);
  int open_alone(const File& file, int flags, mode_t mode, Status& status);
  Status close_as_one(redundant::Replica& replica, const checkpoint::LocalName& own);
  Status make_count(redundant::Replica& replica, file::Call call, const char* which, const std::string& copy, const checkpoint::LocalName& own,
                    const std::function<Status()>& check);
  Status remove_alone(const File& file, std::optional<checkpoint::LocalName>& removed);
  Status take_alone(const std::string& plain, const File& to);
  Result<std::string> copy_to_take(std::string from, const std::string& half);
  const std::unique_ptr<State> state_;
  checkpoint::AtClose at_close_;
};

}  // namespace holdfast::frontend::posix
