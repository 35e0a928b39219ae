#include "redundant/membership/child_appends.hpp"

#include <algorithm>
#include <bit>
#include <utility>

#include <fmt/format.h>

#include "redundant/map.hpp"

namespace holdfast::redundant {

namespace {

constexpr int64_t patience_ms = 5000;  // with other teams, whose bytes may be others

}  // namespace

uint64_t there_of_torn(ByteView behind, ByteView bytes, uint64_t torn) {
  const ByteView part = bytes.first(size_t(std::min<uint64_t>(torn, bytes.size())));
  if (std::search(behind.begin(), behind.end(), part.begin(), part.end()) != behind.end()) return part.size();
  size_t there = std::min(behind.size(), part.size());
  while (!std::equal(part.begin(), part.begin() + ptrdiff_t(there), behind.end() - ptrdiff_t(there))) --there;
  return there;
}

int ChildAppends::leader() const {
  const uint64_t living = living_();
  return living == 0 ? -1 : std::countr_zero(living);
}

ChildAppends::Place ChildAppends::stream_of(const ChildAppend& append) {
  const auto known = by_process_.find({append.process, append.path});
  if (known != by_process_.end()) return known->second;
  const std::string name = fmt::format("{} {}\n{}", append.rank, append.path, append.program);
  const uint64_t number = ++numbers_[{append.team, name}];
  auto found = std::find_if(streams_.begin(), streams_.end(), [&](const Stream& one) {
    return one.rank == append.rank && one.number == number && one.path == append.path && one.program == append.program;
  });
  if (found == streams_.end()) {
    found = streams_.emplace(streams_.end());
    found->rank = append.rank, found->number = number, found->path = append.path, found->program = append.program;
  }
  found->parts[append.team].process = append.process;
  by_process_.emplace(std::pair(append.process, append.path), found);
  return found;
}

ChildAppends::Answers ChildAppends::asks(const ChildAppend& append, int64_t now_ms) {
  if (is_lost_(append.team)) return {{.process = append.process, .what = AppendAnswer::is_lost}};
  const Place stream = stream_of(append);
  Part& part = stream->parts[append.team];
  part.call = append, part.since_ms = now_ms, part.sum = append.sum;
  calling_[append.process] = stream;
  Answers answers;
  settle(*stream, now_ms, answers);
  return answers;
}

// Of the one that leads first: it writes where all are there.
void ChildAppends::settle(Stream& stream, int64_t now_ms, Answers& answers) {
  give_up_lost_ones(stream, answers);
  const int first_team = leader();
  if (const auto first = stream.parts.find(first_team); first != stream.parts.end()) settle_part(stream, first_team, first->second, now_ms, answers);
  for (auto& [team, part] : stream.parts)
    if (team != first_team) settle_part(stream, team, part, now_ms, answers);
}

void ChildAppends::give_up_lost_ones(Stream& stream, Answers& answers) {
  uint64_t writes = 0;  // it hears when it has written, if it ever does
  if (stream.writing && is_lost_(stream.writing->team)) writes = stream.writing->process, stream.torn = std::exchange(stream.writing, std::nullopt);
  for (auto& [team, part] : stream.parts) {
    if (!is_lost_(team)) continue;
    if (part.call && part.process != writes) answers.push_back({.process = part.process, .what = AppendAnswer::is_lost});
    part.call.reset(), part.is_over = true;
  }
}

void ChildAppends::settle_part(Stream& stream, int team, Part& part, int64_t now_ms, Answers& answers) {
  if (!part.call || (stream.writing && stream.writing->process == part.process)) return;
  const uint64_t end = part.asked + part.call->length;
  const bool has_failed_there = stream.failed && stream.failed->first >= part.asked && stream.failed->first < end && !part.heard_failure;
  if (end <= stream.done || has_failed_there) {
    const int64_t value = end <= stream.done ? int64_t(stream.place) : stream.failed->second;
    part.heard_failure = value < 0;
    if (value >= 0) part.asked = end;
    answers.push_back({.process = part.process, .what = AppendAnswer::is_done, .value = value});
    part.call.reset();
  } else if (!stream.writing && may_write(stream, team, part, now_ms)) {
    tell_to_write(stream, team, part, answers);
  }
}

// No team is more than one call ahead: what it appended others would read where they are to come to that yet. Where nobody came to the first call it does not
// wait at the next one: others may never come, as names of files may differ.
bool ChildAppends::may_write(const Stream& stream, int team, const Part& part, int64_t now_ms) const {
  bool all_are_there = true, is_alone = true;
  for (const int other : TeamsOf{living_() & ~team_bit(team)}) {
    const auto its = stream.parts.find(other);
    is_alone &= its == stream.parts.end();
    all_are_there &= its != stream.parts.end() && (its->second.call || its->second.is_over);
  }
  return all_are_there || (is_alone && part.asked > 0) || now_ms - part.since_ms >= patience_ms;
}

void ChildAppends::tell_to_write(Stream& stream, int team, const Part& part, Answers& answers) {
  const uint64_t skip = stream.done > part.asked ? stream.done - part.asked : 0;
  AppendAnswer answer{.process = part.process, .what = AppendAnswer::write, .skip = skip, .at = std::max(part.call->end, stream.place)};
  if (stream.torn) answer.at = stream.torn->at, answer.torn = stream.torn->length;
  stream.writing = Piece{part.process, answer.at, std::max(part.call->length - skip, answer.torn), team};
  answers.push_back(answer);
}

ChildAppends::Answers ChildAppends::wrote(uint64_t process, uint64_t place, int64_t taken, int64_t now_ms) {
  Answers answers;
  const auto calling = calling_.find(process);
  if (calling == calling_.end()) return answers;
  Stream& stream = *calling->second;
  if (!stream.writing || stream.writing->process != process) {  // its team was lost meanwhile
    answers.push_back({.process = process, .what = AppendAnswer::is_lost});
    return answers;
  }
  Part& part = stream.parts[stream.writing->team];
  stream.writing.reset();
  AppendAnswer answer{.process = process, .what = AppendAnswer::is_done, .value = taken < 0 ? taken : int64_t(place)};
  if (taken < 0) {
    stream.failed = {std::max(stream.done, part.asked), taken};
  } else {
    stream.done = std::max(stream.done, part.asked) + uint64_t(taken), stream.place = place;
    part.asked = stream.done;
    stream.failed.reset();
    if (stream.torn && uint64_t(taken) < stream.torn->length) stream.torn->length -= uint64_t(taken), stream.torn->at = place;
    else stream.torn.reset();
  }
  part.call.reset();
  answers.push_back(answer);
  settle(stream, now_ms, answers);
  return answers;
}

ChildAppends::Answers ChildAppends::gone(uint64_t process, int64_t now_ms) {
  Answers answers;
  calling_.erase(process);
  for (auto one = by_process_.lower_bound({process, ""}); one != by_process_.end() && one->first.first == process;) {
    const Place stream = one->second;
    one = by_process_.erase(one);
    if (stream->writing && stream->writing->process == process) stream->torn = std::exchange(stream->writing, std::nullopt);
    for (auto& [team, part] : stream->parts)
      if (part.process == process) part.call.reset(), part.is_over = true, part.process = 0;
    settle(*stream, now_ms, answers);
    if (!is_over(*stream)) continue;
    compare(*stream);
    streams_.erase(stream);
  }
  return answers;
}

// Nobody asks any more, and no team is still to begin.
bool ChildAppends::is_over(const Stream& stream) const {
  for (const int team : TeamsOf{living_()}) {
    const auto part = stream.parts.find(team);
    if (part == stream.parts.end() || !part->second.is_over) return false;
  }
  return true;
}

void ChildAppends::compare(const Stream& stream) {
  const auto first = stream.parts.find(leader());
  if (first == stream.parts.end()) return;
  for (const auto& [team, part] : stream.parts) {
    if (is_lost_(team) || (part.asked == first->second.asked && part.sum == first->second.sum)) continue;
    differences_.push_back(fmt::format("rank {}: what {} has appended to {} differs between teams {} and {}, and is there once", stream.rank,
                                       stream.program, stream.path, first->first, team));
  }
}

ChildAppends::Answers ChildAppends::look(int64_t now_ms) {
  Answers answers;
  for (Stream& stream : streams_) settle(stream, now_ms, answers);
  return answers;
}

}  // namespace holdfast::redundant
