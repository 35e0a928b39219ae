// Locks of objects on targets, taken and let go of in the target's lane: either can block like any other call.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "target/lane.hpp"
#include "target/target.hpp"

namespace holdfast::target {

class LaneLock final : public Lock {
 public:
  LaneLock(std::shared_ptr<Lane> lane, std::unique_ptr<Lock> lock) : lane_(std::move(lane)), lock_(std::move(lock)) {}
  ~LaneLock() override { lane_->let_go(std::shared_ptr<const Lock>(std::move(lock_))); }

 private:
  std::shared_ptr<Lane> lane_;
  std::unique_ptr<Lock> lock_;
};

// A lock that has been asked for, so that those of several targets are asked for side by side.
class AskedLock {
 public:
  AskedLock(std::shared_ptr<Lane> lane, std::shared_ptr<Target> target, std::string name, Hold hold)
      : AskedLock(std::move(lane), [target = std::move(target), name = std::move(name), hold] { return target->try_lock(name, hold); }) {}
  using Ask = std::function<Result<std::unique_ptr<Lock>>()>;
  AskedLock(std::shared_ptr<Lane> lane, Ask ask) : lane_(std::move(lane)), held_(std::make_shared<std::unique_ptr<Lock>>()) {
    ticket_ = lane_->submit([ask = std::move(ask), held = held_] {
      auto lock = ask();
      if (!lock.ok()) return lock.status();
      *held = std::move(*lock);
      return Status();
    });
  }
  // Once. Kind::busy where another opener holds it. A lock that comes after the deadline is given back at once, by the lane.
  Result<std::unique_ptr<Lock>> wait() {
    HF_TRY(ticket_->wait());
    return std::unique_ptr<Lock>(std::make_unique<LaneLock>(lane_, std::move(*held_)));
  }

 private:
  std::shared_ptr<Lane> lane_;
  std::shared_ptr<std::unique_ptr<Lock>> held_;
  std::shared_ptr<Ticket> ticket_;
};

inline Result<std::unique_ptr<Lock>> lock_in_lane(const std::shared_ptr<Lane>& lane, const std::shared_ptr<Target>& target, const std::string& name,
                                                  Hold hold = Hold::alone) {
  return AskedLock(lane, target, name, hold).wait();
}

}  // namespace holdfast::target
