// A checkpoint's file that was renamed to another one's name. Its local file has two names for a while, and that is all that says so: the new name's version
// takes over the units that the nodes have of the old one. docs/decisions/0082
#pragma once
#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

#include "checkpoint/protect.hpp"

namespace holdfast::checkpoint {

// Other names of the local file at `path`, in the order of these states. A file that goes on to its next state meanwhile is seen in one of them.
std::vector<LocalFile> other_names(const LocalFiles& files, const std::string& path, std::initializer_list<State> states);
// The name under which the local file at `path` is protected, too, or is just being coded. Nothing where it has no such name.
std::optional<LocalFile> other_name(const LocalFiles& files, const std::string& path);

// The local file at `path` as a version of node `own`, over the units of the version that `other` has. Not ok where that one
// cannot serve: it is stored in a pack, by another scheme, or not whole. Then the file is to be coded. Nothing is left of it but what counts for others.
Result<ProtectedNow> protect_moved(const std::string& path, const layout::Version& version, const LocalFile& other, const std::string& own,
                                   const Run& run, const std::vector<catalog::FoundVersion>& found, const Settings& settings);

}  // namespace holdfast::checkpoint
