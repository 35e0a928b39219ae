// Which plain files (POSIX, stdio) are counted, and in which processes. Files of MPI-IO are counted wherever they are: they were meant.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::profile {

// What a program is started with: the system's directories, shared libraries, compiled Python, an interpreter's packages, the session
// directory of the job's launcher.
bool is_of_the_system(std::string_view path);
// All but these, and what `excluded` names: globs, as those of the policy. "!GLOB" counts what the globs before it and the system's places leave out.
// The last that matches decides. What Holdfast serves (`served`) has been named by the user, wherever it lies. By the path alone, which is absolute:
// whether it is a regular file, the caller looks.
bool counts(std::string_view path, const std::vector<std::string>& excluded, bool served = false);

// A launcher's own files are not the program's: under `holdfast run` only processes with a rank (or of a serial program) count plain calls.
// Where the library was preloaded by hand, all do but those that are known as launchers and shells by their name. False where nothing is profiled; one load once that is known.
bool counts_plain_calls();

}  // namespace holdfast::profile
