#include "checkpoint/half_written.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace holdfast::checkpoint {

namespace {

using List = std::vector<Checkpoint>;
using Fewest = std::map<FilePlace, uint32_t>;  // by place: how often a file of it was closed, at least

// Of one attempt: how often the file in each place was closed since it was written anew, and in which of its rank's turns.
struct Closed {
  uint32_t turn, times;
};
using InPlaces = std::map<FilePlace, std::vector<Closed>>;

// Where rolls list the files of a checkpoint they say how often each was closed. Of what has no turn nobody knows what came after it.
bool is_judged(const Checkpoint& one) { return one.writers == 0 && !one.are_singles; }
bool is_judged(const layout::Version& version) { return version.times && version.turn; }

InPlaces in_places(List::const_iterator begin, List::const_iterator end) {
  InPlaces places;
  for (auto one = begin; one != end; ++one)
    for (const auto& [place, file] : one->files)
      if (is_judged(*one) && is_judged(file.version)) places[place].push_back({file.version.turn, file.version.times});
  return places;
}

bool is_gone_past(const InPlaces& places, const FilePlace& place, uint32_t turn) {
  const auto there = places.find(place);
  return there != places.end() && std::any_of(there->second.begin(), there->second.end(), [&](const Closed& one) { return one.turn > turn; });
}

// The fewest of those before it in this attempt, or else in the last one that has some. 0: there are none.
uint32_t usual_times(const InPlaces& places, const Fewest& earlier, const FilePlace& place, uint32_t turn) {
  uint32_t fewest = 0;
  if (const auto there = places.find(place); there != places.end())
    for (const Closed& one : there->second)
      if (one.turn < turn) fewest = fewest ? std::min(fewest, one.times) : one.times;
  const auto before = earlier.find(place);
  return fewest || before == earlier.end() ? fewest : before->second;
}

void mark(Checkpoint& one, const InPlaces& places, const Fewest& earlier) {
  for (const auto& [place, file] : one.files) {
    const layout::Version& version = file.version;
    if (!is_judged(version) || is_gone_past(places, place, version.turn)) continue;
    const uint32_t usual = usual_times(places, earlier, place, version.turn);
    if (version.times >= usual) continue;
    one.half_written = {version.file, version.times, usual};
    return;
  }
}

// What the next attempt is compared with: what its ranks have gone past here, and what they may have gone on from.
void remember(const List::const_iterator begin, List::const_iterator end, const InPlaces& places, Fewest& earlier) {
  Fewest here;
  for (auto one = begin; one != end; ++one)
    for (const auto& [place, file] : one->files) {
      if (!is_judged(*one) || !is_judged(file.version)) continue;
      if (!one->half_written.file.empty() && !is_gone_past(places, place, file.version.turn)) continue;
      const auto [at, first] = here.try_emplace(place, file.version.times);
      if (!first) at->second = std::min(at->second, file.version.times);
    }
  for (const auto& [place, times] : here) earlier[place] = times;
}

}  // namespace

void mark_half_written(List& all) {
  std::string run;
  Fewest earlier;
  bool any_whole = false;
  for (auto begin = all.begin(); begin != all.end();) {
    const auto is_other = [&](const Checkpoint& one) { return one.run != begin->run || one.attempt != begin->attempt; };
    const auto end = std::find_if(begin, all.end(), is_other);
    if (run != begin->run) run = begin->run, earlier.clear(), any_whole = false;
    const InPlaces places = in_places(begin, end);
    for (auto one = begin; one != end; ++one) {
      if (any_whole && is_judged(*one)) mark(*one, places, earlier);
      any_whole |= !one->are_singles && one->whole();
    }
    remember(begin, end, places, earlier);
    begin = end;
  }
}

void unmark_ended_well(List& all, const EndedWell& ended) {
  for (Checkpoint& one : all)
    if (const auto of_run = ended.find(one.run); of_run != ended.end() && of_run->second.contains(one.attempt)) one.half_written = {};
}

void add_half_written(const List& all, std::set<std::string>& ids) {
  for (const Checkpoint& one : all)
    for (const auto& [place, file] : one.files)
      if (!one.half_written.file.empty()) ids.insert(file.file_id);
}

std::string why_half_written(const Checkpoint& one) {
  const auto& [file, times, usual] = one.half_written;
  if (file.empty()) return "";
  return fmt::format("{} was closed {} {}, and those before it {} times: it may be written in part", file, times, times == 1 ? "time" : "times",
                     usual);
}

}  // namespace holdfast::checkpoint
