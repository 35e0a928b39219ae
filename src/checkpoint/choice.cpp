#include "checkpoint/choice.hpp"

#include <algorithm>

namespace holdfast::checkpoint {

bool Checkpoint::has_all() const { return files.size() == ranks && files.rbegin()->first < ranks; }

bool Checkpoint::whole() const {
  return has_all() && rivals.empty() && std::all_of(files.begin(), files.end(), [](const auto& file) { return file.second.readable; });
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
  for (auto one = all.rbegin(); one != all.rend(); ++one) {
    if (one->run != run) continue;
    const bool stays = kept < keep;
    kept += stays && one->whole();
    if (!stays)
      for (const auto& [rank, file] : one->files) gone.push_back(file);
    // What was replaced may be all that is readable of a file until its newer version is.
    if (!stays || one->whole()) gone.insert(gone.end(), one->older.begin(), one->older.end());
  }
  return gone;
}

}  // namespace holdfast::checkpoint
