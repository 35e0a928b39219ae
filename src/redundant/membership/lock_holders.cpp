#include "redundant/membership/lock_holders.hpp"

#include <algorithm>

namespace holdfast::redundant {

namespace {

bool meet(const LockedPart& one, const LockedPart& other) { return one.kind == other.kind && one.begin < other.end && other.begin < one.end; }

}  // namespace

bool LockHolders::call(uint64_t file, int rank, const LockedPart& part) {
  std::vector<Held>& all = files_[file];
  const auto forbids = [&](const Held& held) {
    return part.what != LockedPart::gives_up && held.rank != rank && meet(held.part, part) && (held.part.exclusive || part.exclusive);
  };
  if (part.what == LockedPart::takes && std::any_of(all.begin(), all.end(), forbids)) return false;
  std::vector<Held> left;
  for (const Held& held : all) {
    if (forbids(held)) continue;
    if (held.rank != rank || !meet(held.part, part)) {
      left.push_back(held);
      continue;
    }
    Held rest = held;
    if (held.part.begin < part.begin) rest.part.end = part.begin, left.push_back(rest);
    rest = held;
    if (held.part.end > part.end) rest.part.begin = part.end, left.push_back(rest);
  }
  if (part.what != LockedPart::gives_up) left.push_back({rank, part});
  if (left.empty()) files_.erase(file);
  else all = std::move(left);
  return true;
}

void LockHolders::gone(int rank) {
  for (auto file = files_.begin(); file != files_.end();) {
    std::erase_if(file->second, [rank](const Held& held) { return held.rank == rank; });
    file = file->second.empty() ? files_.erase(file) : std::next(file);
  }
}

}  // namespace holdfast::redundant
