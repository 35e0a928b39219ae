// Between two attempts of a run: which one comes, and what it begins with; and what goes when newer checkpoints are whole.
#pragma once
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/config.hpp"
#include "base/status.hpp"
#include "checkpoint/choice.hpp"
#include "checkpoint/pattern.hpp"
#include "checkpoint/run.hpp"
#include "checkpoint/survey.hpp"
#include "target/target.hpp"

namespace holdfast::checkpoint {

// The highest number and the latest id of any attempt of the run of which something is left. An empty directory on one node will do. Number 0:
// none. Of an attempt that nodes alone know which are lost now nothing is known: its number may be given again, its id is its own.
layout::Attempt last_attempt(const Survey& survey, const std::string& run);
// The one after these and after `last_begun`. `drawn`: by new_attempt_id(). Its time gives way where a clock is late: who begins with what another one has
// written is later than that.
layout::Attempt next_attempt(const Survey& survey, const std::string& run, const layout::Attempt& last_begun, uint64_t drawn);

// The latest run of which a checkpoint is there, on the nodes or plain. Empty: none.
std::string latest_run(const Survey& survey);

struct Beginning {
  std::optional<Run::From> from;
  Age age;  // of attempt 0: nothing
};
// The newest whole one: of the versions, or of the plain files where those are newer than what the nodes still have.
Beginning beginning_of(const Survey& survey, const std::string& run);

// The name of the program whose checkpoints a run has, on its nodes: the next attempt may be of another program. Empty where no node of these knows.
void note_program(const std::string& run, const std::string& program, const std::vector<std::string>& nodes, uint64_t deadline_ms);
std::string noted_program(const std::string& run, const std::vector<std::string>& nodes, uint64_t deadline_ms);

// The program of that attempt has ended well, and `run` looks at what there is: what a process writes from here on would be in no checkpoint.
void note_over(const Run& run, uint64_t deadline_ms);
bool is_over(const Run& run, const std::string& own);  // whether node `own` (an address) has that note
// What it has closed of its last checkpoint is all that it meant to write (half_written.hpp). `is_plain`: that stands at its paths.
void note_ended_well(const Run& run, bool is_plain, uint64_t deadline_ms);
bool is_all_plain(const Run& run, const std::string& own);
// What the attempts of a run have left on a node, in the run's directory there. What is noted beside them stays.
Status remove_attempts(target::Target& target, const std::string& directory);
// What such a note says by its name, beside the run's attempts; nothing of any other name.
std::optional<layout::Attempt> attempt_ended_well(std::string_view name);

// Where that is a drained one: its nodes know which plain files it has, and those of older drains are not seen. What cannot note it asks the others.
void note_beginning(const Survey& survey, const Run& run, uint64_t deadline_ms);

// Where the files of the checkpoint that this attempt began with are, there is a directory, also on a node that has not seen it yet.
void make_directories(const Run& run, const Patterns& patterns);

// The newest of those later than `begun`, or of `later_run`, of which every file has a version, and that cannot be read. More nodes are lost than
// the scheme bears. Null where there is none. `later_run` may be empty.
const Checkpoint* unreadable_after(const Survey& survey, const std::string& run, const Age& begun, const std::string& later_run);

// Whether ranks of the attempt may be on that node (an address), which does not answer. Not where each of them has written something on one that answers, or has a file of
// `newest` of its own, or a roll, and all of these were written on other nodes. A rank stays on its node for an attempt.
bool may_have_ranks(const std::string& node, const Survey& survey, const Run& run, const Checkpoint& newest, const Patterns& patterns);

// While an attempt runs: what can be seen of the checkpoint that it has begun with on the nodes. Nothing where it has begun with none there. The first one sees what its
// slot held before as well, and its files before their last close.
std::optional<Checkpoint> beginning_and_older(const std::vector<catalog::FoundVersion>& found, const Run& run);
std::optional<Checkpoint> beginning_among(const std::vector<catalog::FoundVersion>& found, const Run& run);
bool has_all_of_beginning(const std::vector<catalog::FoundVersion>& found, const Run& run);
// It has a whole checkpoint of its own: what it began with may have been dropped. Not where files are protected one by one.
bool is_past_beginning(const std::vector<catalog::FoundVersion>& found, const Run& run);

inline constexpr const char* gave_way = "gave-way";  // beside an attempt's states, on its nodes: an empty file
// Before versions go that are too old: where some are of what this attempt has begun with its nodes get a note. Who looks for a file of that, and sees neither all of
// it nor a later checkpoint that is whole, is told so that nothing was lost. A later one may just be written anew.
void note_giving_way(const std::vector<Protected>& old, const Run& run, const Settings& settings);
// Asked of node `own` (an address) first.
bool has_given_way(const Run& run, const std::string& own, const Settings& settings);

// A version that is too old goes from all nodes that answer, and then its local copy, with all that nodes have fetched of the file. Where the job is in the
// version's attempt still, the node that has written it remembers its name. The number must not be given again, for a node that does not answer may come back with this version.
// `stored_together`: one version, or all of a pack's (Surveyor::stores_of).
Status drop(std::span<const layout::Manifest> stored_together, const layout::Attempt& attempt_now, const Settings& settings);
inline Status drop(const layout::Manifest& manifest, const layout::Attempt& attempt_now, const Settings& settings) {
  return drop({&manifest, 1}, attempt_now, settings);
}

}  // namespace holdfast::checkpoint
