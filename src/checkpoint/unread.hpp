// A checkpoint that is damaged beyond what its scheme bears looks whole to who lists names. A rank that cannot read a file of it leaves a note on its node
// (LocalFiles::note_unread). Before the next attempt begins these files are read: what can still not be read is passed over.
#pragma once
#include <set>
#include <string>

#include "base/config.hpp"
#include "base/status.hpp"
#include "checkpoint/survey.hpp"

namespace holdfast::checkpoint {

// Versions with a note, by their ids, that cannot be read now, every unit of them. Notes of those that can be go.
std::set<std::string> damaged_of(const Survey& survey, const Settings& settings);

// Before an attempt of that run, or of all where it is empty. What is damaged does not count as whole in the survey. `damaged` becomes what was found so.
Result<Survey> survey_to_begin(const std::string& run, const Settings& settings, std::set<std::string>& damaged);

// The first of its files that is damaged; null where none is.
const Protected* damaged_file(const Checkpoint& one, const std::set<std::string>& damaged);

}  // namespace holdfast::checkpoint
