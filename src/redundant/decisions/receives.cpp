#include "redundant/decisions/receives.hpp"

#include <algorithm>

namespace holdfast::redundant {

bool Envelope::overlaps(const Envelope& other) const {
  const auto fits = [](int one, int two) { return one == two || one == anybody || two == anybody; };
  return fits(source, other.source) && fits(tag, other.tag);
}

void Receives::set_match(One& one, std::optional<Envelope> got) {
  one.is_open = false;
  one.is_cancelled = !got;
  if (got) one.envelope = *got;
  else is_posted_now(one);  // it takes no message
}

Receives::Name Receives::begin(Envelope wanted) {
  One& one = all_[next_];
  ++not_posted_;
  one.envelope = wanted;
  one.is_open = wanted.is_open();
  if (one.is_open) one.number = ++numbers_;
  if (const auto early = early_.find(one.number); one.is_open && early != early_.end()) {
    set_match(one, early->second);
    early_.erase(early);
  }
  return next_++;
}

void Receives::end(Name name) {
  const auto found = all_.find(name);
  if (found == all_.end()) return;
  if (!found->second.is_posted) --not_posted_;
  all_.erase(found);
}

void Receives::decided(uint64_t number, std::optional<Envelope> got) {
  if (number > numbers_) {
    early_[number] = got;
    return;
  }
  const auto found = std::find_if(all_.begin(), all_.end(), [&](const auto& one) { return one.second.number == number; });
  if (found != all_.end() && found->second.is_open) set_match(found->second, got);
}

bool Receives::is_held(Name name, const One& one) const {
  return std::any_of(all_.begin(), all_.lower_bound(name),
                     [&](const auto& before) { return !before.second.is_posted && before.second.envelope.overlaps(one.envelope); });
}

std::optional<Receives::Name> Receives::next_ready() const {
  if (not_posted_ == 0) return std::nullopt;  // as is mostly so where the program asks again
  for (const auto& [name, one] : all_)
    if (!one.is_posted && (leads_ || !one.is_open) && !is_held(name, one)) return name;
  return std::nullopt;
}

std::vector<Receives::Name> Receives::before(Name name, Envelope seen) const {
  std::vector<Name> found;
  for (auto at = all_.begin(); at != all_.lower_bound(name); ++at)
    if (at->second.is_open && at->second.is_posted && at->second.envelope.overlaps(seen)) found.push_back(at->first);
  return found;
}

bool Receives::holds_back(Envelope seen) const {
  return std::any_of(all_.begin(), all_.end(), [&](const auto& one) { return !one.second.is_posted && one.second.envelope.overlaps(seen); });
}

}  // namespace holdfast::redundant
