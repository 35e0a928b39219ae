// A plain file that is renamed to where a protected one is wanted: the usual way to write a checkpoint.
#pragma once
#include <string>

namespace holdfast::intercept::posix {

// Whether a rename without flags of what stands at `from` to `to` is one of a plain file, within a file system, to a name that the policy
// names or at which a protected file stands.
bool becomes_protected(int from_directory, const char* from, int to_directory, const char* to, bool to_is_protected);

// Renames it so that it is protected from then on. At every moment one of the names leads to what is new, and what was at `to` goes only
// when what is new has its place. 0, or -1 and errno, with one line on standard error: everything is as before then.
// 1: it is open for writing somewhere, so it has to stay plain, which has been said.
int rename_protected(int from_directory, const char* from, int to_directory, const char* to, bool to_is_protected);

}  // namespace holdfast::intercept::posix
