#include "checkpoint/choice.hpp"

#include <algorithm>

namespace holdfast::checkpoint {

namespace {

using List = std::vector<Checkpoint>;

Age age_of(const Protected& file) { return {file.version.attempt, file.version.step, file.version.written, file.written_on()}; }

// By the first place that both have. One that is not whole may lack the first of all, or have none in common with another.
bool was_written_before(const Checkpoint& a, const Checkpoint& b) {
  for (const auto& [place, file] : a.files)
    if (const auto other = b.files.find(place); other != b.files.end()) return is_before(age_of(file), age_of(other->second));
  return false;
}

// Of one attempt: each place's files come from one node.
bool has_one_writer_for_each_place(List::const_iterator begin, List::const_iterator end) {
  std::map<uint32_t, std::string> writers;
  for (auto one = begin; one != end; ++one)
    for (const auto& [place, file] : one->files)
      if (writers.try_emplace(place, file.written_on()).first->second != file.written_on()) return false;
  return true;
}

// Whether some places say that `a` came first, and others that `b` did.
bool disagree_about(const Checkpoint& a, const Checkpoint& b) {
  bool a_first = false, b_first = false;
  for (const auto& [place, file] : a.files) {
    const auto other = b.files.find(place);
    if (other == b.files.end() || file.version.written == 0 || other->second.version.written == 0) continue;
    (file.version.written < other->second.version.written ? a_first : b_first) = true;
  }
  return a_first && b_first;
}

// Where a rank has begun to write another slot anew, this one's file may be of after what stays: nobody has it elsewhere, and that the ranks have gone
// round is seen by it.
bool is_after(const Protected& file, const Checkpoint& one) {
  const auto other = one.files.find(file.version.rank);
  if (other == one.files.end() || other->second.version.attempt != file.version.attempt || other->second.written_on() != file.written_on())
    return false;
  return other->second.version.written != 0 && other->second.version.written < file.version.written;
}

bool is_written_as_often_everywhere(const Checkpoint& one) {
  const auto differs = [&](const auto& file) { return file.second.version.number != one.files.begin()->second.version.number; };
  return std::none_of(one.files.begin(), one.files.end(), differs);
}

// In which of its turns each place has written the slot, where that is known. A rank that could not begin a file once has had fewer turns since. That shows in
// another slot, which all have written equally often and together: only what differs from there counts.
std::map<uint32_t, int64_t> turns_of(const Checkpoint& slot, List::const_iterator begin, List::const_iterator end) {
  std::map<uint32_t, int64_t> turns;
  for (const auto& [place, file] : slot.files)
    if (file.version.turn) turns[place] = file.version.turn;
  const auto compares = [&](const Checkpoint& one) {
    const auto has = [&](const auto& turn) {
      const auto file = one.files.find(turn.first);
      return file != one.files.end() && file->second.version.turn;
    };
    return &one != &slot && is_written_as_often_everywhere(one) && std::all_of(turns.begin(), turns.end(), has);
  };
  if (const auto other = std::find_if(begin, end, compares); other != end)
    for (auto& [place, turn] : turns) turn -= other->files.at(place).version.turn;
  return turns;
}

// Whether some places have written the slot anew in a later turn than others, which have written it less often. What these wrote since may lie on their
// nodes still, or could not be protected. Turns alone say nothing: a rank that could not begin a file once has had fewer.
bool is_ahead_of_a_place(const Checkpoint& slot, List::const_iterator begin, List::const_iterator end) {
  std::map<int64_t, std::pair<uint32_t, uint32_t>> numbers;  // by turn: the fewest and the most
  for (const auto& [place, turn] : turns_of(slot, begin, end)) {
    const uint32_t number = slot.files.at(place).version.number;
    auto& [fewest, most] = numbers.try_emplace(turn, number, number).first->second;
    fewest = std::min(fewest, number), most = std::max(most, number);
  }
  uint32_t fewest = UINT32_MAX;  // of earlier turns
  for (const auto& [turn, of] : numbers) {
    if (fewest < of.second) return true;
    fewest = std::min(fewest, of.first);
  }
  return false;
}

// A program that writes a few slots in turn, and dies while it writes one anew, leaves that one mixed: each file is whole, and some are of before. Ranks
// then disagree on which slot was written last. It is the one that they have not written equally often. While it runs, or where a file could not be
// protected or is lost, a rank may have no file of the other slot: then nobody disagrees, and their turns say who has gone round.
void mark_mixed(List::iterator begin, List::iterator end) {
  for (auto a = begin; a != end; ++a) {
    if (is_written_as_often_everywhere(*a)) continue;
    const auto disagrees = [&](const Checkpoint& b) { return &b != &*a && disagree_about(*a, b); };
    a->is_mixed = std::any_of(begin, end, disagrees) || is_ahead_of_a_place(*a, begin, end);
  }
}

// Of one attempt, in the order of their steps by now: each goes before those that were written after it. Partial ones make that no strict order.
void sort_as_written(List::iterator begin, List::iterator end) {
  if (!has_one_writer_for_each_place(begin, end)) return;
  mark_mixed(begin, end);
  for (auto next = begin; next != end; ++next) {
    const auto later = std::find_if(begin, next, [&](const Checkpoint& one) { return was_written_before(*next, one); });
    std::rotate(later, next, next + 1);
  }
}

}  // namespace

bool is_before(const Age& a, const Age& b) {
  if (a.attempt != b.attempt) return a.attempt < b.attempt;
  if (a.written && b.written && a.written != b.written && a.node == b.node) return a.written < b.written;
  return a.step < b.step;
}

Age Checkpoint::age() const { return files.empty() ? Age{attempt, step, 0, ""} : age_of(files.begin()->second); }

Age Checkpoint::age_beside(uint32_t at) const {
  const auto file = files.find(at);
  return file == files.end() ? Age{attempt, step, 0, ""} : age_of(file->second);
}

bool Checkpoint::has_all() const { return files.size() == ranks && files.rbegin()->first < ranks && !is_mixed; }

bool Checkpoint::whole() const {
  return has_all() && rivals.empty() && std::all_of(files.begin(), files.end(), [](const auto& file) { return file.second.readable; });
}

bool Checkpoint::endures() const {
  return whole() && std::all_of(files.begin(), files.end(), [](const auto& file) { return file.second.endures; });
}

const Protected* Checkpoint::file_at(const std::string& path) const {
  const auto found = std::find_if(files.begin(), files.end(), [&](const auto& file) { return file.second.version.file == path; });
  return found == files.end() ? nullptr : &found->second;
}

bool Checkpoint::complete() const {
  return std::all_of(files.begin(), files.end(), [](const auto& file) { return file.second.complete; });
}

std::set<std::string> Checkpoint::nodes() const {
  std::set<std::string> all;
  for (const auto& [rank, file] : files) all.insert(file.on.begin(), file.on.end());
  return all;
}

std::vector<Checkpoint> checkpoints_of(const std::vector<Protected>& found) {
  std::map<std::tuple<std::string, uint32_t, uint64_t>, Checkpoint> by_step;
  for (const Protected& one : found) {
    const layout::Version& version = one.version;
    Checkpoint& checkpoint = by_step[{version.run, version.attempt, version.step}];
    checkpoint.run = version.run;
    checkpoint.attempt = version.attempt;
    checkpoint.step = version.step;
    checkpoint.ranks = std::max(checkpoint.ranks, version.ranks);
    const auto [place, first] = checkpoint.files.try_emplace(version.rank, one);
    if (first) continue;
    // The newest, and of two of one number (a protector that was started anew) the one that can be read.
    const auto order = [](const Protected& p) { return std::make_tuple(p.version.number, p.readable, p.complete, p.file_id); };
    const bool newer = order(place->second) < order(one);
    checkpoint.older.push_back(newer ? place->second : one);
    if (place->second.version.number == version.number && place->second.written_on() != one.written_on()) checkpoint.rivals.push_back(one);
    if (newer) place->second = one;
  }
  std::vector<Checkpoint> all;
  for (auto& [key, checkpoint] : by_step) {
    std::erase_if(checkpoint.rivals, [&](const Protected& p) { return p.version.number < checkpoint.files.at(p.version.rank).version.number; });
    for (const auto& [rank, file] : checkpoint.files) checkpoint.bytes += file.bytes;
    all.push_back(std::move(checkpoint));
  }
  for (auto begin = all.begin(); begin != all.end();) {
    const auto is_other = [&](const Checkpoint& one) { return one.run != begin->run || one.attempt != begin->attempt; };
    const auto end = std::find_if(begin, all.end(), is_other);
    sort_as_written(begin, end);
    begin = end;
  }
  return all;
}

const Checkpoint* newest_whole(const std::vector<Checkpoint>& all, const std::string& run) {
  const Checkpoint* newest = nullptr;
  for (const Checkpoint& one : all)
    if (one.run == run && one.whole()) newest = &one;  // in their order
  return newest;
}

std::vector<Protected> to_drop(const std::vector<Checkpoint>& all, const std::string& run, size_t keep) {
  std::vector<Protected> gone;
  size_t kept = 0;
  const Checkpoint* oldest = nullptr;  // of those that are kept and endure
  for (auto one = all.rbegin(); one != all.rend(); ++one) {
    if (one->run != run) continue;
    const bool stays = kept < keep;
    if (stays && one->endures()) oldest = &*one, ++kept;
    const auto drop = [&](const Protected& file) {
      if (stays || !oldest || !is_after(file, *oldest)) gone.push_back(file);
    };
    if (!stays)
      for (const auto& [rank, file] : one->files) drop(file);
    // What was replaced may be all that is readable of a file until its newer version is.
    if (!stays || one->endures()) std::for_each(one->older.begin(), one->older.end(), drop);
  }
  return gone;
}

}  // namespace holdfast::checkpoint
