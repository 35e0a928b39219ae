#include "redundant/log/join.hpp"

#include <cstring>
#include <utility>

#include "redundant/log/log_file.hpp"
#include "redundant/subjects.hpp"

namespace holdfast::redundant {

namespace {

CatchUp::Later later_in(ByteView payload) {
  CatchUp::Later all;
  uint64_t pair[2];
  for (; payload.size() >= sizeof pair; payload = payload.subspan(sizeof pair)) {
    std::memcpy(pair, payload.data(), sizeof pair);
    all[pair[0]] = pair[1];
  }
  return all;
}

}  // namespace

void Join::add(const Entry& entry, uint64_t at) {
  const CatchUp::Later waiting = std::exchange(waiting_, {});
  if (entry.kind == Entry::waiting) waiting_ = later_in(entry.payload);
  if (entry.kind == Entry::opened && name_ && entry.subject == *name_) subject_ = open_subject(*name_, entry.number);
  matches_ |= entry.kind == Entry::decision && is_about_matches(entry.subject);
  if (!place_) matches_before_ = matches_;
  if (entry.kind != Entry::call && entry.kind != Entry::intent) return;
  const auto made = claim_in(entry.payload);
  if (!made || made->claim.looks != 0) return;
  if (from_.erase(entry.subject) > 0) has_from_ = true, place_.reset();
  if (entry.subject != subject_ || !made->claim.same_but_for_messages(claim_)) {
    contradicted_ |= has_all_ && entry.kind == Entry::call;
    return;
  }
  if (place_ && (has_from_ || number_ == entry.number)) return;  // an intent, and what came of it
  place_ = at;
  number_ = entry.number;
  later_ = waiting;
  matches_before_ = matches_;
}

}  // namespace holdfast::redundant
