// What `run` says and does about files that are protected one by one, and are of no checkpoint.
#pragma once
#include <string>

#include "base/config.hpp"
#include "base/status.hpp"
#include "checkpoint/pattern.hpp"
#include "checkpoint/run.hpp"
#include "checkpoint/survey.hpp"

namespace holdfast::cli {

// What the program has removed of them goes from the nodes. Nothing newer would ever make it give way.
void drop_removed_singles(const checkpoint::Survey& survey, const checkpoint::Run& run, const Settings& settings);

// Where the last run has files that these patterns mean, and of the other kind: each would see a part of them, and drain a part.
Status check_are_of_one_kind(const checkpoint::Survey& survey, const checkpoint::Patterns& patterns);
// Some file of a checkpoint; of files that are protected one by one any of them.
bool has_match(const checkpoint::Checkpoint& one, const checkpoint::Patterns& patterns);

// "no checkpoint is whole yet; attempt 2 begins from the start".
std::string why_from_start(const checkpoint::Survey& survey, const checkpoint::Run& run, const Settings& settings);

// "3 files that ... are", for what is said of all of them.
std::string are_singles(const checkpoint::Checkpoint& singles);
// When an attempt begins: what the program finds older than it has left it, or not at all.
void say_losses_of_singles(const checkpoint::Survey& survey, const checkpoint::Run& run, const Settings& settings);
// When the program has ended well: what it has written last of some of them is not on the nodes. False where all is.
bool say_unprotected_singles(const checkpoint::Survey& survey, const checkpoint::Run& run);

}  // namespace holdfast::cli
