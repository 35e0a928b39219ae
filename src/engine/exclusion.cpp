#include "engine/exclusion.hpp"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <map>

#include <fmt/format.h>

#include "engine/waiting.hpp"

namespace holdfast::engine {

namespace {

int fewest_to_hold(const catalog::Located& located) { return located.manifest.geometry.scheme.m + 1; }

// Where locks may end while their holder lives each member that he may write to says so itself.
int members_to_hold(const catalog::Located& located) { return located.locks_may_end() ? int(located.members.size()) : fewest_to_hold(located); }

struct Attempt {
  Locks locks;
  bool busy = false;
  int members = 0;  // of those that are held
  Status failure;   // of a member that answers and whose lock cannot be had
  Status holder;    // who has it, where it is busy

  bool take(Result<std::unique_ptr<target::Lock>> lock) {
    if (lock.ok()) locks.push_back(std::move(*lock));
    if (lock.status().kind() == Kind::busy) {
      busy = true;
      holder = lock.status();
    }
    return lock.ok();
  }
};

// The first M + 1 one after another, so that of two who come at once the first contested member decides. Or all that are needed in one round, for
// whoever contends with nobody.
enum class Order { in_turn, at_once };

// Locks on the first members that answer, until there are enough of them.
void take_on_members(Attempt& attempt, Members& members, const catalog::Located& located, const std::string& what, target::Hold hold, Order order,
                     const Members::Ahead& ahead = {}) {
  const auto ask = [&](int member) {
    const std::string name = located.meta_name(member, what);
    return ahead.name && members.is_far(member) ? members.ask_for_lock(member, name, hold, ahead) : members.ask_for_lock(member, name, hold);
  };
  const int enough = members_to_hold(located), fewest = fewest_to_hold(located);
  for (int next = 0; next < members.count() && attempt.members < enough && !attempt.busy;) {
    const int wanted = order == Order::at_once || attempt.members >= fewest ? enough - attempt.members : 1;
    std::vector<std::pair<int, target::AskedLock>> asked;
    for (; next < members.count() && int(asked.size()) < wanted; ++next)
      if (members.available(next)) asked.emplace_back(next, ask(next));
    // Those without a lock: M + 1 others are read under theirs, and one of these has what is newest.
    for (int other = next; ahead.name && other < members.count(); ++other)
      if (members.available(other) && members.is_far(other)) members.read_ahead(other, ahead);
    for (auto& [member, ticket] : asked) {
      auto lock = ticket.wait();
      const Status status = lock.status();
      if (attempt.take(std::move(lock))) ++attempt.members;
      else if (status.kind() == Kind::timed_out) members.lose(member, status);
      else if (status.kind() != Kind::busy) attempt.failure = status;
    }
  }
}

Members::Ahead manifests_of(const catalog::Located& located) {
  return {[&located](int member) { return located.meta_name(member, "manifest"); }, layout::max_manifest_bytes};
}

class TurnToRead {
 public:
  explicit TurnToRead(Members& members) : members_(members) { members_.forget_ahead(); }
  TurnToRead(const TurnToRead&) = delete;
  ~TurnToRead() { members_.forget_ahead(); }

 private:
  Members& members_;
};

Status not_held(const Attempt& attempt, const Members& members, const catalog::Located& located) {
  const std::string why = attempt.failure.ok() ? members.describe_lost() : attempt.failure.sentence();
  return Status(Kind::lost,
                fmt::format("{}: its lock cannot be taken on enough targets to exclude other programs ({}); mend the targets, or use directories "
                            "where files can be locked and written",
                            located.manifest.path, why),
                attempt.failure.sys_errno() == EMFILE ? EMFILE : 0);
}

constexpr const char* leader_suffix = ".first";

std::string writer_name(uint64_t opener) { return fmt::format("{}{}", writer_lock_prefix, opener); }
std::string leader_name(uint64_t opener) { return writer_name(opener) + leader_suffix; }

// Members with the locks' names of one opener, also where a lock by name has left some beside a lock's own.
struct Names {
  std::vector<int> writer, leader;
};

void add_name(std::map<uint64_t, Names>& openers, const std::string& name, int member) {
  const std::string digits = opener_number(name);
  uint64_t number = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (number == 0) return;  // no opener's
  const std::string rest = name.substr(name.rfind(writer_lock_prefix + digits) + (writer_lock_prefix + digits).size()) + ".";
  const bool of_leader = rest.starts_with(leader_suffix + std::string("."));
  std::vector<int>& members = of_leader ? openers[number].leader : openers[number].writer;
  if (members.empty() || members.back() != member) members.push_back(member);
}

std::string for_how_long(std::chrono::milliseconds time) {
  if (time == std::chrono::minutes(10)) return "ten minutes";
  return time < std::chrono::seconds(10) ? fmt::format("{} ms", time.count()) : fmt::format("{} s", time.count() / 1000);
}

// A lock by name outlives its owner where nobody can know of his death: on another node.
Status still_busy(const Status& holder, const Members& members, const catalog::Located& located) {
  const std::string& path = located.manifest.path;
  return Status(Kind::busy,
                fmt::format("{}: its lock has been held for {} ({}); end that program, or, if it died on another node, run: holdfast repair "
                            "--break-locks {}",
                            path, for_how_long(members.lock_patience()), holder.sentence(), path));
}

// Its lock could be had, but not one's turn.
Status still_without_leader(const Members& members, const catalog::Located& located) {
  return Status(Kind::busy, fmt::format("{}: a job whose rank 0 has died has had it open for {}; end the other processes of that job",
                                        located.manifest.path, for_how_long(members.lock_patience())));
}

// The names of openers on every member that is asked. Those are as many as hold one of any opener's locks at least, or all that may hold its last
// one.
std::map<uint64_t, Names> names_of_openers(Members& members, const catalog::Located& located) {
  const int enough = located.locks_may_end() ? members.count() : 2 * located.manifest.geometry.scheme.m + 1;
  auto found = std::make_shared<std::vector<std::vector<std::string>>>(members.count());
  std::vector<bool> asked(members.count());
  for (int member = 0, count = 0; member < members.count() && count < enough; ++member)
    if (members.available(member)) asked[member] = true, ++count;
  std::vector<std::pair<int, std::shared_ptr<target::Ticket>>> tickets;
  for (int member = 0; member < members.count(); ++member) {
    if (!asked[member]) continue;
    const std::string sample = located.meta_name(member, writer_lock_prefix);
    const size_t slash = sample.rfind('/');
    tickets.emplace_back(member, members.submit(member, [found, member, directory = sample.substr(0, slash),
                                                         prefix = sample.substr(slash + 1)](MemberHandle& handle) {
      auto names = handle.target().list(directory);
      if (!names.ok()) return names.status();
      for (const std::string& name : *names)
        if (name.starts_with(prefix)) (*found)[member].push_back(name);
      return Status();
    }));
  }
  std::map<uint64_t, Names> openers;
  for (auto& [member, ticket] : tickets) {
    const Status status = ticket->wait();
    if (status.kind() == Kind::timed_out) members.lose(member, status);
    if (!status.ok()) continue;
    for (const std::string& name : (*found)[member]) add_name(openers, name, member);
  }
  return openers;
}

// Dead: some member gives its lock, and none says that it is held. Where nobody can be asked it counts as living. The first one mostly says so; where
// there may be many more these are asked in one round.
bool lives(Members& members, const catalog::Located& located, const std::string& what, const std::vector<int>& holders) {
  bool given = false;
  for (size_t next = 0; next < holders.size();) {
    const size_t end = next == 0 || !located.locks_may_end() ? next + 1 : holders.size();
    std::vector<target::AskedLock> asked;
    for (; next < end; ++next)
      if (members.available(holders[next]))
        asked.push_back(members.ask_for_lock(holders[next], located.meta_name(holders[next], what), target::Hold::probe));
    bool held = false;
    for (target::AskedLock& one : asked) {
      const Kind kind = one.wait().status().kind();
      held |= kind == Kind::busy;
      given |= kind == Kind::ok;
    }
    if (held) return true;
  }
  return !given;
}

void remove_names(Members& members, const catalog::Located& located, uint64_t opener, const Names& names) {
  std::vector<std::shared_ptr<target::Ticket>> tickets;
  auto remove = [&](const std::string& what, const std::vector<int>& holders) {
    for (int member : holders)
      if (members.available(member))
        tickets.push_back(members.submit(member, [name = located.meta_name(member, what)](MemberHandle& handle) {
          (void)handle.target().remove(name);
          return Status();
        }));
  };
  remove(writer_name(opener), names.writer);
  remove(leader_name(opener), names.leader);
  for (const auto& ticket : tickets) (void)ticket->wait();
}

Result<Locks> announce(Members& members, const catalog::Located& located, const std::string& what, target::Hold hold) {
  const auto give_up = std::chrono::steady_clock::now() + members.lock_patience();
  auto pause = std::chrono::microseconds(200);
  for (;;) {
    Attempt attempt;
    take_on_members(attempt, members, located, what, hold, Order::at_once);
    if (!attempt.busy) {
      if (attempt.members == 0) return not_held(attempt, members, located);
      return std::move(attempt.locks);
    }
    // Somebody who asks whether we live holds it for that moment; so does, by name, a rank that announces itself.
    attempt.locks.clear();
    if (std::chrono::steady_clock::now() > give_up) return still_busy(attempt.holder, members, located);
    wait_while_busy(pause);
    pause = std::min(pause * 2, std::chrono::microseconds(5000));
  }
}

}  // namespace

std::string opener_number(const std::string& name) {
  const size_t begin = name.rfind(writer_lock_prefix) + std::char_traits<char>::length(writer_lock_prefix);
  return name.substr(begin, name.find('.', begin) - begin);
}

Result<Locks> lock_file(Members& members, const catalog::Located& located, const IsMyTurn& is_my_turn) {
  const auto give_up = std::chrono::steady_clock::now() + members.lock_patience();
  auto pause = std::chrono::microseconds(50);
  for (;;) {
    Attempt attempt;
    const bool sidecar = located.path_keeper && attempt.take(located.path_keeper->try_lock());
    // Where it is nobody's turn what was read with the locks counts no more, and later than that neither.
    const TurnToRead turn(members);
    const bool reads = sidecar && is_my_turn;
    take_on_members(attempt, members, located, "lock", target::Hold::alone, sidecar ? Order::at_once : Order::in_turn,
                    reads ? manifests_of(located) : Members::Ahead());
    const bool held = !attempt.busy;
    if (held) {
      // Whoever does not reach the sidecar holds M + 1 members, and so one of those that are held here, or is refused.
      if (!sidecar && attempt.members < fewest_to_hold(located)) return not_held(attempt, members, located);
      auto mine = is_my_turn ? is_my_turn() : Result<bool>(true);
      if (!mine.ok()) return mine.status();
      if (*mine) return std::move(attempt.locks);
    }
    attempt.locks.clear();
    if (std::chrono::steady_clock::now() > give_up)
      return held ? still_without_leader(members, located) : still_busy(attempt.holder, members, located);
    wait_while_busy(pause);
    pause = std::min(pause * 2, std::chrono::microseconds(5000));
  }
}

Result<Locks> announce_opener(Members& members, const catalog::Located& located, uint64_t opener) {
  return announce(members, located, writer_name(opener), target::Hold::shared);
}

Result<std::unique_ptr<target::Lock>> announce_opener_on(Members& members, const catalog::Located& located, uint64_t opener, int member) {
  return members.lock(member, located.meta_name(member, writer_name(opener)), target::Hold::shared);
}

Result<Locks> announce_leader(Members& members, const catalog::Located& located, uint64_t opener) {
  return announce(members, located, leader_name(opener), target::Hold::alone);
}

void withdraw_opener(Members& members, const catalog::Located& located, uint64_t opener, bool had_leader) {
  std::vector<int> all;
  for (int member = 0; member < members.count(); ++member) all.push_back(member);
  remove_names(members, located, opener, {all, had_leader ? all : std::vector<int>()});
}

bool others_may_write(const layout::Manifest& manifest, uint64_t own_session) {
  const auto& open = manifest.open_generations;
  const bool only_own = open.empty() || (open.size() == 1 && open[0] == own_session);
  return !only_own || !manifest.journals.empty() || manifest.cut_to;
}

Others other_openers(Members& members, const catalog::Located& located, uint64_t lone, uint64_t own) {
  Others others;
  for (const auto& [opener, names] : names_of_openers(members, located)) {
    if (opener == own) continue;
    if (names.writer.empty() || !lives(members, located, writer_name(opener), names.writer)) {
      remove_names(members, located, opener, names);
      continue;
    }
    others.alive = true;
    others.lone_alive |= opener == lone;
    others.without_leader |= !names.leader.empty() && !lives(members, located, leader_name(opener), names.leader);
  }
  return others;
}

Result<std::vector<std::string>> break_locks(const catalog::Located& located) {
  Members members(located);
  std::vector<std::string> broken;
  for (int member = 0; member < members.count(); ++member) {
    if (!members.available(member)) continue;
    const std::string lock = located.meta_name(member, "lock");
    std::vector<std::string> directories{lock.substr(0, lock.rfind('/'))};
    if (!located.single()) directories.emplace_back();  // of the target itself, for the set's lock
    auto found = std::make_shared<std::vector<std::string>>();
    HF_TRY(members
               .submit(member,
                       [found, directories](MemberHandle& handle) {
                         for (const std::string& directory : directories) {
                           auto names = handle.target().break_locks(directory);
                           if (!names.ok()) return names.status();
                           found->insert(found->end(), names->begin(), names->end());
                         }
                         return Status();
                       })
               ->wait());
    broken.insert(broken.end(), found->begin(), found->end());
  }
  return broken;
}

}  // namespace holdfast::engine
