// The receives of a rank on one communicator, in the order in which its program posts them, where some of them take a message from anybody. Which
// one the leader's got is a decision; the others wait for it and then ask for that message. Until then everything that was posted later
// and could take the same message has to wait with them. Messages go to receives in the order in which these are posted.
//
// A leader posts all as they are. When it sees that a message has come it tells first what came for those that were posted before and could
// have taken it (before()). They must have got another one already.
//
// Pure: knows no MPI.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

namespace holdfast::redundant {

inline constexpr int anybody = -1;  // as a source, or as a tag

struct Envelope {
  int source = anybody, tag = anybody;
  bool is_open() const { return source == anybody || tag == anybody; }
  // One message could be for both.
  bool overlaps(const Envelope& other) const;
  bool operator==(const Envelope&) const = default;
};

class Receives {
 public:
  using Name = uint64_t;
  static constexpr Name last = ~Name(0);

  Name begin(Envelope wanted);
  // The program has it, or does not want it any more.
  void end(Name name);

  // What the leader's `number`-th open receive got, or that it was cancelled; perhaps before this replica has come there.
  void decided(uint64_t number, std::optional<Envelope> got);
  void lead() { leads_ = true; }

  // The first that may be posted now, and is not.
  std::optional<Name> next_ready() const;
  void posted(Name name) { is_posted_now(all_.at(name)); }
  bool is_posted(Name name) const { return all_.at(name).is_posted; }
  // Nobody can say yet what it gets.
  bool is_open(Name name) const { return all_.at(name).is_open; }
  bool is_cancelled(Name name) const { return all_.at(name).is_cancelled; }
  uint64_t number(Name name) const { return all_.at(name).number; }
  // What to ask for.
  Envelope envelope(Name name) const { return all_.at(name).envelope; }

  // The leader's: open ones posted before `name` that could have taken what has come. Each of them has a message of its own by now.
  std::vector<Name> before(Name name, Envelope seen) const;
  // Whether a message like this may be one that a receive before takes, which cannot be posted yet.
  bool holds_back(Envelope seen) const;
  bool empty() const { return all_.empty(); }

 private:
  struct One {
    Envelope envelope;
    uint64_t number = 0;  // among those that were open when they were posted, from 1
    bool is_open = false, is_posted = false, is_cancelled = false;
  };
  bool is_held(Name name, const One& one) const;
  void set_match(One& one, std::optional<Envelope> got);
  void is_posted_now(One& one) {
    if (!one.is_posted) --not_posted_;
    one.is_posted = true;
  }

  std::map<Name, One> all_;
  std::map<uint64_t, std::optional<Envelope>> early_;
  size_t not_posted_ = 0;
  Name next_ = 1;
  uint64_t numbers_ = 0;
  bool leads_ = false;
};

}  // namespace holdfast::redundant
