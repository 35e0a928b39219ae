// Targets that are slow for several ranks, other ones for each. A rank gives up what is late as long as its file can miss it
// (target/lane_group.hpp), and knows nothing of what others give up. Where the ranks meet they see all of it. What is more together than the file
// can miss is waited for, as long as any call comes back. It is taken back when it has been given what it has missed.
#include <algorithm>

#include "engine/agreement.hpp"
#include "engine/file.hpp"
#include "engine/waiting.hpp"

namespace holdfast::engine {

// What all ranks see.
struct File::Seen {
  MemberSet lost{}, back{};  // back: lost on some rank only for being late, and no call of it is outstanding
  int for_good = 0;
  bool came_back = false, any_missed = false;
};

// Collective.
File::Seen File::look_at_late(std::chrono::steady_clock::time_point since) {
  std::vector<int64_t> facts = members_.losses();
  for (size_t member = 0; member < facts.size(); ++member)
    if (facts[member] == 1) facts[member] = members_.has_come_back(int(member)) ? 1 : members_.late().has(int(member)) ? 2 : 3;
    else if (facts[member] == 2) facts[member] = 3;
  const size_t count = facts.size();
  facts.push_back(members_.came_back_since(since));
  facts.push_back(writer_.any_missed());
  facts = ranks_.all_max(std::move(facts));
  Seen seen{.came_back = facts[count] != 0, .any_missed = facts[count + 1] != 0};
  for (size_t member = 0; member < count; ++member) {
    if (facts[member] > 0) seen.lost.add(int(member));
    if (facts[member] == 1) seen.back.add(int(member));
    seen.for_good += facts[member] == 3;
  }
  return seen;
}

// It may have been late when the others were told that this opener lives. Where it gives no locks it is none of those that say so.
Status File::announce_on(int member) {
  if (opener_ == 0 || !located_.locks_may_end()) return {};
  auto lock = announce_opener_on(members_, located_, opener_, member);
  if (lock.ok()) presence_.push_back(std::move(*lock));
  const Kind kind = lock.status().kind();
  return kind == Kind::busy || kind == Kind::timed_out ? lock.status() : Status();
}

// Collective. A member is there again where each rank that had lost it has given it what it has missed of that rank's.
void File::make_up_late(const Seen& seen) {
  Result<Locks> locks(Locks{});
  if (seen.any_missed && ranks_.rank() == 0) locks = lock_and_look();
  if (ranks_.all_max({!locks.ok()})[0]) return;
  records_.forget_all();
  MemberSet given;
  for (const int member : seen.back) {
    if (!members_.late().has(member)) continue;  // what was read under the lock may have said that it is stale
    Status status = members_.submit(member, [](MemberHandle& handle) { return handle.settle(false); })->wait();
    if (status.ok()) status = announce_on(member);
    if (status.ok()) status = writer_.make_up(member, reader_);
    if (status.ok()) given.add(member);
    else if (status.kind() != Kind::timed_out && status.kind() != Kind::busy) members_.give_up(member);
  }
  std::vector<int64_t> missing(size_t(members_.count()));
  for (int member = 0; member < members_.count(); ++member) missing[size_t(member)] = !members_.available(member) && !given.has(member);
  missing = ranks_.all_max(std::move(missing));
  for (const int member : given)
    if (!missing[size_t(member)]) members_.take_back(member);
  records_.forget_all();
}

// Collective, where losses are contested. True where they are no more than can be missed now; else they are for good, on all ranks.
bool File::wait_for_late(Patience& patience) {
  const int may_miss = members_.may_miss();
  auto last_look = std::chrono::steady_clock::now();
  bool enough = false;
  for (;;) {
    const Seen seen = look_at_late(std::exchange(last_look, std::chrono::steady_clock::now()));
    enough = seen.lost.count() <= may_miss;
    if (enough || seen.for_good > may_miss) break;
    patience.quiet = seen.came_back ? 0 : patience.quiet + 1;
    if (patience.over()) break;
    if ((seen.lost - seen.back).count() <= may_miss) {
      make_up_late(seen);
      patience.looks += Patience::looks_per_deadline;
      continue;
    }
    ++patience.looks;
    members_.nudge();
    wait_while_busy(patience.pause);
  }
  if (!enough) members_.give_up();
  (void)agree(ranks_, members_, Status());
  return enough;
}

// Collective.
Status File::agree_outside_commit(const Status& mine) {
  Status status = agree(ranks_, members_, mine);
  if (members_.contested()) {
    Patience patience(settings_);
    (void)wait_for_late(patience);
  }
  return status;
}

}  // namespace holdfast::engine
