// What `run` says and does about files that are protected one by one, and are of no checkpoint.
#pragma once
#include <string>

#include "base/config.hpp"
#include "checkpoint/run.hpp"
#include "checkpoint/survey.hpp"

namespace holdfast::cli {

// What the program has removed of them goes from the nodes. Nothing newer would ever make it give way.
void drop_removed_singles(const checkpoint::Survey& survey, const checkpoint::Run& run, const Settings& settings);

// "3 files that ... are", for what is said of all of them.
std::string are_singles(const checkpoint::Checkpoint& singles);
// When an attempt begins: what the program finds older than it has left it, or not at all.
void say_losses_of_singles(const checkpoint::Survey& survey, const checkpoint::Run& run, const Settings& settings);
// When the program has ended well: what it has written last of some of them is not on the nodes. False where all is.
bool say_unprotected_singles(const checkpoint::Survey& survey, const checkpoint::Run& run);

}  // namespace holdfast::cli
