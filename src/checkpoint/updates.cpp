#include "checkpoint/updates.hpp"

#include <algorithm>
#include <map>

namespace holdfast::checkpoint {

namespace {

// Begun, and neither protected nor removed: whatever has become of its writer.
bool is_unfinished(State state) { return is_written_here(state) && !is_settled(state) && state != State::together; }

bool has_further_than(const Checkpoint& one, uint32_t number) {
  return std::any_of(one.files.begin(), one.files.end(), [&](const auto& file) { return file.second.version.number > number; });
}

// The file whose writing again came to no end, where others are further; null where there is none.
const Protected* torn_update_of(const Checkpoint& one, const std::vector<LocalEntry>& local) {
  for (const LocalEntry& entry : local) {
    if (entry.run != one.run || entry.attempt != one.attempt || entry.name.step != one.step || !is_unfinished(entry.state)) continue;
    const Protected* const file = one.file_at(entry.name.file);
    if (file && file->version.number < entry.name.number && has_further_than(one, file->version.number)) return file;
  }
  return nullptr;
}

}  // namespace

bool is_of_two_times(const DrainedCheckpoint& drained, const std::string& torn) {
  const auto file = std::find_if(drained.files.begin(), drained.files.end(), [&](const DrainedFile& one) { return one.path == torn; });
  const auto number = file != drained.files.end() ? file->number() : std::nullopt;
  return number && std::any_of(drained.files.begin(), drained.files.end(), [&](const DrainedFile& one) {
           const auto other = one.number();
           return other && other->second > number->second;
         });
}

namespace {

// The plain file is no later than the version by which the checkpoint is marked, and was written with it.
bool are_half_written(const DrainedCheckpoint& drained, const Checkpoint& one) {
  const Protected* const half = one.half_written.file.empty() ? nullptr : one.file_at(one.half_written.file);
  return half && std::any_of(drained.files.begin(), drained.files.end(), [&](const DrainedFile& file) {
           const auto number = file.path == half->version.file ? file.number() : std::nullopt;
           const uint32_t last = half->version.number;
           return number && number->second <= last && number->second + half->version.times > last;
         });
}

}  // namespace

bool is_drained_in_part(const DrainedCheckpoint& drained, const std::vector<Checkpoint>& all) {
  return std::any_of(all.begin(), all.end(), [&](const Checkpoint& one) {
    return one.run == drained.run && one.attempt == drained.attempt && one.step == drained.step &&
           ((!one.torn_update.empty() && is_of_two_times(drained, one.torn_update)) || are_half_written(drained, one));
  });
}

void mark_torn_updates(std::vector<Checkpoint>& all, const std::vector<LocalEntry>& local, const std::vector<DrainedCheckpoint>& drained) {
  std::set<std::string> runs;  // with something older that is whole
  // Its own plain files may be as it is.
  const auto has_plain = [&](const Checkpoint& one, const std::string& torn) {
    return std::any_of(drained.begin(), drained.end(), [&](const DrainedCheckpoint& plain) {
      const bool is_its = plain.attempt == one.attempt && plain.step == one.step;
      return plain.run == one.run && !plain.are_singles && !(is_its && is_of_two_times(plain, torn));
    });
  };
  for (Checkpoint& one : all) {  // ascending
    const Protected* const torn = !one.are_singles && one.has_all() ? torn_update_of(one, local) : nullptr;
    if (torn && (runs.contains(one.run) || has_plain(one, torn->version.file))) one.torn_update = torn->version.file, one.is_mixed = true;
    if (one.whole()) runs.insert(one.run);
  }
}

void add_torn_updates(const std::vector<Checkpoint>& all, std::set<std::string>& ids) {
  add_half_written(all, ids);
  for (const Checkpoint& one : all)
    for (const auto& [place, file] : one.files)
      if (!one.torn_update.empty()) ids.insert(file.file_id);
}

namespace {

using OfParts = std::map<uint32_t, std::map<uint32_t, uint32_t>>;  // by pattern and rank: beyond the rank that has written least often

OfParts differences_in(const Checkpoint& one, const Patterns& patterns) {
  OfParts parts;
  for (const auto& [place, file] : one.files)
    if (const auto named = patterns.match(file.version.file); named && patterns.have_rank(named->part))
      parts[named->part][named->rank] = file.version.number;
  for (auto& [part, numbers] : parts) {
    const auto by_number = [](const auto& a, const auto& b) { return a.second < b.second; };
    const uint32_t fewest = std::min_element(numbers.begin(), numbers.end(), by_number)->second;
    for (auto& [rank, number] : numbers) number -= fewest;
  }
  return parts;
}

}  // namespace

// Where rolls list a rank's files each of these has a number of its own, and nothing says how they belong together.
std::optional<Uneven> written_unevenly(const Checkpoint& one, const std::vector<Checkpoint>& all, const Patterns& patterns) {
  if (one.writers > 0) return {};
  const OfParts now = differences_in(one, patterns);
  for (const Checkpoint& other : all) {
    const bool is_older = &other < &one && other.run == one.run && other.attempt == one.attempt;
    if (is_older && other.whole() && differences_in(other, patterns) == now) return {};
  }
  for (const auto& [part, numbers] : now) {
    Uneven uneven{0, numbers.size(), 0};
    for (auto rank = numbers.rbegin(); rank != numbers.rend(); ++rank)
      if (rank->second > 0) ++uneven.more_often, uneven.first_rank = rank->first;
    if (uneven.more_often > 0) return uneven;
  }
  return {};
}

}  // namespace holdfast::checkpoint
