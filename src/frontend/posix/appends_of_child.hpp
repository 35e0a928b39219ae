// A program that a replica has started appends to a file that teams share. Each team's does so, and the file has the bytes once.
#pragma once
#include <memory>
#include <span>
#include <string>

#include "base/file_layer.hpp"

namespace holdfast::frontend::posix {

// Whether this process is such a one, and has somebody to ask.
bool is_asked_before_appends();
// Where the bytes are, as append() of `file` says. `path`: the same in all teams. For one thread at a time, and not in the child of a fork that has come into
// it. Never returns in a process of a team that was lost.
Result<Extent> append_as_child(FileLayer& file, const std::string& path, std::span<const ByteView> pieces);

}  // namespace holdfast::frontend::posix
