#include "redundant/log/catch_up.hpp"

namespace holdfast::redundant {

bool CatchUp::take_one(Meetings& meetings, Decisions& decisions) {
  if (!follows_) return false;
  const auto entry = source_();
  if (!entry) return false;
  read_until_ms_ = entry->time_ms;
  own_.repeat(*entry);
  switch (entry->kind) {
    case Entry::decision: decisions.learn(entry->subject, entry->number, entry->payload); break;
    case Entry::call:
      if (const auto call = claim_in(entry->payload))
        meetings.learn(entry->subject, entry->number, call->claim, {call->rest.begin(), call->rest.end()});
      break;
    case Entry::intent:
      if (const auto intent = claim_in(entry->payload)) meetings.learn_intent(entry->subject, entry->number, intent->claim);
      break;
    case Entry::bytes: bytes_[entry->subject].emplace_back(entry->number, Bytes(entry->payload.begin(), entry->payload.end())); break;
  }
  return true;
}

std::optional<Bytes> CatchUp::bytes(uint64_t subject, uint64_t number) {
  const auto found = bytes_.find(subject);
  if (found == bytes_.end()) return std::nullopt;
  auto& all = found->second;
  while (!all.empty() && all.front().first < number) all.pop_front();
  if (all.empty() || all.front().first != number) return std::nullopt;
  Bytes read = std::move(all.front().second);
  all.pop_front();
  return read;
}

}  // namespace holdfast::redundant
