// What the files of checkpoints may hold, and which checkpoints are promised: no code of the product. Each write has bytes that nobody else has, and
// begins with its number, so that whatever is read says where it is from.
//
// A round is a checkpoint as the job writes it: each rank writes its file. Rounds of one attempt follow each other; a slot is written in several of them. A round
// is promised once somebody was told that it is whole. From then on it is found as long as each of its files has lost no more nodes than the
// scheme bears, until `keep` later ones are promised, or one of its files is written anew. Not where it may be half. Where the program has removed a file of it, an older one of which it has
// removed none may take its place.
#pragma once
#include <algorithm>
#include <cstring>
#include <deque>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "base/bytes.hpp"
#include "catalog/versions.hpp"

namespace holdfast::sim {

class CheckpointsModel {
 public:
  using Round = std::pair<uint64_t, uint64_t>;  // which start of the job, and which of it

  struct Write {
    uint64_t number = 0;
    Round round;
    uint64_t step = 0;
    std::string path;
    uint32_t rank = 0;  // whose it is
    Bytes content;
    bool complete = false;  // all of it was written: the close may have come
  };

  // Another write, of so many bytes. Its number.
  uint64_t begin_write(Round round, uint64_t step, std::string path, uint32_t rank, size_t bytes, std::mt19937_64& random) {
    Write write{writes_.size() + 1, round, step, std::move(path), rank, Bytes(std::max(bytes, sizeof(uint64_t))), false};
    for (std::byte& byte : write.content) byte = std::byte(random());
    std::memcpy(write.content.data(), &write.number, sizeof write.number);
    writes_.push_back(std::move(write));
    return writes_.back().number;
  }
  // Of what another write has left, in the same round: its number, and one part (offset and bytes) that may go beyond its end.
  uint64_t begin_update(const Write& of, std::pair<size_t, size_t> part, std::mt19937_64& random) {
    const auto [offset, bytes] = part;
    Write write = of;
    write.complete = false;
    write.number = writes_.size() + 1;
    write.content.resize(std::max(of.content.size(), offset + bytes));
    for (size_t i = 0; i < bytes; ++i) write.content[offset + i] = std::byte(random());
    std::memcpy(write.content.data(), &write.number, sizeof write.number);
    writes_.push_back(std::move(write));
    return writes_.back().number;
  }
  // Whether another rank has written it in that start of the job, or is about to.
  bool is_of_another(uint64_t start, const std::string& path, uint32_t rank) const {
    return std::any_of(writes_.begin(), writes_.end(),
                       [&](const Write& one) { return one.round.first == start && one.path == path && one.rank != rank; });
  }
  // Of that file, in that start of the job; null where nobody has written it.
  const Write* last_of(uint64_t start, const std::string& path) const {
    const auto one = std::find_if(writes_.rbegin(), writes_.rend(), [&](const Write& w) { return w.round.first == start && w.path == path; });
    return one == writes_.rend() ? nullptr : &*one;
  }
  Write& write(uint64_t number) { return writes_[number - 1]; }
  // Whose bytes these are, all of them; null where nobody has written that.
  const Write* who_wrote(const Bytes& bytes) const {
    uint64_t number = 0;
    if (bytes.size() < sizeof number) return nullptr;
    std::memcpy(&number, bytes.data(), sizeof number);
    if (number == 0 || number > writes_.size()) return nullptr;
    const Write& one = writes_[number - 1];
    return one.complete && one.content == bytes ? &one : nullptr;
  }
  // The version of it has this name in the pool: run, attempt, step, place, file, number, and whose node.
  using Key = std::tuple<std::string, layout::Attempt, uint64_t, uint32_t, std::string, uint32_t, std::string>;
  static Key key_of(const layout::Version& version, const std::string& node_digits) {
    return {version.run, version.attempt, version.step, version.rank, version.file, version.number, node_digits};
  }
  static Key key_of(const layout::Manifest& manifest) {
    return key_of(*manifest.version, manifest.file_id.substr(manifest.file_id.size() - catalog::node_digits));
  }
  // For whoever looks at a failure: what is nearest to these bytes.
  std::string likeness(const Bytes& bytes) const {
    uint64_t number = 0;
    std::memcpy(&number, bytes.data(), std::min(bytes.size(), sizeof number));
    if (number == 0 || number > writes_.size()) return std::to_string(bytes.size()) + " bytes of none";
    const Write& one = writes_[number - 1];
    const auto differs = std::mismatch(bytes.begin(), bytes.end(), one.content.begin(), one.content.end()).first - bytes.begin();
    return std::to_string(bytes.size()) + " bytes, as write " + std::to_string(number) + " (" + one.path + ", " + std::to_string(one.content.size()) +
           " bytes" + (one.complete ? ")" : ", not complete)") + " up to byte " + std::to_string(differs);
  }
  void name(uint64_t number, const Key& key) { names_[key] = number; }
  const Write* named(const Key& key) const {
    const auto found = names_.find(key);
    return found == names_.end() ? nullptr : &writes_[found->second - 1];
  }

  // --- nodes
  std::vector<std::set<std::string>> held;  // by node: ids of versions

  // --- promises
  struct File {
    std::string id;
    Key key;
    int least = 0, width = 0;  // units of which it can be made, and all
  };
  struct Promise {
    uint64_t step = 0;
    std::map<std::string, File> files;  // by path
  };
  std::map<Round, Promise> promised;

  // How often the rank has closed each of its files in that round, at least; 0: it has written none. `until`: the last write that counts.
  size_t times_closed(const Round& round, uint32_t rank, uint64_t until = UINT64_MAX) const {
    std::map<std::string, size_t> times;
    for (const Write& one : writes_)
      if (one.round == round && one.rank == rank && one.number <= until) times[one.path] += one.complete;
    const auto fewest = std::min_element(times.begin(), times.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
    return fewest == times.end() ? 0 : fewest->second;
  }
  // Files of it were closed fewer times than those of a round before: they may be written in part, and an older one may take its place. Another rank may have written these.
  bool may_be_half(const Round& round) const {
    std::set<uint32_t> here;
    size_t most = 0;
    for (const Write& one : writes_) {
      if (one.round == round) here.insert(one.rank);
      if (one.round < round) most = std::max(most, times_closed(one.round, one.rank));
    }
    return std::any_of(here.begin(), here.end(), [&](uint32_t rank) { return times_closed(round, rank) < most; });
  }
  // Of what was written last, whether it is promised or not: before any write that of none.
  Round last_written() const {
    Round last;
    for (const Write& one : writes_) last = std::max(last, one.round);
    return last;
  }
  // Whether a file of that round was written anew since, or updated.
  bool is_replaced(const Round& round) const {
    const Promise& promise = promised.at(round);
    for (const Write& one : writes_) {
      if (one.round.first != round.first || one.step != promise.step) continue;
      if (one.round.second > round.second || (one.round == round && last_promised(promise, one) < one.number)) return true;
    }
    return false;
  }
  // Of the write's path, as it is promised; the write's own number where that is not known.
  uint64_t last_promised(const Promise& promise, const Write& write) const {
    for (const auto& [place, file] : promise.files)
      if (const Write* const one = named(file.key); one && one->path == write.path) return one->number;
    return write.number;
  }
  bool bears(const Promise& promise, const std::set<int>& lost) const {
    for (const auto& [place, file] : promise.files) {
      int there = 0;
      for (size_t node = 0; node < held.size(); ++node) there += !lost.contains(int(node)) && held[node].contains(file.id);
      if (there < file.least) return false;
    }
    return true;
  }
  // --- removals: of all that was written of it until then
  void remove(const std::string& path) { removed_[path] = writes_.size(); }
  bool is_removed(const Write& write) const {
    const auto removed = removed_.find(write.path);
    return removed != removed_.end() && write.number <= removed->second;
  }
  // A file of it: the program may have given the checkpoint up.
  bool is_removed(const Promise& promise) const {
    return std::any_of(promise.files.begin(), promise.files.end(), [&](const auto& file) {
      const Write* const write = named(file.second.key);
      return write && is_removed(*write);
    });
  }
  // The newest that is to be found while these nodes are lost. Before all rounds: any one, for the program has removed files of all of them.
  std::optional<Round> must_find(size_t keep, const std::set<int>& lost) const {
    std::optional<Round> found;
    size_t later = 0;
    for (auto one = promised.rbegin(); one != promised.rend() && later < keep; ++one, ++later) {
      if (is_replaced(one->first) || may_be_half(one->first) || !bears(one->second, lost)) continue;
      if (!is_removed(one->second)) return one->first;
      found = Round();
    }
    return found;
  }

 private:
  std::deque<Write> writes_;  // ranks write a content while others begin theirs: it stays where it is
  std::map<Key, uint64_t> names_;
  std::map<std::string, uint64_t> removed_;  // by path: how many writes there were
};

}  // namespace holdfast::sim
