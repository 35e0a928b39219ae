#include "target/name_lock.hpp"

#include <cerrno>
#include <optional>

#include <fmt/format.h>

#include "target/companion.hpp"
#include "target/kernel_calls.hpp"
#include "target/lock_reach.hpp"

namespace holdfast::target {

namespace {

constexpr const char* held_suffix = ".held";
constexpr const char* claim_suffix = ".claim.";
constexpr int most_tries = 4;  // a name may change hands while it is looked at

// One hold, until it is destroyed.
class NameHold final : public Lock {
 public:
  // `claim` is empty for a shared hold, which is one name alone.
  NameHold(std::shared_ptr<NameStore> store, std::string held, std::string claim, std::string number, std::shared_ptr<LeftHolds> left)
      : store_(std::move(store)),
        held_(std::move(held)),
        claim_(std::move(claim)),
        number_(std::move(number)),
        left_(std::move(left)),
        process_(process_id()) {}
  ~NameHold() override {
    if (process_id() != process_) return;  // a forked child may not let go of what its parent holds
    // Without its claim it was broken by the user's word: what has the name now is another's.
    if (!claim_.empty() && store_->links(claim_).status().kind() == Kind::not_found) return;
    const Status gone = store_->remove(held_);
    if (!gone.ok() && gone.kind() != Kind::not_found) left_->add(number_);
    else if (!claim_.empty()) (void)store_->remove(claim_);
  }

 private:
  std::shared_ptr<NameStore> store_;
  std::string held_, claim_, number_;
  std::shared_ptr<LeftHolds> left_;
  int process_;
};

// One attempt to get one lock.
class Attempt {
 public:
  Attempt(std::shared_ptr<NameStore> store, const std::string& name, const Processes& processes)
      : store_(std::move(store)), held_(name + held_suffix), claims_(name + claim_suffix), processes_(processes) {}

  Result<std::unique_ptr<Lock>> alone() {
    // First of all a look, so that those who wait make no files. It may be an old one: then they wait a little longer.
    if (auto there = holder(); there && !is_over(*there)) return busy(*there);
    me_ = processes_.new_hold();
    HF_TRY(store_->make(claim(), encode(me_)));
    Status status = take();
    if (status.ok()) return std::unique_ptr<Lock>(std::make_unique<NameHold>(store_, held_, claim(), me_.number, processes_.left));
    // Where the server's answer was lost, the name may be ours all the same.
    if (status.kind() != Kind::busy && holder().value_or(LockOwner()).number == me_.number) (void)store_->remove(held_);
    (void)store_->remove(claim());
    return status;
  }

  // With the lock held alone: those who hold it shared. The names of the dead go.
  Status nobody_shares() {
    auto names = store_->list();
    if (!names.ok()) return names.status();
    for (const std::string& name : *names) {
      if (!name.starts_with(held_ + ".")) continue;
      auto text = store_->read(name);
      if (text.status().kind() == Kind::not_found) continue;
      if (!text.ok()) return text.status();
      const LockOwner owner = decode_lock_owner(*text);
      if (!is_over(owner)) return busy(owner);
      (void)store_->remove(name);
    }
    sweep();
    return {};
  }

  Result<std::unique_ptr<Lock>> share() {
    const LockOwner me = processes_.new_hold();
    const std::string name = held_ + "." + me.number;
    HF_TRY(store_->make(name, encode(me)));
    return std::unique_ptr<Lock>(std::make_unique<NameHold>(store_, name, "", me.number, processes_.left));
  }

 private:
  bool is_over(const LockOwner& owner) const { return processes_.left->has(owner.number) || processes_.is_dead(owner); }
  std::string claim() const { return claims_ + me_.number; }

  Status busy(const LockOwner& owner) const {
    return Status(Kind::busy, fmt::format("{}/{} is held by {}", store_->describe(), held_, owner.sentence()), EBUSY);
  }

  std::optional<LockOwner> holder() {
    auto text = store_->read(held_);
    if (!text.ok()) return {};
    return decode_lock_owner(*text);
  }

  Status take() {
    Status status;
    for (int i = 0; i < most_tries; ++i) {
      status = store_->link(claim(), held_);
      if (status.kind() == Kind::unsupported) status = store_->make(held_, encode(me_));
      if (status.ok()) return status;
      // The server may have done it, and its answer been lost on the way.
      if (auto links = store_->links(claim()); links.ok() && *links == 2) return {};
      if (status.kind() == Kind::not_found) return Status(Kind::busy, claim() + " was removed by hand", EBUSY);
      if (status.kind() != Kind::exists) return status;
      const auto there = holder();
      if (!there) continue;
      status = busy(*there);
      if (!is_over(*there) || !end(*there)) return status;
    }
    return status;
  }

  // False: it cannot be ended, or somebody else is at it.
  bool end(const LockOwner& dead) {
    const std::string right = claims_ + dead.number + "." + me_.number;
    if (!get_right(dead, right)) return false;
    if (still_holds(dead, right)) (void)store_->remove(held_);
    (void)store_->remove(right);
    sweep();
    return true;
  }

  bool renamed(const std::string& from, const std::string& to) {
    if (store_->rename(from, to).ok()) return true;
    return store_->links(to).ok();  // an answer that was lost
  }

  // The claim gets our number: from the dead one itself, or from one who died while he was ending the hold.
  bool get_right(const LockOwner& dead, const std::string& right) {
    const std::string of_itself = claims_ + dead.number;
    if (renamed(of_itself, right)) return true;
    auto names = store_->list();
    if (!names.ok()) return false;
    for (const std::string& name : *names) {
      if (!name.starts_with(of_itself + ".")) continue;
      auto text = store_->read(claims_ + name.substr(of_itself.size() + 1));
      return text.ok() && is_over(decode_lock_owner(*text)) && renamed(name, right);
    }
    // Its own end has come first, and what was read was old; or nobody can say any more.
    return !holder() || holder()->number != dead.number;
  }

  bool still_holds(const LockOwner& dead, const std::string& right) {
    if (auto links = store_->links(right); !links.ok() || *links >= 2) return links.ok();
    if (counts_links()) return false;
    const auto there = holder();
    return there && there->number == dead.number;
  }

  // Some file systems say one, whatever there is. Not asked with a claim, whose count has to stay what it says.
  bool counts_links() {
    const std::string one = claims_ + "count." + me_.number + ".1", other = claims_ + "count." + me_.number + ".2";
    const bool two = store_->make(one, "").ok() && store_->link(one, other).ok() && store_->links(one).ok() && *store_->links(one) == 2;
    (void)store_->remove(other);
    (void)store_->remove(one);
    return two;
  }

  // Claims of those who died while they tried, and hold nothing. First who is dead, and then what there is of them. Before his death he may have got
  // the lock, or the right to end somebody's hold, which his claim has to tell of.
  void sweep() {
    std::vector<std::string> numbers;
    auto names = store_->list();
    if (!names.ok()) return;
    for (const std::string& name : *names) {
      if (!name.starts_with(claims_) || name.find('.', claims_.size()) != std::string::npos) continue;
      const auto text = store_->read(name);
      if (text.ok() && is_over(decode_lock_owner(*text))) numbers.push_back(name.substr(claims_.size()));
    }
    if (numbers.empty()) return;
    names = store_->list();
    if (!names.ok()) return;
    for (const std::string& number : numbers) {
      bool needed = false;
      for (const std::string& name : *names) needed |= name.starts_with(claims_) && name.ends_with("." + number) && name != claims_ + number;
      const auto links = store_->links(claims_ + number);
      const auto there = holder();
      if (!needed && links.ok() && *links == 1 && (!there || there->number != number)) (void)store_->remove(claims_ + number);
    }
  }

  std::shared_ptr<NameStore> store_;
  const std::string held_, claims_;
  const Processes& processes_;
  LockOwner me_;
};

}  // namespace

const std::shared_ptr<LeftHolds>& LeftHolds::of_this_process() {
  static const auto* const one = new std::shared_ptr<LeftHolds>(std::make_shared<LeftHolds>());  // holds may go after the end of main
  return *one;
}

void LeftHolds::add(const std::string& number) {
  std::lock_guard lock(mutex_);
  numbers_.insert(number);
}

bool LeftHolds::has(const std::string& number) const {
  std::lock_guard lock(mutex_);
  return numbers_.contains(number);
}

Result<std::unique_ptr<Lock>> lock_by_name(std::shared_ptr<NameStore> store, const std::string& name, Hold hold, Processes processes) {
  Attempt attempt(std::move(store), name, processes);
  auto alone = attempt.alone();
  if (!alone.ok() || hold == Hold::alone) return alone;
  if (hold == Hold::shared) return attempt.share();
  HF_TRY(attempt.nobody_shares());
  return alone;
}

namespace {

// The kernel's lock, where it gives one, and the name.
class NamedLock final : public Lock {
 public:
  NamedLock(std::unique_ptr<Lock> kernel, std::unique_ptr<Lock> name) : kernel_(std::move(kernel)), name_(std::move(name)) {}

 private:
  std::unique_ptr<Lock> kernel_, name_;  // the name goes first
};

}  // namespace

Result<std::unique_ptr<Lock>> also_by_name(Result<std::unique_ptr<Lock>> kernel, const std::function<bool()>& reaches_all,
                                           const std::function<Result<std::shared_ptr<NameStore>>()>& names, const std::string& name, Hold hold) {
  const bool none = !kernel.ok() && has_no_locks(kernel.status().sys_errno());
  if (!kernel.ok() && (!none || lock_way() == LockWay::kernel)) return kernel;
  if (!none && !needs_names(reaches_all())) return kernel;
  auto store = names();
  if (!store.ok()) return store.status();
  auto by_name = lock_by_name(std::move(*store), name, hold);
  if (!by_name.ok()) return by_name;
  return std::unique_ptr<Lock>(std::make_unique<NamedLock>(none ? nullptr : std::move(*kernel), std::move(*by_name)));
}

bool is_name_of_lock(const std::string& name) {
  return name.ends_with(held_suffix) || name.find(std::string(held_suffix) + ".") != std::string::npos ||
         name.find(claim_suffix) != std::string::npos;
}

Result<std::vector<std::string>> break_locks(NameStore& store) {
  auto names = store.list();
  if (!names.ok()) return names.status();
  std::vector<std::string> broken;
  // Claims first: whoever holds still, by mistake, finds that its claim is gone and leaves the name to others.
  for (const bool claims : {true, false}) {
    for (const std::string& name : *names) {
      if (!is_name_of_lock(name) || claims != (name.find(claim_suffix) != std::string::npos)) continue;
      const auto text = store.read(name);
      const LockOwner owner = decode_lock_owner(text.ok() ? *text : "");
      if (text.ok() && !text->empty() && owner.number.empty()) continue;  // something else that is called so
      const Status removed = store.remove(name);
      if (removed.kind() == Kind::not_found) continue;
      HF_TRY(removed);
      if (!claims) broken.push_back(fmt::format("{}/{}, held by {}", store.describe(), name, owner.sentence()));
    }
  }
  return broken;
}

}  // namespace holdfast::target
