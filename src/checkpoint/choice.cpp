#include "checkpoint/choice.hpp"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "checkpoint/drained.hpp"
#include "checkpoint/half_written.hpp"
#include "checkpoint/singles.hpp"

namespace holdfast::checkpoint {

namespace {

using List = std::vector<Checkpoint>;

Age age_of(const Protected& file) { return {file.version.attempt, file.version.step, file.version.written, file.written_on()}; }

// Where rolls say what belongs to a checkpoint a rank may write several of its files, else each place is one's.
uint32_t who_wrote(const Protected& file) { return file.version.writers ? file.version.writer : file.version.rank; }

using FileOf = std::map<uint32_t, const Protected*>;

// What stands for when a checkpoint was written: the file of each place, or where rolls say what belongs to it each rank's last one. What lies beside it may
// have come long after it.
FileOf last_files(const Checkpoint& one) {
  FileOf last;
  for (const auto& [place, file] : one.files) {
    const Protected*& there = last[who_wrote(file)];
    if (!there || there->version.written < file.version.written) there = &file;
  }
  return last;
}

// Of a rank that has removed all its files of one the first of these says it.
FileOf last_files_or_beside(const Checkpoint& one) {
  FileOf last = last_files(one), beside;
  for (const auto& [place, file] : one.beside) {
    const Protected*& there = beside[who_wrote(file)];
    if (!there || there->version.written > file.version.written) there = &file;
  }
  last.merge(beside);
  return last;
}

std::optional<bool> is_before_by_place(const FileOf& files, const FileOf& others) {
  for (const auto& [place, file] : files)
    if (const auto other = others.find(place); other != others.end()) return is_before(age_of(*file), age_of(*other->second));
  return {};
}

using Places = std::set<uint32_t>;

FileOf at_places(FileOf files, const Places& places) {
  std::erase_if(files, [&](const auto& file) { return !places.contains(file.first); });
  return files;
}

// A file of all ranks has the node that stands for all, whichever rank has begun it.
std::optional<bool> is_before_by_file(const Checkpoint& a, const Checkpoint& b) {
  for (const auto& [place, file] : a.files) {
    const auto other = b.files.find(place);
    if (other == b.files.end() || other->second.written_on() != file.written_on()) continue;
    const uint64_t of_a = file.version.written, of_b = other->second.version.written;
    if (of_a && of_b && of_a != of_b) return of_a < of_b;
  }
  return {};
}

// By the first of these places that both have. One that is not whole may lack the first of all, or have none in common with another.
bool was_written_before(const Checkpoint& a, const Checkpoint& b, const Places& places) {
  if (const auto before = is_before_by_place(at_places(last_files(a), places), at_places(last_files(b), places))) return *before;
  if (const auto before = is_before_by_place(at_places(last_files_or_beside(a), places), at_places(last_files_or_beside(b), places))) return *before;
  return is_before_by_file(a, b).value_or(false);
}

// Of one attempt: those whose files come from one node. What several nodes have counted says nothing together. Of a file that different ranks write in turn, which completes
// each checkpoint, that is so; the checkpoint's other files say which was written first.
Places places_of_one_writer(List::const_iterator begin, List::const_iterator end) {
  std::map<uint32_t, std::set<std::string>> writers;
  for (auto one = begin; one != end; ++one)
    for (const auto* const files : {&one->files, &one->beside})
      for (const auto& [place, file] : *files) writers[who_wrote(file)].insert(file.written_on());
  Places places;
  for (const auto& [place, nodes] : writers)
    if (nodes.size() == 1) places.insert(place);
  return places;
}

// Whether some places say that `a` came first, and others that `b` did.
bool disagree_about(const Checkpoint& a, const Checkpoint& b) {
  bool a_first = false, b_first = false;
  const auto others = last_files(b);
  for (const auto& [place, file] : last_files(a)) {
    const auto other = others.find(place);
    if (other == others.end() || file->version.written == 0 || other->second->version.written == 0) continue;
    (file->version.written < other->second->version.written ? a_first : b_first) = true;
  }
  return a_first && b_first;
}

// Where a rank has begun to write another slot anew, this one's file may be of after what stays. Nobody has it elsewhere, and it alone shows that the
// ranks have gone round.
bool is_after(const Protected& file, const Checkpoint& one) {
  const auto last = last_files_or_beside(one);
  const auto of_writer = file.version.writers ? last.find(file.version.writer) : last.end();
  const Protected* const other = of_writer == last.end() ? one.counterpart_of(file) : of_writer->second;
  if (!other || other->version.attempt != file.version.attempt || other->written_on() != file.written_on()) return false;
  return other->version.written != 0 && other->version.written < file.version.written;
}

// By what is to be written equally often: each place, or where rolls say what belongs to a checkpoint each rank. Of a rank's files the one that it has written
// least often counts, for it may write one twice in one turn.
struct Turn {
  uint32_t number = 0, turn = 0;  // 0: not known
  uint32_t first = 0;             // the turn of that one of its files which is of the longest ago
};
// Each close makes a version: one of several closes in each turn has as many numbers more.
uint32_t turns_written(const layout::Version& version) { return uint32_t(divide_up(version.number, std::max(version.times, 1u))); }

std::map<uint32_t, Turn> turns_in(const Checkpoint& one) {
  std::map<uint32_t, Turn> turns;
  for (const auto& [place, file] : one.files) {
    const layout::Version& version = file.version;
    const Turn here{turns_written(version), version.turn, version.turn};
    const auto [at, first] = turns.try_emplace(who_wrote(file), here);
    Turn& turn = at->second;
    if (!first) turn = {std::min(turn.number, here.number), std::max(turn.turn, here.turn), std::min(turn.first, here.first)};
  }
  return turns;
}

bool is_written_as_often_everywhere(const Checkpoint& one) {
  const auto turns = turns_in(one);
  return std::none_of(turns.begin(), turns.end(), [&](const auto& turn) { return turn.second.number != turns.begin()->second.number; });
}

bool has_equal_numbers(const Checkpoint& one) {
  const auto is_other = [&](const auto& file) { return file.second.version.number != one.files.begin()->second.version.number; };
  return std::none_of(one.files.begin(), one.files.end(), is_other);
}

// In which of its turns each has written the slot, where that is known. A rank that could not begin a file once has had fewer turns since. That shows in
// another slot, which all have written equally often and together: only what differs from there counts. Where a rank has begun to write that one anew, the
// turn before that is what they have in common.
std::map<uint32_t, int64_t> turns_of(const Checkpoint& slot, List::const_iterator begin, List::const_iterator end) {
  std::map<uint32_t, int64_t> turns;
  for (const auto& [who, turn] : turns_in(slot))
    if (turn.turn) turns[who] = turn.turn;
  for (auto one = begin; one != end; ++one) {
    const auto others = turns_in(*one);
    const auto has = [&](const auto& turn) {
      const auto other = others.find(turn.first);
      return other != others.end() && other->second.first;
    };
    if (&*one == &slot || !is_written_as_often_everywhere(*one) || !std::all_of(turns.begin(), turns.end(), has)) continue;
    for (auto& [who, turn] : turns) turn -= others.at(who).first;
    break;
  }
  return turns;
}

// Whether some places have written the slot anew in a later turn than others, which have written it less often. What these wrote since may lie on their
// nodes still, or could not be protected. Turns alone say nothing: a rank that could not begin a file once has had fewer.
bool is_ahead_of_a_place(const Checkpoint& slot, List::const_iterator begin, List::const_iterator end) {
  std::map<int64_t, std::pair<uint32_t, uint32_t>> numbers;  // by turn: the fewest and the most
  const auto here = turns_in(slot);
  for (const auto& [who, turn] : turns_of(slot, begin, end)) {
    const uint32_t number = here.at(who).number;
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

// A program that writes a few slots in turn, and dies while it writes one anew, leaves that one mixed. Each file is whole, and some are of before. Ranks
// then disagree on which slot was written last. It is the one that they have not written equally often. While it runs, or where a file could not be
// protected or is lost, a rank may have no file of the other slot. Then nobody disagrees, and their turns say who has gone round.
void mark_mixed(List::iterator begin, List::iterator end) {
  for (auto a = begin; a != end; ++a) {
    if (has_equal_numbers(*a)) continue;
    const bool is_as_often = is_written_as_often_everywhere(*a);
    // Of two that disagree it is the one that was not written as often everywhere. By its numbers, where that does not tell: a rename takes one for several closes.
    const auto disagrees = [&](const Checkpoint& b) {
      return &b != &*a && (!is_as_often || is_written_as_often_everywhere(b)) && disagree_about(*a, b);
    };
    a->is_mixed = std::any_of(begin, end, disagrees) || (!is_as_often && !a->is_said_at_once() && is_ahead_of_a_place(*a, begin, end));
  }
}

// Of one attempt, in the order of their steps by now: each goes before those that were written after it. Partial ones make that no strict order.
void sort_as_written(List::iterator begin, List::iterator end) {
  const Places places = places_of_one_writer(begin, end);
  const bool are_all = std::all_of(begin, end, [&](const Checkpoint& one) {
    return std::all_of(one.files.begin(), one.files.end(), [&](const auto& file) { return places.contains(who_wrote(file.second)); });
  });
  if (are_all) mark_mixed(begin, end);
  for (auto next = begin; next != end; ++next) {
    const auto later = std::find_if(begin, next, [&](const Checkpoint& one) { return was_written_before(*next, one, places); });
    std::rotate(later, next, next + 1);
  }
}

}  // namespace

bool is_before(const Age& a, const Age& b) {
  if (a.attempt != b.attempt) return a.attempt < b.attempt;
  if (a.written && b.written && a.written != b.written && a.node == b.node) return a.written < b.written;
  return a.step < b.step;
}

namespace {

// Whether one node's count says which of the two was first.
bool are_counted_by_one(const Age& a, const Age& b) {
  return a.attempt == b.attempt && a.node == b.node && a.written && b.written && a.written != b.written;
}

// The last that each node has counted.
std::map<std::string, Age> last_by_node(const Ages& ages) {
  std::map<std::string, Age> last;
  for (const auto& [place, age] : ages)
    if (const auto [at, first] = last.try_emplace(age.node, age); !first && at->second.written < age.written) at->second = age;
  return last;
}

}  // namespace

bool is_before(const Ages& a, const Ages& b) {
  const Age* of_one_place = nullptr;
  const Age* beside_it = nullptr;
  for (const auto& [place, age] : a) {
    const auto other = b.find(place);
    if (other == b.end()) continue;
    if (are_counted_by_one(age, other->second)) return is_before(age, other->second);
    if (!of_one_place) of_one_place = &age, beside_it = &other->second;
  }
  const auto others = last_by_node(b);
  for (const auto& [node, age] : last_by_node(a))
    if (const auto other = others.find(node); other != others.end() && are_counted_by_one(age, other->second)) return is_before(age, other->second);
  if (of_one_place) return is_before(*of_one_place, *beside_it);
  return !a.empty() && !b.empty() && is_before(a.begin()->second, b.begin()->second);
}

const Protected* Checkpoint::first_file() const { return files.empty() ? nullptr : last_files(*this).begin()->second; }

Age Checkpoint::age() const {
  if (are_singles) return {attempt, step, 0, ""};
  const Protected* const first = first_file();
  return first ? age_of(*first) : Age{attempt, step, 0, ""};
}

Ages Checkpoint::ages() const {
  if (are_singles) return {{UINT32_MAX, age()}};
  Ages all;
  for (const auto& [place, file] : last_files_or_beside(*this)) all.emplace(place, age_of(*file));
  return all;
}

Age Checkpoint::age_beside(uint32_t at, uint32_t writer) const {
  if (are_singles) return age();
  const auto last = last_files(*this);
  const auto file = last.find(writers ? writer : at);
  return file == last.end() ? Age{attempt, step, 0, ""} : age_of(*file->second);
}

const Protected* Checkpoint::counterpart_of(const Protected& file) const {
  const layout::Version& version = file.version;
  if (version.roll && version.roll->of_all) return roll_of_all ? &*roll_of_all : nullptr;
  if (version.roll) {
    const auto roll = rolls.find(version.writer);
    return roll == rolls.end() ? nullptr : &roll->second;
  }
  for (const auto* some : {&files, &beside})
    if (const auto other = some->find(FilePlace(version)); other != some->end()) return &other->second;
  return nullptr;
}

namespace {

// Those that have a place of their own.
bool is_counted(const std::pair<const FilePlace, Protected>& file) { return file.first.stem.empty(); }

}  // namespace

bool Checkpoint::has_all() const {
  if (are_singles) return !files.empty() || !lost.empty();
  const auto counted = std::count_if(files.begin(), files.end(), is_counted);
  const bool none_beside = std::none_of(files.begin(), files.end(), [&](const auto& file) { return is_counted(file) && file.first.number >= ranks; });
  return !files.empty() && counted == ranks && none_beside && !is_mixed && !is_emptied && half_written.file.empty() && is_rolled();
}

Checkpoint::ByPath Checkpoint::by_path() const {
  ByPath all;
  for (const auto& [place, file] : files) all.emplace(file.version.file, &file);
  return all;
}

// A file that was written anew since is of something that has not been said yet.
bool Checkpoint::has_what_is_rolled(const Protected& roll, const ByPath& files) {
  return std::all_of(roll.version.roll->files.begin(), roll.version.roll->files.end(), [&](const layout::Roll::File& listed) {
    const auto file = files.find(listed.path);
    if (file == files.end() || file->second->version.number < listed.number) return false;
    return listed.written == 0 || file->second->version.written <= listed.written;
  });
}

// Those that say together what belongs to it; none where it is not known, or not all there.
std::vector<const Protected*> Checkpoint::rolls_that_count() const {
  const ByPath all = by_path();
  if (roll_of_all && has_what_is_rolled(*roll_of_all, all)) return {&*roll_of_all};
  if (rolls.size() != writers || rolls.empty() || rolls.rbegin()->first >= writers) return {};
  std::vector<const Protected*> counting;
  for (const auto& [rank, roll] : rolls) {
    if (!has_what_is_rolled(roll, all)) return {};
    counting.push_back(&roll);
  }
  return counting;
}

// Not where the job has ended, and what there is was listed. What was written anew after the file that completes it may be of another turn.
bool Checkpoint::is_said_at_once() const {
  if (!roll_of_all || roll_of_all->version.turn == 0 || !has_what_is_rolled(*roll_of_all, by_path())) return false;
  const auto& listed = roll_of_all->version.roll->files;
  return std::all_of(listed.begin(), listed.end(),
                     [&](const layout::Roll::File& file) { return file.written != 0 && file.written <= roll_of_all->version.written; });
}

bool Checkpoint::is_rolled() const { return writers == 0 || !rolls_that_count().empty(); }

void Checkpoint::leave_out_what_is_not_listed() {
  std::set<std::string> listed;
  const auto counting = rolls_that_count();
  for (const Protected* const roll : counting)
    for (const layout::Roll::File& file : roll->version.roll->files) listed.insert(file.path);
  if (counting.empty()) return;
  for (auto file = files.begin(); file != files.end();) {
    const auto at = file++;
    if (!at->first.stem.empty() && !listed.contains(at->second.version.file)) beside.insert(files.extract(at));
  }
}

// The paths that rolls list and that have no version.
std::set<std::string> Checkpoint::missing() const {
  const ByPath all = by_path();
  std::set<std::string> paths;
  const auto add = [&](const Protected& roll) {
    for (const layout::Roll::File& listed : roll.version.roll->files)
      if (!all.contains(listed.path)) paths.insert(listed.path);
  };
  if (roll_of_all) add(*roll_of_all);
  for (const auto& [rank, roll] : rolls) add(roll);
  return paths;
}

std::optional<uint32_t> Checkpoint::silent_rank() const {
  if (is_rolled() || roll_of_all || rolls.empty()) return {};
  std::set<uint32_t> wrote;
  for (const auto* some : {&files, &beside})
    for (const auto& [place, file] : *some) wrote.insert(file.version.writer);
  for (uint32_t rank = 0; rank < writers; ++rank)
    if (!rolls.contains(rank) && !wrote.contains(rank)) return rank;
  return {};
}

std::string Checkpoint::why_not_rolled() const {
  if (is_rolled()) return "";
  if (const auto paths = missing(); !paths.empty()) return *paths.begin() + " belongs to it and is not protected";
  if (const auto silent = silent_rank())
    return fmt::format(
        "rank {} has written no file of it, and nothing says that it will write none: name a file that completes a checkpoint "
        "with --complete, or call holdfast_checkpoint_complete",
        *silent);
  for (uint32_t rank = 0; rank < writers && !roll_of_all; ++rank)
    if (!rolls.contains(rank)) return fmt::format("nothing says that rank {} has written all of it", rank);
  return "a file of it is being written anew";
}

size_t Checkpoint::files_of_all() const {
  const auto counted = size_t(std::count_if(files.begin(), files.end(), is_counted));
  return files.size() + missing().size() + (ranks > counted ? ranks - counted : 0);
}

bool Checkpoint::whole() const {
  if (are_singles) return !files.empty();  // each of them is
  return has_all() && rivals.empty() && std::all_of(files.begin(), files.end(), [](const auto& file) { return file.second.readable; });
}

bool Checkpoint::endures() const {
  const auto lasts = [](const auto& one) { return one.second.endures; };
  const bool is_said_for_good = std::all_of(rolls.begin(), rolls.end(), lasts) && (!roll_of_all || roll_of_all->endures);
  return whole() && is_said_for_good && std::all_of(files.begin(), files.end(), lasts);
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

namespace {

// Of two files of one place: a program has renamed one, or has removed it and written the other. Each has numbers of its own.
bool has_another_name(const Protected& a, const Protected& b) { return !a.version.roll && a.version.file != b.version.file; }

// Of two versions of one file. Of files of no checkpoint those of all attempts are compared, and of what cannot be read an older one is taken.
std::pair<layout::Attempt, uint32_t> number_of(const Protected& one) {
  return {one.version.is_single() ? one.version.attempt : layout::Attempt(), one.version.number};
}

// The newest, and of two of one number (a protector that was started anew) the one that can be read. Of rolls the longer one: processes of one rank may
// make one at the same time.
bool is_older(const Protected& a, const Protected& b) {
  const bool are_in_order = a.version.written && b.version.written && a.written_on() == b.written_on();
  if (has_another_name(a, b) && are_in_order && a.version.written != b.version.written) return a.version.written < b.version.written;
  const auto order = [](const Protected& p) {
    return std::make_tuple(p.version.is_single() && p.readable, number_of(p), p.version.roll ? p.version.roll->files.size() : 0, p.readable,
                           p.complete, p.file_id);
  };
  return order(a) < order(b);
}

void take(Checkpoint& checkpoint, Protected& there, const Protected& one) {
  const bool newer = is_older(there, one);
  checkpoint.older.push_back(newer ? there : one);
  const bool is_one_name = !has_another_name(there, one);
  if ((number_of(there) == number_of(one) || !is_one_name) && there.written_on() != one.written_on()) checkpoint.rivals.push_back(one);
  if (newer) there = one;
}

void add(Checkpoint& checkpoint, const Protected& one) {
  const layout::Version& version = one.version;
  checkpoint.run = version.run;
  checkpoint.attempt = std::max(checkpoint.attempt, version.attempt);
  checkpoint.are_singles = version.is_single();
  checkpoint.step = version.step;
  checkpoint.ranks = std::max(checkpoint.ranks, version.ranks);
  checkpoint.writers = std::max(checkpoint.writers, version.writers);
  if (version.roll && version.roll->of_all) {
    if (checkpoint.roll_of_all) take(checkpoint, *checkpoint.roll_of_all, one);
    else checkpoint.roll_of_all = one;
  } else if (version.roll) {
    if (const auto [at, first] = checkpoint.rolls.try_emplace(version.writer, one); !first) take(checkpoint, at->second, one);
  } else if (const auto [at, first] = checkpoint.files.try_emplace(FilePlace(version), one); !first) {
    take(checkpoint, at->second, one);
  }
}

// Programs empty older files to free their room, and that is the last that they have written. What stands in its own place is the program's newest, with or without
// content.
void mark_emptied(List& all) {
  const auto was_written_before = [](const auto& file) { return file.second.version.number > 1; };
  for (Checkpoint& one : all) {
    if (one.are_singles || one.bytes > 0 || one.files.empty() || !std::all_of(one.files.begin(), one.files.end(), was_written_before)) continue;
    const std::string& path = one.first_file()->version.file;
    one.is_emptied = std::any_of(all.begin(), all.end(), [&](const Checkpoint& other) {
      return other.run == one.run && other.bytes > 0 && other.has_all() && other.rivals.empty() && !other.file_at(path);
    });
  }
}

}  // namespace

std::vector<Checkpoint> checkpoints_of(const std::vector<Protected>& found) {
  std::map<std::tuple<std::string, layout::Attempt, uint64_t>, Checkpoint> by_step;
  const auto attempt_of = [](const layout::Version& version) { return version.is_single() ? layout::Attempt() : version.attempt; };
  for (const Protected& one : found) add(by_step[{one.version.run, attempt_of(one.version), one.version.step}], one);
  std::vector<Checkpoint> all;
  for (auto& [key, checkpoint] : by_step) {
    std::erase_if(checkpoint.rivals, [&](const Protected& rival) {
      const Protected& newest = *checkpoint.counterpart_of(rival);
      const bool is_by_one = has_another_name(rival, newest) && rival.written_on() == newest.written_on();
      return is_by_one || (!has_another_name(rival, newest) && number_of(rival) < number_of(newest));
    });
    checkpoint.leave_out_what_is_not_listed();
    if (checkpoint.are_singles) leave_out_lost(checkpoint);
    for (const auto& [rank, file] : checkpoint.files) checkpoint.bytes += file.bytes;
    all.push_back(std::move(checkpoint));
  }
  for (auto begin = all.begin(); begin != all.end();) {
    const auto is_other = [&](const Checkpoint& one) { return one.run != begin->run || one.attempt != begin->attempt; };
    const auto end = std::find_if(begin, all.end(), is_other);
    sort_as_written(begin, end);
    begin = end;
  }
  mark_half_written(all, {});  // of what is drained versions say nothing
  mark_emptied(all);
  return all;
}

bool is_later_than(const layout::Version& version, const std::string& file_id, const Run::From& from) {
  if (version.is_single() || version.attempt != from.attempt || version.step != from.step) return false;
  if (!version.roll && from.last_turn > 0 && version.turn > from.last_turn) return true;
  if (!version.roll && from.last_times > 0 && version.turn == from.last_turn && version.times > from.last_times) return true;
  if (from.last.empty()) return false;
  const auto last = from.last.find(catalog::node_digits_of(file_id));
  if (last == from.last.end()) return version.written > 0;
  // What is updated in place keeps its count, and gets another number. Rolls have numbers of their own.
  return version.written > last->second.written || (!version.roll && version.number > last->second.number);
}

Run::From from_of(const Checkpoint& one) {
  Run::From from{one.attempt, one.step, false, UINT32_MAX, UINT32_MAX};
  const auto count = [&](const Protected& file) {
    Run::From::Last& last = from.last[file.written_on()];
    last.written = std::max(last.written, file.version.written);
    if (!file.version.roll) last.number = std::max(last.number, file.version.number);
  };
  for (const auto& [place, file] : one.files) {
    from.turn = std::min(from.turn, file.version.turn), from.times = std::min(from.times, file.version.times);
    from.last_turn = std::max(from.last_turn, file.version.turn), from.last_times = std::max(from.last_times, file.version.times);
    count(file);
  }
  for (const auto& [rank, roll] : one.rolls) count(roll);
  if (one.roll_of_all) count(*one.roll_of_all);
  if (one.files.empty()) from.turn = from.times = 0;
  return from;
}

std::string name_of(const Checkpoint& one) {
  if (!one.are_singles) return fmt::format("checkpoint {}", one.step);
  return one.files.size() == 1 ? "1 file that is protected by itself" : fmt::format("{} files that are protected one by one", one.files.size());
}

const Checkpoint* newest_whole(const std::vector<Checkpoint>& all, const std::string& run) {
  const Checkpoint* newest = nullptr;
  for (const Checkpoint& one : all)
    if (one.run == run && one.whole() && one.removed.empty()) newest = &one;  // in their order
  return newest;
}

namespace {

// A roll goes with the files that it lists, whenever it was made: that may be late, behind a later checkpoint's.
bool goes_on_after(const Protected& file, const Checkpoint& of, const Checkpoint& oldest) {
  if (!file.version.roll) return is_after(file, oldest);
  const auto lists = [&](const layout::Version& version) {
    const auto& listed = file.version.roll->files;
    return std::any_of(listed.begin(), listed.end(), [&](const auto& one) { return one.path == version.file && one.number == version.number; });
  };
  const auto lists_one_after = [&](const auto& one) { return lists(one.second.version) && is_after(one.second, oldest); };
  return std::any_of(of.files.begin(), of.files.end(), lists_one_after) || std::any_of(of.beside.begin(), of.beside.end(), lists_one_after);
}

}  // namespace

std::vector<Protected> to_drop(const std::vector<Checkpoint>& all, const std::string& run, size_t keep) {
  std::vector<Protected> gone;
  size_t kept = 0;
  const Checkpoint* oldest = nullptr;  // of those that are kept and endure
  for (auto one = all.rbegin(); one != all.rend(); ++one) {
    if (one->run != run) continue;
    if (one->are_singles) {
      add_outdated(*one, keep, gone);
      continue;
    }
    const bool stays = kept < keep;
    if (stays && one->endures()) oldest = &*one, ++kept;
    const auto drop = [&](const Protected& file) {
      if (stays || !oldest || !goes_on_after(file, *one, *oldest)) gone.push_back(file);
    };
    if (!stays) {
      for (const auto* files : {&one->files, &one->beside})
        for (const auto& [place, file] : *files) drop(file);
      for (const auto& [rank, roll] : one->rolls) drop(roll);
      if (one->roll_of_all) drop(*one->roll_of_all);
    }
    // What was replaced may be all that is readable of a file until its newer version is. Of two of one number one may just be made anew from the other,
    // which goes then: they go together, with their checkpoint.
    for (const Protected& file : one->older) {
      const Protected* const newest = one->counterpart_of(file);
      if (!stays || (one->endures() && (!newest || has_another_name(file, *newest) || file.version.number < newest->version.number))) drop(file);
    }
  }
  return gone;
}

}  // namespace holdfast::checkpoint
