// Files that belong to the job's launcher and to the MPI itself, not to the program.
#pragma once
#include <string_view>

namespace holdfast {

// Whether an absolute path lies in the directory where the launcher and the MPI's own threads keep files for the processes of a node, as
// PMIx tells them (PMIX_SERVER_TMPDIR). Some have the program's file names in theirs.
bool is_of_the_launcher(std::string_view path);

}  // namespace holdfast
