// The channel to an agent over a socket.
#pragma once
#include <sys/types.h>

#include <functional>
#include <mutex>

#include "target/agent.hpp"
#include "transport/link.hpp"

namespace holdfast::target {

class LinkChannel final : public AgentChannel {
 public:
  // Within about `connect_ms`. A call that is never answered is given up after ten minutes: whoever must not wait that long has a lane.
  Status connect(const std::string& endpoints, const transport::Agreement& agreement, uint64_t connect_ms);
  Status ask(AgentRequest request, const std::string& name, std::span<const iovec> bulk, AgentAnswer& answer, std::string& sentence,
             std::span<const iovec> into) override;
  void post(AgentRequest request, const std::string& name) override;
  bool broken() const override;
  bool inherited() const override;
  // Called once, without the channel's own lock, by the call that finds the connection broken.
  void when_broken(std::function<void()> tell) { tell_ = std::move(tell); }
  // In a forked child, which has one thread: were its copy of the socket left open, the agent would not see that the parent dies, and keep its locks.
  void close_in_child() { link_.close(); }

 private:
  Status ask_alone(AgentRequest& request, const std::string& name, std::span<const iovec> bulk, AgentAnswer& answer, std::string& sentence,
                   std::span<const iovec> into);
  Status send(AgentRequest& request, const std::string& name, std::span<const iovec> bulk);
  Status pass_over_answers(uint32_t last);
  mutable std::mutex mutex_;  // one question at a time
  transport::Link link_;
  pid_t owner_ = 0;
  std::function<void()> tell_;
  uint32_t number_ = 0, answered_ = 0;  // of the last request, and of the last whose answer was read
};

}  // namespace holdfast::target
