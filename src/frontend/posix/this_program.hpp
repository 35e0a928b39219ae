// What this process runs, for replicas that are to run the same.
#pragma once
#include <string>

namespace holdfast::frontend::posix {

// Lines for redundant::About. Those of libraries are many, and wanted of one rank.
std::string about_this_program(bool with_libraries);
// Without its folder.
std::string name_of_this_program();
// As the launcher says, or `holdfast run` to a program without one. Empty: it is none.
std::string own_rank();

}  // namespace holdfast::frontend::posix
