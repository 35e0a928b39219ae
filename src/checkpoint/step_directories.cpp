#include "checkpoint/step_directories.hpp"

#include <fcntl.h>

#include <string>

#include "catalog/user_files.hpp"
#include "checkpoint/directory_mark.hpp"

namespace holdfast::checkpoint {

namespace {

bool remove_empty(const std::string& directory) { return catalog::environment().unlinkat(AT_FDCWD, directory.c_str(), AT_REMOVEDIR) == 0; }

// The deepest first: what holds nothing but empty ones becomes one.
void tidy_below(const std::string& directory, const Pattern& pattern, const MayGo& may_go) {
  const auto entries = catalog::list_directory(directory);
  if (!entries) return;
  for (const std::string& name : *entries) {
    const std::string path = directory + "/" + name;
    const auto above = pattern.above(path);
    if (!above) continue;
    const auto found = catalog::look(path, false);
    if (!found || !found->directory()) continue;
    const bool goes = above->step && may_go(*above->step);
    if (goes && remove_empty(path)) continue;
    if (above->step) remove_marks(path);
    if (!pattern.may_lie_in(path)) tidy_below(path, pattern, may_go);  // else its entries are files
    if (goes) (void)remove_empty(path);
  }
}

}  // namespace

void tidy_step_directories(const Patterns& patterns, const MayGo& may_go) {
  for (const Pattern& one : patterns.all())
    if (one.has_step()) tidy_below(one.root(), one, may_go);
}

}  // namespace holdfast::checkpoint
