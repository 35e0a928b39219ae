#include "target/lane_group.hpp"

namespace holdfast::target {

namespace {

class GroupTicket final : public Ticket {
 public:
  GroupTicket(std::shared_ptr<Ticket> ticket, std::shared_ptr<LaneGroup> group) : ticket_(std::move(ticket)), group_(std::move(group)) {}
  Status wait() override { return ticket_->wait_in(group_.get()); }

 private:
  std::shared_ptr<Ticket> ticket_;
  std::shared_ptr<LaneGroup> group_;
};

class GroupLane final : public Lane {
 public:
  GroupLane(std::shared_ptr<Lane> lane, std::shared_ptr<LaneGroup> group) : lane_(std::move(lane)), group_(std::move(group)) {}
  std::shared_ptr<Ticket> submit(std::function<Status()> call) override {
    return std::make_shared<GroupTicket>(lane_->submit(std::move(call)), group_);
  }
  bool set_aside() const override { return lane_->set_aside(); }
  bool readmit() override { return lane_->readmit(); }
  void let_go(std::shared_ptr<const void> thing) override { lane_->let_go(std::move(thing)); }
  void rest() override { lane_->rest(); }
  Pulse pulse() const override { return lane_->pulse(); }

 private:
  std::shared_ptr<Lane> lane_;
  std::shared_ptr<LaneGroup> group_;
};

}  // namespace

LaneGroup::LaneGroup(std::vector<std::shared_ptr<Lane>> lanes, int may_miss, int patience)
    : lanes_(std::move(lanes)), may_miss_(may_miss), patience_(patience), lost_(lanes_.size()) {
  for (size_t i = 0; i < lanes_.size(); ++i)
    if (!lanes_[i]) lose(int(i));
}

std::shared_ptr<Lane> LaneGroup::lane(int index) { return std::make_shared<GroupLane>(lanes_[size_t(index)], shared_from_this()); }

// Those whose call is half through its deadline count. Calls that were begun together are late together, and the first of them to be asked about must
// not be given up before the others are seen.
int LaneGroup::late(Clock::duration deadline, Clock::time_point now) const {
  int late = 0;
  for (size_t i = 0; i < lanes_.size(); ++i) {
    if (lost_[i] || lanes_[i]->set_aside()) {
      ++late;
      continue;
    }
    const Clock::time_point since = lanes_[i]->pulse().busy_since;
    late += since != Clock::time_point() && now - since >= deadline / 2;
  }
  return late;
}

bool LaneGroup::came_back_since(Clock::time_point then) const {
  for (const auto& lane : lanes_)
    if (lane && lane->pulse().last_end > then) return true;
  return false;
}

// The first deadline more is given without a question: of calls that were begun together none has had the time to come back. And where
// load was seen a moment ago, the last few of its calls are not given up for being few.
bool LaneGroup::waits_on(Clock::duration age, Clock::duration deadline, Clock::time_point now) {
  if (age >= deadline * patience_) return false;
  if (late(deadline, now) > may_miss_) load_seen_ = now;
  const Clock::time_point load_seen = load_seen_;
  if (load_seen == Clock::time_point() || now - load_seen > deadline) return false;
  return age < 2 * deadline || came_back_since(now - deadline);
}

}  // namespace holdfast::target
