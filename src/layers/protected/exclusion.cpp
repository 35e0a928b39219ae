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

constexpr const char* leader_suffix = ".first";

std::string writer_name(uint64_t opener) { return fmt::format("{}{}", writer_lock_prefix, opener); }
std::string leader_name(uint64_t opener) { return writer_name(opener) + leader_suffix; }

// Members with the locks' names of one opener.
struct Names {
  std::vector<int> writer, leader;
};

// `name` begins with the prefix; what is no opener's is left out.
void add_name(std::map<uint64_t, Names>& openers, std::string_view name, int member) {
  uint64_t number = 0;
  name.remove_prefix(std::char_traits<char>::length(writer_lock_prefix));
  auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
  const std::string_view rest = name.substr(size_t(end - name.data()));
  if (error != std::errc() || number == 0) return;
  if (rest.empty()) openers[number].writer.push_back(member);
  if (rest == leader_suffix) openers[number].leader.push_back(member);
}

// The names of openers on every member that is asked: as many as hold at least one of any opener's locks.
std::map<uint64_t, Names> names_of_openers(Members& members, const catalog::Located& located) {
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
        if (name.starts_with(prefix)) (*found)[member].push_back(name);
      return Status();
    }));
  }
  std::map<uint64_t, Names> openers;
  for (auto& [member, ticket] : tickets) {
    const Status status = ticket->wait();
    if (status.kind() == Kind::timed_out) members.lose(member, status.sentence());
    if (!status.ok()) continue;
    for (const std::string& name : (*found)[member]) add_name(openers, name, member);
  }
  return openers;
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

void remove_names(Members& members, const catalog::Located& located, uint64_t opener, const Names& names) {
  remove_name(members, located, writer_name(opener), names.writer);
  remove_name(members, located, leader_name(opener), names.leader);
}

Result<Locks> announce(Members& members, const catalog::Located& located, const std::string& what, target::Hold hold) {
  for (;;) {
    Attempt attempt;
    take_on_members(attempt, members, located, what, hold);
    if (!attempt.busy) {
      if (attempt.members == 0) return not_held(attempt, members, located);
      return std::move(attempt.locks);
    }
    // Somebody who asks whether we live holds it for that moment.
    attempt.locks.clear();
    wait_while_busy(std::chrono::microseconds(200));
  }
}

}  // namespace

Result<Locks> lock_file(Members& members, const catalog::Located& located, const IsMyTurn& is_my_turn) {
  const auto give_up = std::chrono::steady_clock::now() + lock_patience;
  auto pause = std::chrono::microseconds(50);
  for (;;) {
    Attempt attempt;
    const bool sidecar = located.path_keeper && attempt.take(located.path_keeper->try_lock());
    take_on_members(attempt, members, located, "lock", target::Hold::alone);
    const bool held = !attempt.busy;
    if (held) {
      // Whoever does not reach the sidecar holds M + 1 members, and so one of those that are held here, or is refused.
      if (!sidecar && attempt.members < members_to_hold(located)) return not_held(attempt, members, located);
      auto mine = is_my_turn ? is_my_turn() : Result<bool>(true);
      if (!mine.ok()) return mine.status();
      if (*mine) return std::move(attempt.locks);
    }
    attempt.locks.clear();
    if (std::chrono::steady_clock::now() > give_up)
      return Status(Kind::busy, located.manifest.path + (held ? ": a job whose rank 0 has died has it open; end the other processes of that job"
                                                              : ": another program has been holding its lock for ten minutes"));
    wait_while_busy(pause);
    pause = std::min(pause * 2, std::chrono::microseconds(5000));
  }
}

Result<Locks> announce_opener(Members& members, const catalog::Located& located, uint64_t opener) {
  return announce(members, located, writer_name(opener), target::Hold::shared);
}

Result<Locks> announce_leader(Members& members, const catalog::Located& located, uint64_t opener) {
  return announce(members, located, leader_name(opener), target::Hold::alone);
}

void withdraw_opener(Members& members, const catalog::Located& located, uint64_t opener) {
  std::vector<int> all;
  for (int member = 0; member < members.count(); ++member) all.push_back(member);
  remove_names(members, located, opener, {all, all});
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

}  // namespace holdfast::layers
