// A variable of the environment under another name, for what this process starts.
#pragma once
#include <string>

namespace holdfast {

// In its place, and before main: a shell has functions of its own for its variables, which know of none yet when libraries are loaded.
void rename_environment_variable(const char* from, const char* to);

}  // namespace holdfast
