// A directory that a node's agent serves, as a target. Pure but for its channel: what is asked and what the answers mean.
#pragma once
#include <sys/uio.h>

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "target/agent_protocol.hpp"
#include "target/target.hpp"

namespace holdfast::target {

// One connection to an agent. Handles and locks belong to it: they end with it, and are never sent again.
class AgentChannel {
 public:
  virtual ~AgentChannel() = default;
  // One request and its answer, whole and in turn. The answer's bytes fill `into` from its beginning; there are never more than have room.
  // A failure is the channel's own, and the last: it stays broken. What the agent answered is in `answer` and `sentence`.
  virtual Status ask(AgentRequest request, const std::string& name, std::span<const iovec> bulk, AgentAnswer& answer, std::string& sentence,
                     std::span<const iovec> into) = 0;
  // One request without bytes whose answer nobody needs: nobody waits for it, and what is asked later is done after it.
  virtual void post(AgentRequest request, const std::string& name) = 0;
  virtual bool broken() const = 0;
  // It is the parent's of this forked process, which cannot use it beside the parent.
  virtual bool inherited() const { return false; }
  // Whoever has something open there, or may ask, uses it. When nobody does the agent is told, which may end then.
  virtual void enter() {}
  virtual void leave() {}
  // A handle that no open object of this connection goes by.
  uint32_t draw_handle() { return first_drawn_handle + drawn_++; }

 private:
  std::atomic<uint32_t> drawn_{0};
};
using ConnectAgain = std::function<Result<std::shared_ptr<AgentChannel>>()>;

// Attaches the channel to the directory. `label`: for messages. Kind::not_found ... as open_directory; Kind::access where the agent does not
// serve that directory. `read_first`: a small object that is read in the same round trip, for the first get of it. `mode`: permission bits of new objects; directories get the execute bits that belong to them. A forked child goes on over a connection of its own (`again`), where it opens its objects anew; locks are the parent's.
Result<std::shared_ptr<Target>> attach_to_agent(std::shared_ptr<AgentChannel> channel, const std::string& directory, const std::string& label,
                                                uint32_t mode, ConnectAgain again = {}, const std::string& read_first = "");

}  // namespace holdfast::target
