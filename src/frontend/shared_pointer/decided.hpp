// The shared pointer of a file in a redundant job: one for all replicas, which the hub keeps. Each team's ranks come to it in an order of their own; so
// only leaders ask, and the others are told the same. A team that resumes has its own until it joins.
#pragma once
#include <utility>

#include "frontend/shared_pointer/shared_pointer.hpp"
#include "redundant/twins/replica.hpp"

namespace holdfast::frontend {

class DecidedPointer : public SharedPointer {
 public:
  // `file`: the same in all ranks.
  DecidedPointer(std::unique_ptr<SharedPointer> own, redundant::Replica& replica, uint64_t file)
      : own_(std::move(own)), replica_(replica), file_(file) {}
  int64_t fetch_add(int64_t etypes) override {
    return replica_.is_joining() ? own_->fetch_add(etypes) : replica_.call_pointer(file_, {redundant::PointerCall::add, etypes});
  }
  int64_t load() override { return replica_.is_joining() ? own_->load() : replica_.call_pointer(file_, {redundant::PointerCall::load, 0}); }
  bool store(int64_t etypes) override {
    return replica_.is_joining() ? own_->store(etypes) : replica_.call_pointer(file_, {redundant::PointerCall::store, etypes}) >= 0;
  }
  Status failure() const override { return own_->failure(); }
  const char* algorithm() const override { return "hub"; }

 private:
  const std::unique_ptr<SharedPointer> own_;
  redundant::Replica& replica_;
  const uint64_t file_;
};

}  // namespace holdfast::frontend
