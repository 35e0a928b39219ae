// What a program has done in its attempt with a directory in which files lie that it does not see: a drain has left them there, for the user. An empty file in that directory
// says it, to all ranks. Who does the same at the same time is told apart by who has made, or renamed, that file.
#pragma once
#include <string>
#include <string_view>

#include "base/status.hpp"
#include "checkpoint/run.hpp"

namespace holdfast::checkpoint {

enum class DirectoryMark : uint8_t { none, made, removed };

// Whether a file of that name is such a mark, of any attempt.
bool is_directory_mark(std::string_view name);
// Of this attempt.
DirectoryMark directory_mark(const std::string& directory, const Run& run);
// Kind::exists where it has this mark already.
Status mark_directory(const std::string& directory, const Run& run, DirectoryMark mark);
// Of all attempts: none is at work.
void remove_marks(const std::string& directory);
// The directory holds nothing but marks: they go, for it is about to be removed. False where it holds anything else.
bool clear_of_marks(const std::string& directory);

}  // namespace holdfast::checkpoint
