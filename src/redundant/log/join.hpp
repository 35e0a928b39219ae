// A team that has resumed from a checkpoint of its own: where in the log is the first change that it makes?
//
// The newest call there that is the same; where it is known which files it has resumed from, the first one since these were written. Where there is
// none yet the next change that is written down has to be it. A program that resumes at the same place changes the same things in the same order.
//
// Pure: entries in.
#pragma once
#include <optional>
#include <set>

#include "redundant/log/catch_up.hpp"

namespace holdfast::redundant {

class Join {
 public:
  // `name`: of the file, where it was opened before. Which of its opens that is in the log only the log says. `from`: subjects of calls by which what
  // it has resumed from was written; 0 among them: it was there when the log began.
  Join(uint64_t subject, const Claim& claim, std::optional<uint64_t> name, std::set<uint64_t> from)
      : subject_(subject), claim_(claim), name_(name), from_(std::move(from)), has_from_(from_.erase(0) > 0) {}

  // The log's entries, and where each begins.
  void add(const Entry& entry, uint64_t at);
  // All that was there when the call came has been added.
  void has_all() { has_all_ = true; }

  std::optional<uint64_t> place() const { return place_; }
  // Decisions that stand before it and are asked for later.
  const CatchUp::Later& later() const { return later_; }
  // Another change was made in its place.
  bool is_contradicted() const { return contradicted_ && !place_; }
  // Before that place messages were received from anybody. Such receives are counted from the program's beginning.
  bool has_matches_before() const { return matches_before_; }

 private:
  uint64_t subject_;
  const Claim claim_;
  const std::optional<uint64_t> name_;
  std::set<uint64_t> from_;  // of which nothing has been seen yet
  bool has_from_;
  std::optional<uint64_t> place_;
  uint64_t number_ = 0;
  CatchUp::Later waiting_, later_;  // before this entry; before its place
  bool has_all_ = false, contradicted_ = false, matches_ = false, matches_before_ = false;
};

}  // namespace holdfast::redundant
