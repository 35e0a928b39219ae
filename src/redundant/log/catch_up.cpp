#include "redundant/log/catch_up.hpp"

#include <algorithm>

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
      if (const auto call = claim_in(entry->payload)) {
        if (ordered_ && call->claim.looks == 0) changes_.emplace_back(entry->subject, entry->number);
        meetings.learn(entry->subject, entry->number, call->claim, {call->rest.begin(), call->rest.end()});
      }
      break;
    case Entry::intent:
      if (const auto intent = claim_in(entry->payload)) meetings.learn_intent(entry->subject, entry->number, intent->claim);
      break;
    case Entry::bytes: bytes_[entry->subject].emplace_back(entry->number, Bytes(entry->payload.begin(), entry->payload.end())); break;
    case Entry::opened:
    case Entry::waiting: break;
  }
  return true;
}

std::optional<Entry> CatchUp::pass_one(Meetings& meetings, Decisions& decisions, const Later& later) {
  const auto entry = source_();
  if (!entry) return std::nullopt;
  read_until_ms_ = entry->time_ms;
  own_.repeat(*entry);
  if (entry->kind == Entry::decision) {
    const auto first = later.find(entry->subject);
    if (first != later.end() && entry->number >= first->second) decisions.learn(entry->subject, entry->number, entry->payload);
    else decisions.pass(entry->subject, entry->number, entry->payload);
  }
  const auto call = entry->kind == Entry::call ? claim_in(entry->payload) : std::nullopt;
  if (call) meetings.pass(entry->subject, entry->number, {call->rest.begin(), call->rest.end()});
  return entry;
}

bool CatchUp::is_in_order(uint64_t subject, uint64_t number, bool may_be_a_look) const {
  const std::pair mine(subject, number);
  if (!ordered_ || !follows_ || changes_.empty() || changes_.front() == mine) return true;
  return may_be_a_look && std::find(changes_.begin(), changes_.end(), mine) == changes_.end();
}

void CatchUp::has_made(uint64_t subject, uint64_t number) {
  if (!changes_.empty() && changes_.front() == std::pair(subject, number)) changes_.pop_front();
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
