// Where ranks are, and which have ended by themselves: names in their nodes' own directories. A launcher may end with 0 though it has lost a node, and the ranks with
// it (Open MPI 5). A rank's first process notes that it has begun, and that it has ended. Who was killed leaves the first note alone.
#pragma once
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "checkpoint/local.hpp"
#include "checkpoint/run.hpp"

namespace holdfast::checkpoint {

// Of the rank that this process is in. Where the launcher does not say which that is, or the note cannot be made, nothing is known of it.
class RankNote {
 public:
  explicit RankNote(const LocalFiles& files) : files_(files) {}
  // At its start, and again after an exec. What another process of the rank starts has none: its ends are not the rank's.
  void begins();
  // By itself. In a forked child nothing.
  void ends();
  void goes_on();  // after all: an exec has failed

 private:
  bool take();

  const LocalFiles& files_;
  std::string path_;  // empty: of another process, or of none
  int process_ = -1;
};

// The ranks of which some nodes have notes, whether they have ended or not. A job may have launched several programs: each has ranks of its own.
class RanksThere {
 public:
  // A name in such a node's directory of notes.
  void add(const std::string& note);
  // Each rank of each of these programs is among them. False where nothing is known.
  bool are_all() const;
  // The same of one rank, in programs of so many.
  bool has(uint32_t rank, uint32_t ranks) const;

 private:
  std::map<std::pair<std::string, uint32_t>, std::set<uint32_t>> programs_;  // by launch, and the number of ranks
};

// Those that have begun on this node, and not ended.
std::set<uint32_t> ranks_begun(const LocalFiles& files);

// Those of the attempt, as the nodes that answer know it. A rank may be there once for each time that its job script has started a launcher.
struct RanksThen {
  std::vector<uint32_t> never_ended;  // begun on a node that answers, and not ended by themselves
  bool any_ended = false;
  std::vector<std::string> silent;  // addresses of nodes that do not answer
  bool any_begun() const { return any_ended || !never_ended.empty(); }
};
RanksThen ranks_then(const Run& run, uint64_t deadline_ms);

}  // namespace holdfast::checkpoint
