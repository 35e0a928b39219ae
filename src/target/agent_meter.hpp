// What an agent is asked to do with bytes, for the profile: as many calls as requests, whatever the agent does for them.
#pragma once
#include "base/meter.hpp"
#include "target/agent_protocol.hpp"

namespace holdfast::target {

struct AgentWork {
  uint64_t reads = 0, writes = 0, written_bytes = 0, syncs = 0;

  void add(AgentOp op, uint16_t flags, uint64_t bulk_bytes) {
    switch (op) {
      case AgentOp::read:
      case AgentOp::checksums:
      case AgentOp::sum: ++reads; break;
      case AgentOp::write:
      case AgentOp::append:
      case AgentOp::put: ++writes, written_bytes += bulk_bytes; break;
      case AgentOp::sync: ++syncs; break;
      case AgentOp::settle: syncs += flags & 1; break;
      default: break;
    }
  }
};

// From here to the answer. Of requests that go as one the time is the sync's, where there is one among them: that is what they wait for.
class AgentWorkMeter {
 public:
  AgentWorkMeter() : meter_(current_meter), begin_(meter_ ? meter_now_ns() : 0) {}
  bool measures() const { return meter_; }
  void add(const AgentWork& work, bool answered, uint64_t answered_bytes) {
    if (!meter_) return;
    const uint64_t ns = meter_now_ns() - begin_;
    Meter::add(meter_->read_calls, work.reads);
    Meter::add(meter_->write_calls, work.writes);
    Meter::add(meter_->sync_calls, work.syncs);
    if (work.reads && answered) Meter::add(meter_->read_bytes, answered_bytes);
    if (answered) Meter::add(meter_->write_bytes, work.written_bytes);
    if (work.syncs) Meter::add(meter_->sync_ns, ns);
    else if (work.writes) Meter::add(meter_->write_ns, ns);
    else if (work.reads) Meter::add(meter_->read_ns, ns);
  }

 private:
  Meter* const meter_;
  const uint64_t begin_;
};

}  // namespace holdfast::target
