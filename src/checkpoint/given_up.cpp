#include "checkpoint/given_up.hpp"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

namespace holdfast::checkpoint {

namespace {

using Number = std::pair<layout::Attempt, uint32_t>;

// What a run has written, and what of it was removed.
class Written {
 public:
  Written(const std::string& run, const std::vector<Checkpoint>& all, const std::vector<LocalEntry>& local) : run_(run), all_(all), local_(local) {
    for (const LocalEntry& entry : local) {
      if (entry.run != run || entry.state != State::hidden || entry.name.is_single()) continue;
      Number& last = removed_[entry.name.file];
      last = std::max(last, Number(entry.attempt, entry.name.number));
    }
  }

  // The file of it that was removed last; null where none was.
  const Protected* removed_of(const Checkpoint& one) const {
    const Protected* last = nullptr;
    for (const auto& [place, file] : one.files)
      if (is_removed(file.version.file, {file.version.attempt, file.version.number}) &&
          (!last || attempt_of_removal(*last) < attempt_of_removal(file)))
        last = &file;
    return last;
  }

  // Whether something was begun after it that is not removed, since `removed` was.
  bool has_later_than(const Checkpoint& one, const Protected& removed) const {
    const layout::Attempt since = attempt_of_removal(removed);
    const auto is_later = [&](const layout::Version& version, const Age& age) {
      return version.attempt >= since && !version.roll && !is_removed(version.file, {version.attempt, version.number}) &&
             is_before(one.age_beside(version.rank, version.writer), age);
    };
    for (const Checkpoint& other : all_)
      for (const auto* files : {&other.files, &other.beside})
        for (const auto& [place, file] : *files) {
          const layout::Version& version = file.version;
          if (other.run == run_ && is_later(version, {version.attempt, version.step, version.written, file.written_on()})) return true;
        }
    return std::any_of(local_.begin(), local_.end(), [&](const LocalEntry& entry) {
      const LocalName& name = entry.name;
      if (entry.run != run_ || !is_written_here(entry.state) || name.kind != LocalName::of_user || name.is_single()) return false;
      return entry.attempt >= since && !is_removed(name.file, {entry.attempt, name.number}) &&
             is_before(one.age_beside(name.rank, name.writer), age_of(entry));
    });
  }

 private:
  bool is_removed(const std::string& file, const Number& number) const {
    const auto found = removed_.find(file);
    return found != removed_.end() && found->second >= number;
  }
  layout::Attempt attempt_of_removal(const Protected& file) const { return removed_.at(file.version.file).first; }

  const std::string& run_;
  const std::vector<Checkpoint>& all_;
  const std::vector<LocalEntry>& local_;
  std::map<std::string, Number> removed_;
};

// Plain files of that run, which are not of one of these checkpoints.
bool is_any_plain_beside(const std::vector<Checkpoint*>& removed, const std::vector<DrainedCheckpoint>& drained) {
  return std::any_of(drained.begin(), drained.end(), [&](const DrainedCheckpoint& one) {
    const auto is_of = [&](const Checkpoint* other) { return one.attempt == other->attempt && one.step == other->step; };
    return one.run == removed.front()->run && !one.are_singles && std::none_of(removed.begin(), removed.end(), is_of);
  });
}

}  // namespace

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
    if (!removed.empty() && is_any_plain_beside(removed, drained)) run.mark();
  }
}

}  // namespace holdfast::checkpoint
