// Targets of agents behind the gate, where calls that belong together stay one request. A process that dies leaves its locks to its connections.
#pragma once
#include "sim/world.hpp"

namespace holdfast::sim {

class FarGatedTarget final : public GatedTarget {
 public:
  using GatedTarget::GatedTarget;
  Result<std::shared_ptr<target::Object>> open_to_write(const std::string& name, target::Pages pages) override {
    if (Status s = admit(); !s.ok()) return s;
    auto object = inner_->open_to_write(name, pages);
    if (!object.ok()) return object;
    return std::shared_ptr<target::Object>(std::make_shared<GatedObject>(*object, gate_, member_, disk_));
  }
  Status write_together(std::span<const ObjectWrite> writes) override {
    HF_TRY(admit());
    return inner_->write_together(inside(writes));
  }
  Status settle(Objects written, Objects left, bool durable) override {
    HF_TRY(admit());
    return inner_->settle(inside(written), inside(left), durable);
  }
  Status write_and_settle(std::span<const ObjectWrite> writes, Objects written, Objects left, bool durable) override {
    HF_TRY(admit());
    return inner_->write_and_settle(inside(writes), inside(written), inside(left), durable);
  }
  Status get_each(const EachWish& wish, const TellOfEach& tell) override {
    HF_TRY(admit());
    return inner_->get_each(wish, tell);
  }
  Result<std::unique_ptr<target::Lock>> try_lock(const std::string& name, target::Hold hold) override {
    if (Status s = may_lock(); !s.ok()) return s;
    auto lock = inner_->try_lock(name, hold);
    found_busy(lock.status());
    return lock;
  }
  Result<Locked> try_lock_with(const LockWish& wish) override {
    if (Status s = may_lock(); !s.ok()) return s;
    auto locked = inner_->try_lock_with(wish);
    found_busy(locked.status());
    return locked;
  }

 private:
  Status may_lock() {
    Schedule::yield();
    HF_TRY(gate_->way_to(member_));
    return gate_->state_of(member_, disk_);
  }
  // Whoever finds it busy asks again: others must get on.
  void found_busy(const Status& status) {
    if (status.kind() != Kind::busy) return;
    if (gate_->when_busy) gate_->when_busy();
    Schedule::yield(true);
  }
  static std::shared_ptr<target::Object> inside(const std::shared_ptr<target::Object>& object) { return static_cast<GatedObject&>(*object).inner(); }
  static std::vector<std::shared_ptr<target::Object>> inside(Objects objects) {
    std::vector<std::shared_ptr<target::Object>> all;
    for (const auto& object : objects) all.push_back(inside(object));
    return all;
  }
  static std::vector<ObjectWrite> inside(std::span<const ObjectWrite> writes) {
    std::vector<ObjectWrite> all(writes.begin(), writes.end());
    for (ObjectWrite& one : all) one.object = inside(one.object);
    return all;
  }
};

}  // namespace holdfast::sim
