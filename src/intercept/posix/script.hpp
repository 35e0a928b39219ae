// A protected file that is executed. The kernel sees the note at its path and says ENOEXEC; what a script's first line asks for is done here.
#pragma once

namespace holdfast::intercept::posix {

// After an exec of `path` has failed with ENOEXEC. Back with errno as it was where that is no script that is served by us, else with the
// interpreter's own.
void become_interpreter(const char* path, char* const* words, char* const* environment);

}  // namespace holdfast::intercept::posix
