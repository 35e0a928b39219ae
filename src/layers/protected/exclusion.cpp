#include "layers/protected/exclusion.hpp"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <map>

#include <fmt/format.h>

#include "layers/protected/waiting.hpp"

namespace holdfast::layers {

namespace {

constexpr auto lock_patience = std::chrono::minutes(10);

int members_to_hold(const catalog::Located& located) { return located.manifest.geometry.scheme.m + 1; }

struct Attempt {
  Locks locks;
  bool busy = false;
  int members = 0;   // of those that are held
  Status failure;    // of a member that answers and whose lock cannot be had

  bool take(Result<std::unique_ptr<target::Lock>> lock) {
    if (lock.ok()) locks.push_back(std::move(*lock));
    busy |= lock.status().kind() == Kind::busy;
    return lock.ok();
  }
};

// Locks on the first members that answer, until there are enough of them.
void take_on_members(Attempt& attempt, Members& members, const catalog::Located& located, const std::string& what, target::Hold hold) {
  for (int member = 0; member < members.count() && attempt.members < members_to_hold(located) && !attempt.busy; ++member) {
    if (!members.available(member)) continue;
    auto lock = members.lock(member, located.meta_name(member, what), hold);
    const Status status = lock.status();
    if (attempt.take(std::move(lock))) ++attempt.members;
    else if (status.kind() == Kind::timed_out) members.lose(member, status.sentence());
    else if (status.kind() != Kind::busy) attempt.failure = status;
  }
}

Status not_held(const Attempt& attempt, const Members& members, const catalog::Located& located) {
  const std::string why = attempt.failure.ok() ? members.describe_lost() : attempt.failure.sentence();
  return Status(Kind::lost, fmt::format("{}: its lock cannot be taken on enough targets to keep other programs out ({}); mend the targets, "
                                        "or put them where files can be locked and written",
                                        located.manifest.path, why));
}

// The opener's number, from the name of its lock; 0 where it is no such name.
uint64_t opener_of(const std::string& name) {
  uint64_t number = 0;
  const size_t at = name.rfind(writer_lock_prefix);
  const char* begin = name.data() + at + std::char_traits<char>::length(writer_lock_prefix);
  auto [end, error] = std::from_chars(begin, name.data() + name.size(), number);
  return error == std::errc() && end == name.data() + name.size() ? number : 0;
}

// The names of openers on every member that is asked: as many as hold at least one of any opener's locks.
std::map<std::string, std::vector<int>> names_of_openers(Members& members, const catalog::Located& located) {
  const int enough = 2 * located.manifest.geometry.scheme.m + 1;
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
        if (name.starts_with(prefix)) (*found)[member].push_back(directory + "/" + name);
      return Status();
    }));
  }
  std::map<std::string, std::vector<int>> by_name;
  for (auto& [member, ticket] : tickets) {
    const Status status = ticket->wait();
    if (status.kind() == Kind::timed_out) members.lose(member, status.sentence());
    if (!status.ok()) continue;
    for (const std::string& name : (*found)[member]) by_name[name.substr(name.rfind('.') + 1)].push_back(member);
  }
  return by_name;
}

// Dead: some member gives its lock, and none says that it is held. Where nobody can be asked it counts as living.
bool lives(Members& members, const catalog::Located& located, const std::string& what, const std::vector<int>& holders) {
  bool given = false;
  for (int member : holders) {
    if (!members.available(member)) continue;
    const Kind kind = members.lock(member, located.meta_name(member, what)).status().kind();
    if (kind == Kind::busy) return true;
    given |= kind == Kind::ok;
  }
  return !given;
}

void remove_name(Members& members, const catalog::Located& located, const std::string& what, const std::vector<int>& holders) {
  for (int member : holders)
    if (members.available(member))
      (void)members.submit(member, [name = located.meta_name(member, what)](MemberHandle& handle) {
        (void)handle.target().remove(name);
        return Status();
      })->wait();
}

}  // namespace

Result<Locks> lock_file(Members& members, const catalog::Located& located) {
  const auto give_up = std::chrono::steady_clock::now() + lock_patience;
  auto pause = std::chrono::microseconds(50);
  for (;;) {
    Attempt attempt;
    const bool sidecar = located.path_keeper && attempt.take(located.path_keeper->try_lock());
    take_on_members(attempt, members, located, "lock", target::Hold::alone);
    if (!attempt.busy) {
      // Whoever does not reach the sidecar holds M + 1 members, and so one of those that are held here, or is refused.
      if (!sidecar && attempt.members < members_to_hold(located)) return not_held(attempt, members, located);
      return std::move(attempt.locks);
    }
    attempt.locks.clear();
    if (std::chrono::steady_clock::now() > give_up)
      return Status(Kind::busy, located.manifest.path + ": another program has been holding its lock for ten minutes");
    wait_while_busy(pause);
    pause = std::min(pause * 2, std::chrono::microseconds(5000));
  }
}

Result<Locks> announce_opener(Members& members, const catalog::Located& located, uint64_t opener) {
  for (;;) {
    Attempt attempt;
    take_on_members(attempt, members, located, fmt::format("{}{}", writer_lock_prefix, opener), target::Hold::shared);
    if (!attempt.busy) {
      if (attempt.members == 0) return not_held(attempt, members, located);
      return std::move(attempt.locks);
    }
    // Somebody who asks whether we live holds it for that moment.
    attempt.locks.clear();
    wait_while_busy(std::chrono::microseconds(200));
  }
}

void withdraw_opener(Members& members, const catalog::Located& located, uint64_t opener) {
  std::vector<int> all;
  for (int member = 0; member < members.count(); ++member) all.push_back(member);
  remove_name(members, located, fmt::format("{}{}", writer_lock_prefix, opener), all);
}

Others other_openers(Members& members, const catalog::Located& located, uint64_t own) {
  Others others;
  for (const auto& [number, holders] : names_of_openers(members, located)) {
    const std::string what = writer_lock_prefix + number;
    const uint64_t opener = opener_of(what);
    if (opener == own && own != 0) continue;
    if (!lives(members, located, what, holders)) {
      remove_name(members, located, what, holders);
      continue;
    }
    others.alive = true;
    others.lone_alive |= opener != 0 && opener == located.manifest.lone;
  }
  return others;
}

}  // namespace holdfast::layers
