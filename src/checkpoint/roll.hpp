// Which files belong to a checkpoint, where their names do not say how many there are (patterns with wildcards, --complete): a roll lists them. It is a version
// without content, of the same step, so that it is kept, dropped and made anew as the files are. docs/decisions/0040
//
// A rank's roll comes when it has begun another checkpoint, or the program says that it has written all (holdfast.h). One of all ranks comes with a file that
// completes the checkpoint, and when the job has ended well.
#pragma once
#include <string>
#include <vector>

#include "base/config.hpp"
#include "base/status.hpp"
#include "checkpoint/local.hpp"
#include "checkpoint/pattern.hpp"
#include "checkpoint/survey.hpp"
#include "layout/manifest.hpp"

namespace holdfast::checkpoint {

// --- of a node's own directory

// What a rank has written there, by step.
struct OfRank {
  std::map<uint64_t, std::vector<LocalName>> files;  // the newest of each file, but of those that it has removed
  std::map<uint64_t, LocalName> rolls;               // the last of each
};
OfRank of_rank(const LocalFiles& files, uint32_t rank);
// The rank's roll of the step that `of` says, to be protected as what it has closed. Nothing is done where the last one lists the same.
Status roll(const LocalFiles& files, const OfRank& rank, const LocalName& of, const std::vector<LocalName>& listed);

// --- of a pool

// By a protector, for the file that completes its checkpoint: of its rank, or of all. Kind::lost where a node of the run does not answer that may have
// ranks, for nobody knows then what it has.
Status roll_completed(const LocalFiles& files, const LocalName& completing, bool of_all, const Run& run, const Settings& settings);
// When all ranks have ended well: the checkpoints of the attempt that are not rolled yet. What could not be, as sentences. `unknown`: nodes whose protectors
// have died for good. Nobody would know if they had lost power since.
std::vector<Status> roll_ended(const Run& run, const Settings& settings, const std::vector<std::string>& unknown);

// --- versions

// As it is protected: what a roll lists is in its version. `content` is that of a roll.
Result<layout::Version> version_of(const LocalName& name, const Run& run, const Patterns& patterns, const std::string& content);
LocalName name_of(const layout::Version& version);

}  // namespace holdfast::checkpoint
