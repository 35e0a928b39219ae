// What this process runs, for replicas that are to run the same.
#pragma once
#include <string>

namespace holdfast::frontend::posix {

// Lines for redundant::About. Those of libraries are many, and wanted of one rank.
std::string about_this_program(bool with_libraries);

}  // namespace holdfast::frontend::posix
