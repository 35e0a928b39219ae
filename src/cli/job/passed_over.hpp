// Checkpoints that are not gone on from, and what `run` says of them.
#pragma once
#include <set>

#include "base/config.hpp"
#include "checkpoint/choice.hpp"
#include "checkpoint/run.hpp"
#include "checkpoint/survey.hpp"

namespace holdfast::cli {

// When an attempt begins: those after what it begins with that are whole but for an update which came to no end, or that the program has removed.
void say_passed_over(const checkpoint::Survey& survey, const checkpoint::Run& run, const checkpoint::Age& begun);

// What an attempt begins with, where its plain files are not those that a drain has left: somebody may have meant these to be read, or none.
void say_what_has_changed(const checkpoint::Survey& survey, const checkpoint::Run& run);

// When the program has ended well: what it has left natively, and is in no checkpoint that is whole. `said`: steps of which more is said.
void say_what_is_newer(const checkpoint::Survey& survey, const checkpoint::Run& run, const checkpoint::Checkpoint& newest,
                       const std::set<uint64_t>& said, const Settings& settings);

}  // namespace holdfast::cli
