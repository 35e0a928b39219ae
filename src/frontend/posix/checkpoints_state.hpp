// What Checkpoints keeps, for the sources that it is written in: opens and closes (checkpoints.cpp), what is to be seen (checkpoints_look.cpp), and files
// that several ranks write (checkpoints_together.cpp).
#pragma once
#include <fcntl.h>
#include <sys/types.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/node_path.hpp"
#include "catalog/user_files.hpp"
#include "catalog/versions.hpp"
#include "checkpoint/directory_mark.hpp"
#include "checkpoint/ended.hpp"
#include "checkpoint/parts.hpp"
#include "checkpoint/roll.hpp"
#include "checkpoint/shared.hpp"
#include "checkpoint/untouched.hpp"
#include "frontend/posix/checkpoints.hpp"
#include "redundant/twins/replica.hpp"

namespace holdfast::frontend::posix {

using checkpoint::LocalFile;
using checkpoint::LocalName;

extern std::atomic<int> shared_opens;  // of Checkpoints::open_shared, in this process

// Of a file of `step`, where the rank's last one was of another or of the same.
inline uint32_t turn_after(uint64_t last_step, uint32_t last_turn, uint64_t step) { return last_turn + (last_step != step); }

struct Checkpoints::State {
  State(const Settings& how, checkpoint::Patterns which, checkpoint::Run of, const Rank& here)
      : settings(how),
        patterns(std::move(which)),
        run(std::move(of)),
        rank(here.number),
        ranks(here.of),
        node(here.node),
        files(checkpoint::LocalFiles(parse_node_path(node).path, run.id, run.attempt, run.teams > 1 ? here.team : checkpoint::LocalFiles::no_team)
                  .with_open_directories()),
        parts(files),
        untouched(files),
        plain(run, node, settings),
        given_replica(here.replica),
        resumes(here.resumes),
        given_process(here.process) {}

  struct Written {
    LocalName name;
    pid_t process;            // whose descriptor it is: a forked child's copies go with it and say nothing
    bool may_be_copy = true;  // it may have begun as a copy of the version before (untouched.hpp)
  };

  // Where the program has asked for a checkpoint last: it writes most of them in one directory. That it is the same one still takes two looks.
  struct Directory {
    std::string said, path;  // by the program, and without links
    uint64_t device = 0, inode = 0;
    bool is_still(const std::string& by_program) const;
  };
  std::string path_by_last_directory(const std::string& path);

  bool is_visible(const layout::Manifest& manifest, const std::set<std::string>& beside) const;
  bool may_be_outdated(const File& file, const LocalFile& here) const;
  // Of one that was removed here: whether nobody else may have written it since.
  bool is_told_here(const File& file) const { return !is_of_all(file) && file.named.rank == rank; }
  using Listed = checkpoint::LocalFiles::Listed;
  using Turn = checkpoint::Turns::Turn;
  bool is_shared(const File& file) const { return patterns.are_shared(file.named.part) || together.contains(file.path); }
  bool is_anothers(const File& file) const { return run.teams == 1 && patterns.have_rank(file.named.part) && file.named.rank != rank; }
  bool is_of_all(const File& file) const { return is_shared(file) || !patterns.have_rank(file.named.part); }
  // On other nodes. It is one file of its step then.
  bool may_be_others(const File& file) const { return !patterns.have_rank(file.named.part); }
  // Of an open that leaves nothing of what was there no other node is asked.
  bool decides_here(const File& file, int flags) const { return (flags & O_CREAT) && (flags & O_TRUNC) && !(flags & O_EXCL) && is_all_here(file); }
  // A file of this rank alone, of which nothing was there when the attempt began: what there is of it was written on this node.
  bool is_all_here(const File& file) const {
    const bool is_of_before = run.from && !run.from->drained && (!patterns.have_step() || run.from->step == file.named.step);
    return !is_of_all(file) && file.named.rank == rank && !is_of_before;
  }
  uint32_t number_here(const layout::Version& version) const { return version.attempt == run.attempt ? version.number : 0; }
  struct AllSeen {
    std::set<std::string> files;  // paths
    checkpoint::LocalFiles::Seen here;
  };
  Result<AllSeen> see_all();  // it locks
  using Found = std::vector<catalog::FoundVersion>;
  Result<Found> look_for_single(const File& file);
  bool lacks_newest(const Found& found, const File& file) const;
  Result<Found> look_at_versions(const std::function<bool(const Found&)>& suffices);
  bool is_of_beginning(const File& file) const {
    return run.from && !run.from->drained && (!patterns.have_step() || run.from->step == file.named.step);
  }
  bool sees_all_of_beginning(const Found& found) const;  // behind a look
  std::set<std::string> beside_beginning(const std::vector<catalog::FoundVersion>& found) const;
  bool has_two_names(const std::vector<catalog::FoundVersion>& found) const;
  const catalog::FoundVersion* newest_of(const Found& found, const File& file, const std::set<std::string>& beside) const;
  const catalog::FoundVersion* last_of(const Found& found, const File& file, const std::function<bool(const layout::Version&)>& is_meant) const;
  Result<std::optional<catalog::FoundVersion>> find_in_pool(const File& file, uint32_t number_of_own = 0);
  Result<std::optional<layout::Manifest>> in_pool(const File& file, uint32_t number_of_own = 0);
  std::string why_not_newest(const Found& found, const File& file, const checkpoint::PlainFiles::Number& shown) const;
  Status restore(const File& file, const layout::Manifest& manifest);
  void note_opened(const File& file);  // under its lock
  Status restore_newest(const File& file, layout::Manifest manifest);
  bool is_put_back(const std::string& path);
  bool may_have_given_way(const File& file);
  Status remove_what_gave_way(const File& file);
  std::set<std::string> removed_unseen;  // by this process, of before its attempt: the second time it is not there
  bool may_be_unseen(const std::string& directory, const checkpoint::PlainFiles::Shown& plain, checkpoint::DirectoryMark mark) const;
  Result<std::set<std::string>> directories_seen();
  bool may_have_unseen_directories() const;
  checkpoint::DirectoryMark mark_of(const std::string& directory) const;
  Result<bool> is_outdated_at_its_path(const std::string& path, std::optional<uint32_t> dropped, bool asks_anew = true);
  void learn_of_removals(const std::optional<File>& file = {});  // of all
  Result<Sight> look_locked(const File& file, bool fetches = true);
  Result<Sight> look_for_file(const File& file, bool fetches);
  Status check_none_is_missed(const File& file, const std::optional<layout::Manifest>& found) const;
  bool is_no_file(const std::string& path) const;
  Result<Sight> look_to_write(const File& file, int flags, Listed& here);
  Result<catalog::Descriptor> open_seen(const File& file, Sight sight);
  // What an open is to write: a file that others have open, or a new one.
  struct Beginning {
    LocalName name;
    bool joins = false;                 // others have it open, or had
    std::optional<LocalName> newest{};  // as it was seen
    std::string half{};                 // a copy of that, where it is updated; it lies in no state yet
    std::string copied_from{};          // here, or at the user's path
    checkpoint::Content content{};      // of that
    bool may_stay_so = false;           // the program may only read it
    bool is_noted = true;               // notes may be there of a version of that name, which came to nothing
    std::optional<mode_t> mode{};       // of what it is written over: it is the same file to the program
  };
  Result<Beginning> see(const File& file, int flags);
  Result<Beginning> see_in(Listed& here, const File& file, int flags);
  Status copy_last(Beginning& begun, const File& file, Sight sight);
  bool is_overtaken(Beginning& begun) const;
  Status put_in_place(const Beginning& begun, mode_t mode);
  Result<std::optional<Beginning>> begin(const File& file, int flags, mode_t mode, bool has_precedence);
  Status check_alone(const File& file, const LocalName& name);
  Status take_part_in(const LocalName& name);
  int open_written(const LocalName& name, int flags, bool joins);
  std::chrono::milliseconds patience() const { return std::chrono::milliseconds(settings.lock_patience_ms); }
  Result<LocalName> next_name(const File& file, bool written_anew, const Listed& here) const;
  // `before`: the path of another file that the pool has in its place.
  Result<LocalName> next_name_in_pool(const File& file, bool written_anew, std::string* before = nullptr);
  // Of a file that ranks write together: it is not begun where another one has its place.
  Result<LocalName> next_name_together(const File& file, bool written_anew);
  Result<Together> begin_together_now(const File& file, int flags, mode_t mode, const Settings& settings);
  Status note_together(const LocalName& name) const;
  Status check_not_overtaken(const LocalName& name);
  struct InPool {
    layout::Version version;
    bool is_untouched = false;  // SharedFiles
  };
  Result<std::vector<InPool>> begun_in_pool(const File& file);
  // Of a file that one rank writes by itself. Where others may have written it on the nodes these count as well.
  Result<LocalName> next_name_of(const File& file, bool written_anew, const Listed& here) {
    return is_of_all(file) ? next_name_in_pool(file, written_anew) : next_name(file, written_anew, here);
  }
  LocalName anew(LocalName name, const Listed& here) const;
  void count_closes_of(const std::string& plain, LocalName& name) const;
  // A checkpoint has one file in each place. The one that comes second is not protected, and its protector finds a note that says why.
  std::optional<LocalName> before_in_its_place(const LocalName& name, const Listed& here, const std::string& except = "") const;
  static std::string why_second(uint64_t step, const std::string& before);
  Status refuse_second(const LocalName& name, const Listed& here, const std::string& except = "") const;
  std::string file_of(const std::string& local_path) const;
  uint32_t writers() const { return patterns.are_rolled() ? ranks : 0; }
  void begins(uint64_t step) const;
  Status roll(uint64_t step, const checkpoint::OfRank& own, const std::vector<LocalName>& listed) const;
  checkpoint::OfRank written_by_rank() const;
  Result<std::optional<LocalName>> last_seen(const File& file);
  std::optional<layout::Version> newest_unread(const File& file);
  Status hide(const File& file, LocalName name);
  Status close_file(const LocalName& name, bool may_be_copy = true);
  bool may_write_nothing(int flags) const { return (flags & O_ACCMODE) == O_RDWR && !(flags & O_TRUNC) && run.teams == 1; }
  Status tell_of_number(const LocalName& name);
  Status put_on_all(checkpoint::State state, const std::string& name);
  Status move_to_closed(const LocalName& name);
  Status take_in_place(const std::string& plain, const File& to, const std::string& half);
  Status link_to_closed(const LocalName& name, const std::string& from) const;
  bool open_elsewhere(const LocalName& name) const;
  void is_written_by(int fd, const LocalName& name, bool may_be_copy = true);
  // Of a file that was open to write when its directory got its name (checkpoints_renamed.cpp).
  bool is_renamed_open(const Written& one) const { return is_own(one) && renamed_open.contains(one.name.file); }
  Status take_closed(const LocalName& name);
  Status refuse_renamed_open(const File& file, const Listed& here) const;
  void wait_for_coming(const File& file);
  Status wait_to_see(const File& file);
  Status wait_to_write(const File& file);
  // Until other nodes have protected what they have closed of it just now, above that number. The mutex is not held.
  Status await_protection(const File& file, uint32_t known);
  bool has_protected(const File& file, uint32_t number);
  const std::string& who();
  bool is_own(const Written& one) const { return one.process == ::getpid(); }
  std::string hand_over_note() { return fmt::format("{}/handed.{}", files.directory(), who()); }
  void close_handed_over();
  std::vector<LocalName> names_handed_over();
  std::optional<LocalName> name_of_local(const std::string& path) const;  // of the kernel; of a file that is not protected yet
  LocalName name_now(const LocalName& name) const;
  void note_failed(const LocalName& known, int error);
  void forget_failed(const LocalName& name);
  Status say_failed(const LocalName& name);
  void rename_reason(const LocalName& from, const LocalName& to);
  Status take_reason(const std::string& from, const LocalName& to) const;

  // Of a file that is written on the nodes' targets; see Checkpoints::open_shared.
  bool any_shared() const;
  Status begin_looked_at_anew(const File& file, std::vector<checkpoint::SharedFile>& found, const checkpoint::SharedFiles& all);
  Result<const checkpoint::SharedFile*> one_to_join(const std::vector<checkpoint::SharedFile>& found, int flags,
                                                    const checkpoint::SharedFiles& all) const;
  Status check_is_last(const Shared& shared) const;
  Result<Shared> open_shared_now(const File& file, int flags, mode_t mode, By by);
  Result<checkpoint::SharedFile> make_shared(const File& file, const checkpoint::SharedFile* written, int flags, mode_t mode,
                                             const checkpoint::SharedFiles& all);
  Status take_part(const Shared& shared, int flags, By by);
  Status begins_shared(const LocalName& name, bool is_first);
  Result<LocalName> begins_to_write(const Shared& shared, bool is_known, By by, bool anew);
  Status no_longer_looked_at(checkpoint::SharedFile& one, By by, bool anew, const checkpoint::SharedFiles& all);
  struct OpenShared;
  void goes_by(OpenShared& one, const LocalName& name);
  Status writes_shared(const LocalName& name, bool is_first);
  void give_up_untouched(const LocalName& name) const;
  Result<bool> remove_shared(const File& file);
  void forget_shared(const checkpoint::SharedFiles& all, const std::vector<checkpoint::SharedFile>& files_now) const;
  Status take_over_shared(const std::string& plain, const File& to);
  Status take_here(const std::string& plain, const File& to);
  Result<uint64_t> size_of(const Shared& shared) const;

  // Of a redundant job (checkpoints_twins.cpp). Null: the job is there once, or this process is no replica.
  redundant::Replica* replica() const { return run.teams < 2 ? nullptr : given_replica ? given_replica : redundant::Replica::now(); }
  Status check_replica(const std::string& path) const;
  struct Counted {
    std::string node;
    LocalName name;
  };
  std::optional<Counted> counted_before(const LocalName& own);
  Result<Counted> count(const std::string& copy, const LocalName& own, bool again);
  std::string path_then(const File& file, uint32_t number);
  // Of a team that goes on from a checkpoint of this attempt, until it joins: that is all that there is.
  bool resumes_now() const {
    redundant::Replica* const own = resumes ? replica() : nullptr;
    return own && own->is_joining();
  }
  bool is_resumed(const layout::Version& version) const {
    return version.run == run.id && !version.roll && version.attempt == resumes->attempt && version.step == resumes->step;
  }
  Result<Sight> look_at_resumed(const File& file);
  static Status still_written(const std::string& plain);
  void stand_back(const std::string& copy, const Counted& counted, bool was_long_ago);

  const Settings settings;
  const checkpoint::Patterns patterns;
  const checkpoint::Run run;
  const uint32_t rank;     // of this process
  const uint32_t ranks;    // of the job
  const std::string node;  // its address
  const checkpoint::LocalFiles files;
  const checkpoint::Parts parts;
  const checkpoint::Untouched untouched;
  checkpoint::RankNote rank_note{files};
  checkpoint::PlainFiles plain;
  redundant::Replica* const given_replica;
  const std::optional<checkpoint::Run::From> resumes;
  const std::string given_process;
  pid_t who_began = -1;  // the process whose name in "openers" that is
  std::string who_is;
  std::mutex mutex;
  std::mutex directory_mutex;
  Directory directory;  // under that
  catalog::VersionList versions;
  std::map<int, Written> written;                                     // by number; below zero those whose numbers are being closed
  std::map<std::string, std::pair<uint64_t, uint64_t>> renamed_open;  // by path: the device and the inode
  std::map<std::string, uint32_t> awaited_in_vain;                    // what other nodes have closed and do not protect
  std::set<std::string> second;                                       // paths of what had another file in its place when it was begun
  bool has_failed_writes = false;                                     // some file has a note that says so
  std::map<std::pair<std::string, uint32_t>, std::string> unsaid;     // by path and number: why, of what could have no note
  std::set<std::string> together;                                     // paths of files that ranks have written together
  std::vector<LocalName> completed_together;                          // those of them that this process has begun
  std::set<uint64_t> steps_together;                                  // of those that another process has
  struct OpenShared {
    LocalName name;
    pid_t process;
    int times = 0;
    int handles = 0;  // of these
    bool failed = false;
    bool only_reads = false;   // so far, what began as a copy
    bool is_noted = false;     // ... as about to write
    bool has_written = false;  // so far, whatever it began as
  };
  std::map<std::string, OpenShared> open_shared;  // by their ids
  std::set<uint32_t> opened_parts;                // of patterns without {rank}, whose files were opened here
};

}  // namespace holdfast::frontend::posix
