// How one commit folds rows in. Private to the file_*.cpp.
#pragma once
#include <set>

#include "engine/file.hpp"

namespace holdfast::engine {

struct File::Fold {
  uint64_t generation = 0;
  uint64_t file_end = 0;
  Journal& journal;
  bool defer = false;        // another opener may write whole fresh rows meanwhile: nothing goes in place, and journals stay
  bool journal_all = false;  // no manifest names this commit's generation yet, so that nothing of it may lie in place
  std::set<uint64_t>& folded;
  // Rows of others' journals that this opener has written whole, outside the lock: when.
  std::map<uint64_t, uint64_t> direct_times = {};
};

}  // namespace holdfast::engine
