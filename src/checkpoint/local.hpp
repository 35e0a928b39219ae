// The files of one attempt in a node's own directory: <directory>/.checkpoints/<run>/<number.id of attempt>/<state>/<name>. A file's state is the directory
// that it lies in, so that a state changes by one rename. Whoever is started anew, or looks from elsewhere, lists the names.
#pragma once
#include <sys/types.h>

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.hpp"
#include "catalog/environment.hpp"
#include "checkpoint/open_directories.hpp"
#include "checkpoint/run.hpp"
#include "checkpoint/turns.hpp"
#include "layout/manifest.hpp"

namespace holdfast::checkpoint {

inline constexpr const char* local_directory = ".checkpoints";
// Below the node's directory; in it the states are directories.
std::string directory_of_attempt(const std::string& run, const layout::Attempt& attempt);

inline constexpr const char* openers_directory = "openers";      // beside the states: who has a file open to write (LocalFiles::opened)
inline constexpr const char* ranks_directory = "ranks";          // beside the states: which ranks have ended by themselves (ended.hpp)
inline constexpr const char* untouched_directory = "untouched";  // beside the states: how copies were when they were made (untouched.hpp)
inline constexpr const char* unread_directory = "unread";        // beside the states: what ranks could not read (unread.hpp)
inline constexpr const char* why_begins = "why.";                // of the note beside a failed file: no file of a state has a name that begins so
inline constexpr uint64_t most_why_bytes = 4096;
inline constexpr const char* why_begun_anew = "its node was started anew before it was protected, and may have lost a part of it";
inline constexpr const char* why_unsaid =
    "its node's disk is full, or cannot be written";  // says a note that is empty: there was room for its name alone
// What such a note says.
std::string why_in(std::string note);
inline constexpr std::string_view team_begins = "team.";            // beside the states: what a team of a redundant job has not closed yet
inline constexpr std::string_view scratch_begins = "coming.";       // beside the states: LocalFiles::scratch
inline constexpr const char* turns_file = "turns";                  // beside the states: LocalFiles::take_turn
inline constexpr std::string_view described_begins = "described.";  // ... files of a version's size without its content
inline constexpr std::string_view seen_begins = "seen.";            // ... the same of one that is being written on the nodes' targets
inline constexpr const char* started_anew = "anew";                 // beside the states, where names may have been lost with the power

enum class State : uint8_t {
  writing,     // a program has it open, or died with it open
  together,    // an empty file: several ranks write the file on the nodes' targets (together.hpp, shared.hpp), or died with it open
  closed,      // the local copy is what the program wrote
  protecting,  // it is being coded
  kept,        // "protected": a version is in the pool
  twin,        // of a redundant job: another replica's copy on another node is the one that counts
  restored,    // made from a version of the checkpoint that the attempt began with
  failed,      // could not be protected; the reason lies beside it
  torn,        // its writer died before it closed it
  hidden,      // an empty file: the program has removed the file of that name and all older ones
  dropped,     // an empty file: this version gave way to newer checkpoints, and its number is not given again
  evicted,     // an empty file: a version is in the pool, and the local copy gave way to newer ones on a disk that was nearly full
};
inline constexpr State all_states[] = {State::writing,  State::together, State::closed, State::protecting, State::kept,    State::twin,
                                       State::restored, State::failed,   State::torn,   State::hidden,     State::dropped, State::evicted};
const char* state_name(State state);
// Few attempts have any file of these. Their directories are made when they are needed, as each costs every open that lists them.
inline bool is_rare(State state) {
  return state == State::together || state == State::twin || state == State::restored || state == State::failed || state == State::torn ||
         state == State::hidden || state == State::evicted;
}
// Nothing more is to come of it: it is protected, or was made from what is, or is only remembered.
inline bool is_settled(State state) {
  return state == State::kept || state == State::twin || state == State::restored || state == State::hidden || state == State::dropped ||
         state == State::evicted;
}
// By a program, in this attempt, whatever has become of it: not made from a version, and no note.
inline bool is_written_here(State state) { return state != State::restored && state != State::hidden && state != State::dropped; }

// A file's name there. `number` is 0 of what was restored, 1 of what was first written, and one more each time it is written anew. `written` counts
// files that are written on this node. `turn` is one more with each that its rank writes of another step than its last one. `writers` and `writer` as
// in layout::Version; with 0 `writers` a rank that writes another's file is one more than its number. A roll's content are the names that it lists.
struct LocalName {
  enum Kind : uint8_t { of_user, roll_of_rank, roll_of_all };
  uint64_t step = 0;
  uint32_t rank = 0, ranks = 1, number = 1;
  std::string file;  // the user's path
  uint64_t written = 0;
  uint32_t turn = 0;
  uint32_t writers = 0, writer = 0;
  Kind kind = of_user;
  uint32_t times = 0, fewest = 0;  // layout::Version
  bool operator==(const LocalName&) const = default;
  bool is_single() const { return ranks == 0 && writers == 0; }  // layout::Version
  layout::Version version_in(const Run& run) const {
    return {run.id, run.attempt, step, rank, ranks, number, file, written, turn, writers, writer, {}, {}, times, fewest};
  }
};
// In the patterns that number a rank's files on its own node.
inline bool is_of_another_rank(const LocalName& name) { return name.writers == 0 && name.writer != 0; }
// One component, "30.2of6.1.17.3.1~|home|me|ck.30.2", or "30.0of0.1.17.3.1.w2of6~|home|me|30|part". Kind::invalid, with ENAMETOOLONG, where the path is too long for one.
Result<std::string> encode(const LocalName& name);
std::optional<LocalName> decode_local_name(const std::string& text);
// How the names in "openers" of all processes begin that have this file open.
std::string opener_begins(const LocalName& name);
// Whether in that state it is a copy to which nobody has written yet (untouched.hpp). `noted`: how the names of such copies begin.
inline bool may_be_untouched(State state) { return state == State::writing || state == State::closed; }
bool is_untouched(State state, const LocalName& name, const std::set<std::string>& noted);

struct LocalFile {
  State state;
  LocalName name;
  bool is_untouched = false;  // a copy of the version before it, to which nobody may ever write (untouched.hpp)
  bool is_overtaken = false;  // a note says that another node has written it since
  uint32_t of_version() const { return name.number - is_untouched; }  // no version is later that a program here has seen
};

// Of one attempt on one node, by its directory as this machine has it. Each team of a redundant job has what it writes apart, until it is known whose
// copy counts: nobody else sees that.
class LocalFiles {
 public:
  static constexpr int no_team = -1;
  LocalFiles(const std::string& node_directory, const std::string& run, const layout::Attempt& attempt, int team = no_team);

  const std::string& directory() const { return directory_; }
  // For a process that lists them at each of its opens.
  LocalFiles with_open_directories() const;
  // What teams have not finished, when nobody writes any more.
  void forget_teams() const;
  // Of a team that was started again: what it has written as it was written then. It may read that, whatever has become of the file since. Of each rank
  // the last ones are kept.
  Status keep_past(const std::string& copy, const LocalName& name) const;
  std::string past(const std::string& file, uint32_t number) const;  // its path; empty where there is none
  void forget_past() const;
  // The directories, but for those of rare states, where they are missing. Where the note of note_boot() is there, all have been made before it.
  Status make() const;
  Status make_all() const;  // the same, whatever there is
  // A new file of a state, for a program: a descriptor, or -1 and errno.
  int make_for_program(const std::string& path, mode_t mode) const;
  // True where the node was started anew since note_boot(): what programs wrote before may be there in part only, for they do not sync it. It stays true
  // until that is called again, so that nothing of before is passed over if who deals with it dies.
  Result<bool> was_started_anew() const;
  // Remembers there since when the node is up.
  Status note_boot() const;
  std::string path(State state, const LocalName& name) const;
  std::string directory_of(State state) const;
  // A new name for what is not whole yet: it lies in no state, and is never seen.
  std::string scratch() const;
  // The same, from the node's directory on, of a name as encode() gives it.
  std::string on_its_node(State state, const std::string& name) const;
  std::vector<LocalName> list(State state) const;
  Status move(const LocalName& name, State from, State to) const;
  // `put` makes a name in that state, and fails with Kind::not_found where there is no directory yet: then it is made, and `put` called again.
  Status put_into(State state, const std::function<Status()>& put) const;
  Status say_why(const LocalName& name, const std::string& why) const;  // beside a failed one
  std::string why(const LocalName& name) const;                         // empty where nothing was said
  void forget_why(const LocalName& name) const;
  Status hide(const LocalName& name) const;
  // The copy of one that is protected, or is on its way elsewhere, goes, and its name stays known. Who has it open reads on.
  Status evict(const LocalName& name, State from = State::kept) const;
  // A version that could not be read, by its id, and why.
  Status note_unread(const std::string& file_id, const std::string& why) const;

  // Who has a file of "writing" open to write, each process by a name of its own. One that ends without a word leaves its name, and the file is not
  // complete then, whoever closes it later.
  Status opened(const LocalName& name, const std::string& who) const;
  void no_longer(const LocalName& name, const std::string& who) const;
  bool is_open_to_others(const LocalName& name, const std::string& who) const;
  // Alone among this node's processes, until it goes: between what is seen of a file and what is made of that no other one begins or closes
  // it. Kind::busy where another one has been at it for longer than `patience`. Where the file system has no locks there are no turns.
  Result<Turns::Turn> take_turn(const std::string& file, std::chrono::milliseconds patience) const;
  // What turns keep open is not any more: it may have the last number that the process may have. A turn ends so.
  void let_go_of_turns() const { turns_->close(); }
  // Somebody goes on with what those have left who are dead by now.
  void forget_dead(const LocalName& name) const;

  // All files at once: those that are there, those that were removed, and those that gave way to newer checkpoints.
  struct Seen {
    std::set<std::string> there;
    std::map<std::string, uint32_t> removed, dropped;  // with the number that each had
  };
  // The files of all states at one time, for who asks more than one question. Each listing costs as many calls of the system as there are states.
  class Listed {
   public:
    // The newest that a program is to see of the user's file; nothing where there is none, or it was removed.
    std::optional<LocalFile> newest(const std::string& file) const;
    // The number that it had where it was removed, and nothing newer has been written; nothing where it was not.
    std::optional<uint32_t> hidden_number(const std::string& file) const;
    // The number of the last of its versions here that gave way to newer checkpoints; nothing where that is not known, or something newer is here.
    std::optional<uint32_t> dropped_number(const std::string& file) const;
    // The number of the version that is to be seen where its copy gave way: it is in the pool. Nothing where what is to be seen is here, or was removed.
    std::optional<uint32_t> evicted_number(const std::string& file) const;
    // The highest number that the file has had here, hidden and failed ones among them.
    uint32_t last_number(const std::string& file) const;
    // The highest place in the order of writing that any file has had here.
    uint64_t last_written() const;
    uint64_t newest_step() const;  // of all that is here
    // What was written here last of the files of that rank; nothing where that is not known.
    std::optional<LocalName> last_of_rank(uint32_t rank, uint32_t writer) const;
    // Whether a version of the file with a lower number than that has this place in the order.
    bool has_of(const std::string& file, uint32_t before_number, uint64_t written) const;
    // Another file with the place of this one in its checkpoint, `except` that path: written before it in this attempt, and there still.
    std::optional<LocalName> before_in_its_place(const LocalName& name, const std::string& except = "") const;
    // The highest step of those of its versions here with a lower number than that.
    std::optional<uint64_t> last_step(const std::string& file, uint32_t before_number = ~0u) const;
    Seen see() const;
    // Whether a note says something of a version of that name: why it failed, or how it began as a copy.
    bool is_noted(const LocalName& name) const;

   private:
    friend class LocalFiles;
    bool is_followed(const LocalFile& copy) const;
    uint32_t last_evicted(const std::string& file) const;  // 0: none
    std::map<std::string, uint32_t> dropped() const;
    bool has_failed_before(const LocalFile& file) const;  // ... a version that gave way
    std::vector<LocalFile> all_;                          // in the order of the states
    std::vector<std::string> notes_;                      // by their names
  };
  Listed listed() const;
  // The same of a listing for this question alone.
  std::optional<LocalFile> newest(const std::string& file) const { return listed().newest(file); }
  std::optional<uint32_t> hidden_number(const std::string& file) const { return listed().hidden_number(file); }
  std::optional<uint32_t> evicted_number(const std::string& file) const { return listed().evicted_number(file); }
  std::optional<uint32_t> dropped_number(const std::string& file) const { return listed().dropped_number(file); }
  bool is_hidden(const std::string& file) const { return hidden_number(file).has_value(); }
  uint32_t last_number(const std::string& file) const { return listed().last_number(file); }
  uint64_t last_written() const { return listed().last_written(); }
  std::optional<LocalName> last_of_rank(uint32_t rank, uint32_t writer) const { return listed().last_of_rank(rank, writer); }
  std::optional<uint64_t> last_step(const std::string& file) const { return listed().last_step(file); }

  Seen see() const { return listed().see(); }
  // What was removed before that one was written is no more to be remembered.
  void forget_hidden(const std::string& file, uint32_t before_number) const;
  // Of what was dropped those files are remembered that may be written anew: of each rank the last ones, where nothing newer has their names.
  void forget_dropped() const;

 private:
  std::vector<std::vector<std::string>> names_in(const std::vector<std::string>& directories) const;
  std::vector<std::string> openers(const LocalName& name) const;
  std::string opener(const LocalName& name, const std::string& who) const;
  std::string boot_note() const { return directory_ + "/boot"; }
  bool has_files() const;
  std::string below_attempt(State state) const;
  std::string path_of_why(const LocalName& name) const;

  std::string below_, directory_;          // from the node's directory on, and from the root
  std::string team_;                       // below that, with a slash: what this team writes; empty where there are none
  std::shared_ptr<OpenDirectories> open_;  // null: none is kept open
  std::shared_ptr<Turns> turns_;
};

// A process and no other that gets its number: it stays the same over an exec.
std::string process_name(int process);
std::string this_process();
bool is_running(const std::string& process);  // in this namespace of processes

// A descriptor for the program, by the kernel's call: -1 and errno.
int open_for_program(const std::string& path, int flags, mode_t mode);
// What a file holds, for who compares it with another one's.
struct Content {
  uint64_t bytes = 0, sum = 0;
};
Result<Content> content_of(const std::string& path);
// Whether somebody has it open to write, by any descriptor of any process of this machine. Mapped counts as open.
bool has_writers(const std::string& path);
// A second name of the file `from`. Kind::exists where there is something at `to`.
Status link_file(const std::string& from, const std::string& to);
// The content of `from` to where the descriptor stands.
Status copy_into(const std::string& from, int to, Content* content = nullptr);
// The content of `from`, with its permissions, into the new file `to`; Kind::exists where there is one. With `content`, which is of what was copied, it has its
// times as well: who has not written to it has not changed them.
Status copy_file(const std::string& from, const std::string& to, Content* content = nullptr);

}  // namespace holdfast::checkpoint
