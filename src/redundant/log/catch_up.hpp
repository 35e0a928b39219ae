// A team that was started again, as it goes through the log of the one that it follows. What stands there is known before the program asks for it.
//
// Pure but for its source.
#pragma once
#include <deque>
#include <functional>
#include <map>
#include <optional>

#include "redundant/compare/meetings.hpp"
#include "redundant/decisions/decisions.hpp"
#include "redundant/log/log_file.hpp"

namespace holdfast::redundant {

class CatchUp {
 public:
  using Source = std::function<std::optional<Entry>()>;  // the next entry, where there is one by now
  CatchUp(Source source, Keeper& own) : source_(std::move(source)), own_(own) {}

  // What was before the place at which it joins is passed over, but for the numbers. `later`: decisions that are asked for after it all the same, by
  // subject, and the first number of each. Nothing: no more is there.
  using Later = std::map<uint64_t, uint64_t>;
  std::optional<Entry> pass_one(Meetings& meetings, Decisions& decisions, const Later& later);
  // From there on it changes files in the order of the log.
  void keep_order() { ordered_ = true; }
  // Whether this may be its next change, as far as the log is known. `may_be_a_look`: it changes nothing now (a file that was removed then is gone), or
  // nothing then.
  bool is_in_order(uint64_t subject, uint64_t number, bool may_be_a_look) const;
  void has_made(uint64_t subject, uint64_t number);

  // False: nothing more is there.
  bool take_one(Meetings& meetings, Decisions& decisions);
  // Its source has ended, or this replica hears of all that comes from now on by other ways.
  void take_all(Meetings& meetings, Decisions& decisions) {
    while (take_one(meetings, decisions)) {
    }
    follows_ = false;
    changes_.clear();
  }
  bool follows() const { return follows_; }
  int64_t read_until_ms() const { return read_until_ms_; }

  // What the `number`-th call on the subject has read then, once.
  std::optional<Bytes> bytes(uint64_t subject, uint64_t number);

 private:
  const Source source_;
  Keeper& own_;
  bool follows_ = true, ordered_ = false;
  std::deque<std::pair<uint64_t, uint64_t>> changes_;  // to be made again: subject and number
  int64_t read_until_ms_ = 0;
  std::map<uint64_t, std::deque<std::pair<uint64_t, Bytes>>> bytes_;  // by subject
};

}  // namespace holdfast::redundant
