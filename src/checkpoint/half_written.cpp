#include "checkpoint/half_written.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "checkpoint/drained.hpp"
#include "checkpoint/survey.hpp"

namespace holdfast::checkpoint {

namespace {

using List = std::vector<Checkpoint>;

// Where rolls list the files of a checkpoint they say how often each was closed.
bool is_judged(const Checkpoint& one) { return one.writers == 0 && !one.are_singles; }
bool is_judged(const layout::Version& version) { return version.times && version.turn; }

// A rank counts its own: another one that writes files of its number has not closed those before them.
using Series = std::pair<FilePlace, uint32_t>;
// The last version of each in an attempt, and what it is of.
struct Last {
  const layout::Version* version;
  const Checkpoint* of;
};
using Lasts = std::map<Series, Last>;

Lasts last_versions(List::const_iterator begin, List::const_iterator end) {
  const auto order = [](const layout::Version& version) { return std::pair(version.turn, version.written); };
  Lasts lasts;
  for (auto one = begin; one != end; ++one)
    for (const auto& [place, file] : one->files) {
      if (!is_judged(*one) || !is_judged(file.version)) continue;
      const Last last{&file.version, &*one};
      const auto [at, first] = lasts.try_emplace({place, file.version.writer}, last);
      if (!first && order(*at->second.version) < order(file.version)) at->second = last;
    }
  return lasts;
}

// How often files were closed at least: by place, and of how many. Where there are more ranks, or fewer, another file has the place.
class Usual {
 public:
  uint32_t of(const Series& series, const layout::Version& last, const std::string& path) const {
    if (last.fewest) return last.fewest;
    const auto before = before_.find({series, last.ranks});
    return before == before_.end() || before->second.lone_path == path ? 0 : before->second.times;
  }
  // The attempt is over. What its ranks have never gone past may be written in part, unless its checkpoint is whole.
  void remember(const Lasts& lasts) {
    for (const auto& [series, last] : lasts) {
      const layout::Version& version = *last.version;
      Before& before = before_[{series, version.ranks}];
      if (version.fewest) before = {version.fewest, ""};
      else if (last.of->whole() && before.times == 0) before = {version.times, version.file};
      else if (last.of->whole()) before.times = std::min(before.times, version.times);
    }
  }

 private:
  struct Before {
    uint32_t times = 0;
    // Where one file alone says it. Of its own name that says nothing: it may grow all the time, and be begun anew by each attempt.
    std::string lone_path;
  };
  std::map<std::pair<Series, uint32_t>, Before> before_;
};

void mark(Checkpoint& one, const Lasts& lasts, const Usual& usual) {
  for (const auto& [place, file] : one.files) {
    const auto last = lasts.find({place, file.version.writer});
    const uint32_t fewest = last == lasts.end() || !is_judged(file.version) ? 0 : usual.of(last->first, *last->second.version, file.version.file);
    if (file.version.times >= fewest) continue;
    one.half_written = {file.version.file, file.version.times, fewest};
    return;
  }
}

bool any_before(const Checkpoint& one, const std::vector<DrainedCheckpoint>& drained) {
  return std::any_of(drained.begin(), drained.end(), [&](const DrainedCheckpoint& other) {
    return other.run == one.run && !other.are_singles && is_before(other.ages(), one.ages());
  });
}

}  // namespace

void mark_half_written(List& all, const std::vector<DrainedCheckpoint>& drained) {
  std::string run;
  Usual usual;
  bool any_whole = false;
  for (auto begin = all.begin(); begin != all.end();) {
    const auto is_other = [&](const Checkpoint& one) { return one.run != begin->run || one.attempt != begin->attempt; };
    const auto end = std::find_if(begin, all.end(), is_other);
    if (run != begin->run) run = begin->run, usual = Usual(), any_whole = false;
    const Lasts lasts = last_versions(begin, end);
    for (auto one = begin; one != end; ++one) {
      if (is_judged(*one) && (any_whole || any_before(*one, drained))) mark(*one, lasts, usual);
      any_whole |= !one->are_singles && one->whole();
    }
    usual.remember(lasts);
    begin = end;
  }
}

void unmark_beginning(List& all, const Run& run) {
  for (Checkpoint& one : all)
    if (run.from && one.run == run.id && one.attempt == run.from->attempt && one.step == run.from->step) one.half_written = {};
}

namespace {

bool has_later_close(const Checkpoint& one, const std::vector<LocalEntry>& local) {
  return std::any_of(local.begin(), local.end(), [&](const LocalEntry& entry) {
    const bool is_its = entry.run == one.run && entry.attempt == one.attempt && entry.name.step == one.step && !entry.name.is_single();
    if (!is_its || is_settled(entry.state) || entry.is_untouched) return false;
    const Protected* const file = one.file_at(entry.name.file);
    return file && file->version.number < entry.name.number;
  });
}

}  // namespace

void unmark_ended_well(List& all, const EndedWell& ended, const std::vector<LocalEntry>& local) {
  for (Checkpoint& one : all) {
    const auto of_run = ended.find(one.run);
    if (one.half_written.file.empty() || of_run == ended.end() || !of_run->second.contains(one.attempt)) continue;
    if (!has_later_close(one, local)) one.half_written = {};
  }
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
