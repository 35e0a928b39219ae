// What nodes keep of checkpoints beside their versions: local copies, and what attempts have left. What of it goes, and when.
#pragma once
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "base/config.hpp"
#include "checkpoint/run.hpp"
#include "checkpoint/survey.hpp"

namespace holdfast::checkpoint {

// These local files go from their nodes. Where the job is in a file's attempt still, its name is remembered there: see drop(). The nodes that could not
// remove one, by address.
std::set<std::string> drop_copies(const std::vector<LocalEntry>& entries, const layout::Attempt& attempt_now, const Settings& settings);

// Between attempts, on the nodes that answer: what no attempt from here on can need goes. Of those before `until` that are the copies that were made to
// be read, what was never finished, and copies of checkpoints that are whole. `begun`: of what the next one begins with; what failed before that goes too.
// Of torn files the names stay, for who asks what became of them. Of an attempt without any file, here or in a version, nothing stays on a node that knows of a
// later one. A process of it that lives still makes its directories anew.
void forget_unneeded(const Survey& survey, const std::string& run, const layout::Attempt& until, const Age& begun, const Settings& settings);

// A node's disk that has not `wanted_bytes` left: copies of protected files go, the oldest first, as long as that is so. Never those of the checkpoint that
// was written there last, nor of one that could not be read from the nodes now.
void make_room(const LocalFiles& files, const Run& run, uint64_t wanted_bytes, const std::vector<catalog::FoundVersion>& versions);
// What the files of that one's checkpoint take on the node.
uint64_t bytes_here(const LocalFiles& files, const LocalName& of);
bool has_room(const LocalFiles& files, uint64_t wanted_bytes);

// Whose version is being written, or was, by somebody who was killed then.
struct Unfinished {
  std::string run;
  layout::Attempt attempt;
  uint64_t step;
  std::string file = {};  // that is protected by itself: catalog::digits_of_path(); else empty
};
// What was written of those that are meant and never became versions, on the nodes that answer. Who writes one still fails.
void remove_unfinished(const std::vector<std::string>& nodes, const std::function<bool(const Unfinished& one)>& is_meant, uint64_t deadline_ms);

// All that these nodes know of a run of which there is neither a version nor a local file any more.
void forget_run(const std::string& run, const std::vector<std::string>& nodes, uint64_t deadline_ms);

}  // namespace holdfast::checkpoint
