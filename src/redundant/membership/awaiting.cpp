#include "redundant/membership/awaiting.hpp"

#include <utility>

namespace holdfast::redundant {

void Awaiting::begin(const std::vector<Who>& all) {
  begun_ = true;
  lacking_.insert(all.begin(), all.end());
}

std::vector<Awaiting::Who> Awaiting::asks(const Who& one) {
  asking_.insert(one);
  return may_tell();
}

std::vector<Awaiting::Who> Awaiting::waits(const Who& one) {
  lacking_.erase(one);
  return may_tell();
}

std::vector<Awaiting::Who> Awaiting::may_tell() {
  if (!begun_ || !lacking_.empty()) return {};
  const std::set<Who> all = std::exchange(asking_, {});
  return {all.begin(), all.end()};
}

}  // namespace holdfast::redundant
