#include "checkpoint/given_up.hpp"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "checkpoint/updates.hpp"

namespace holdfast::checkpoint {

namespace {

using Number = std::pair<layout::Attempt, uint32_t>;

// What was removed of a run.
class Removed {
 public:
  Removed(const std::string& run, const std::vector<LocalEntry>& local) {
    for (const LocalEntry& entry : local) {
      if (entry.run != run || entry.state != State::hidden) continue;
      Number& last = last_[entry.name.file];
      last = std::max(last, Number(entry.attempt, entry.name.number));
    }
  }
  bool has(const std::string& file, const Number& number) const {
    const auto found = last_.find(file);
    return found != last_.end() && found->second >= number;
  }
  bool has(const Protected& file) const { return has(file.version.file, {file.version.attempt, file.version.number}); }
  layout::Attempt attempt_of(const Protected& file) const { return last_.at(file.version.file).first; }

 private:
  std::map<std::string, Number> last_;
};

// What a run has written, and what of it was removed.
class Written {
 public:
  Written(const std::string& run, const std::vector<Checkpoint>& all, const std::vector<LocalEntry>& local)
      : run_(run), all_(all), local_(local), removed_(run, local) {}

  // The file of it that was removed last; null where none was.
  const Protected* removed_of(const Checkpoint& one) const {
    const Protected* last = nullptr;
    for (const auto& [place, file] : one.files)
      if (removed_.has(file) && (!last || removed_.attempt_of(*last) < removed_.attempt_of(file))) last = &file;
    return last;
  }

  // Whether something was begun after it that is not removed, since `removed` was.
  bool has_later_than(const Checkpoint& one, const Protected& removed) const {
    const layout::Attempt since = removed_.attempt_of(removed);
    const auto is_later = [&](const Protected& file, const Age& age) {
      const layout::Version& version = file.version;
      return version.attempt >= since && !version.roll && !removed_.has(file) && is_before(one.age_beside(version.rank, version.writer), age);
    };
    for (const Checkpoint& other : all_)
      for (const auto* files : {&other.files, &other.beside})
        for (const auto& [place, file] : *files) {
          const layout::Version& version = file.version;
          if (other.run == run_ && is_later(file, {version.attempt, version.step, version.written, file.written_on()})) return true;
        }
    return std::any_of(local_.begin(), local_.end(), [&](const LocalEntry& entry) {
      const LocalName& name = entry.name;
      if (entry.run != run_ || !is_written_here(entry.state) || name.kind != LocalName::of_user || name.is_single()) return false;
      return entry.attempt >= since && !removed_.has(name.file, {entry.attempt, name.number}) &&
             is_before(one.age_beside(name.rank, name.writer), age_of(entry));
    });
  }

 private:
  const std::string& run_;
  const std::vector<Checkpoint>& all_;
  const std::vector<LocalEntry>& local_;
  const Removed removed_;
};

// Plain files of that run to begin with, which are not of one of these checkpoints.
bool is_any_plain_beside(const std::vector<Checkpoint*>& removed, const std::vector<DrainedCheckpoint>& drained, const std::vector<Checkpoint>& all) {
  return std::any_of(drained.begin(), drained.end(), [&](const DrainedCheckpoint& one) {
    const auto is_of = [&](const Checkpoint* other) { return one.attempt == other->attempt && one.step == other->step; };
    return one.run == removed.front()->run && !one.are_singles && std::none_of(removed.begin(), removed.end(), is_of) &&
           !is_drained_in_part(one, all);
  });
}

}  // namespace

bool was_removed(const Checkpoint& one, const std::vector<LocalEntry>& local) {
  const Removed removed(one.run, local);
  return std::any_of(one.files.begin(), one.files.end(), [&](const auto& file) { return removed.has(file.second); });
}

void mark_given_up(std::vector<Checkpoint>& all, const std::vector<LocalEntry>& local, const std::vector<DrainedCheckpoint>& drained) {
  struct OfRun {
    Written written;
    std::vector<std::pair<Checkpoint*, std::string>> removed = {};  // the newest ones, with a file of each
    bool is_done = false;
    void mark() {
      for (const auto& [one, file] : removed) one->removed = file;
      removed.clear(), is_done = true;
    }
  };
  std::map<std::string, OfRun> runs;
  for (auto one = all.rbegin(); one != all.rend(); ++one) {
    if (one->are_singles || !one->whole()) continue;
    OfRun& run = runs.try_emplace(one->run, OfRun{Written(one->run, all, local)}).first->second;
    if (run.is_done) continue;
    const Protected* const removed = run.written.removed_of(*one);
    if (removed && !run.written.has_later_than(*one, *removed)) run.removed.emplace_back(&*one, removed->version.file);
    else run.mark();
  }
  for (auto& [id, run] : runs) {
    std::vector<Checkpoint*> removed;
    for (const auto& [one, file] : run.removed) removed.push_back(one);
    if (!removed.empty() && is_any_plain_beside(removed, drained, all)) run.mark();
  }
}

}  // namespace holdfast::checkpoint
