// What rename(2) refuses by what stands at the two names: asked before anything of a protected file is touched.
#pragma once
#include "tree/tree.hpp"

namespace holdfast::tree {

// The kernel's errno, or 0. What it alone can tell (a directory's sticky bit, two mounts of one file system) is not in it.
int refusal_of_rename(const Name& from, const Name& to);

}  // namespace holdfast::tree
