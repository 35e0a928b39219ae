// Which plain files (POSIX, stdio) are counted, and in which processes. Files of MPI-IO are counted wherever they are: they were meant.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::profile {

// Not what a program is started with: the system's directories, shared libraries, compiled Python; and not what `excluded` names
// (globs, as those of the policy). By the path alone, which is absolute: whether it is a regular file, the caller looks.
bool counts(std::string_view path, const std::vector<std::string>& excluded);

// A launcher's own files are not the program's: under `holdfast run` only processes with a rank count plain calls. Where the library was
// preloaded by hand, all do. False where nothing is profiled; one load once that is known.
bool counts_plain_calls();

}  // namespace holdfast::profile
