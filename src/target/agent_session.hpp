// The client's side of one session with an agent, over connections that may break. What was not answered is asked again on the next one, and is
// carried out once. Pure but for its lines.
#pragma once
#include <sys/types.h>

#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "target/agent.hpp"

namespace holdfast::target {

// One connection. A failure is its last.
class AgentLine {
 public:
  virtual ~AgentLine() = default;
  // All of it. Kind::io where the other side has gone: what was sent may have arrived or not.
  virtual Status send(std::span<const iovec> from) = 0;
  virtual Status receive(std::span<const iovec> into) = 0;
  // Whether the other side has ended it, as far as is known without asking. To be asked only where no answer is due.
  virtual bool has_ended() const { return false; }
  // In a forked child, which has one thread and a copy of the parent's socket.
  virtual void close_in_child() {}
};
// To the agent that was spoken with first, and to no successor.
using OpenLine = std::function<Result<std::unique_ptr<AgentLine>>()>;

// What goes over a line, as both sessions and the sums of other nodes' agents have it. The lengths in the header become those of what follows it.
Status send_request(AgentLine& line, AgentRequest& request, const std::string& name, std::span<const iovec> bulk);
// The first one of a connection.
Status send_begin(AgentLine& line, std::span<const SessionId> ids, bool go_on);
// The header of the answer to that request; its sentence and bytes are to be received next.
Status receive_header(AgentLine& line, uint32_t number, AgentAnswer& answer);
Status senseless_answer();

// What a process has lost with one agent, the latest of it. A disk there may still hold calls of theirs. The process's next session names them. It is
// answered when these calls have ended, so that nothing is asked there before.
class LostSessions {
 public:
  void note(const SessionId& id);
  const std::vector<SessionId>& all() const { return ids_; }

 private:
  std::vector<SessionId> ids_;
};

class SessionChannel final : public AgentChannel {
 public:
  // `instead`: sessions that end, because this one takes their place.
  SessionChannel(const SessionId& id, std::vector<SessionId> instead, OpenLine open);
  // The first connection.
  Status begin();
  Status ask(AgentRequest request, const std::string& name, std::span<const iovec> bulk, AgentAnswer& answer, std::string& sentence,
             std::span<const iovec> into) override;
  void post(AgentRequest request, const std::string& name) override;
  void enter() override;
  void leave() override;
  bool broken() const override;
  bool inherited() const override;
  // For one that nobody uses: whether the agent has hung up meanwhile. Waits for nothing.
  bool has_ended() const;
  // Called once, under the channel's own lock, by the call that finds the session lost.
  void when_broken(std::function<void()> tell) { tell_ = std::move(tell); }
  // Were its copy of the socket left open there, the agent would not see that the parent dies, and keep its locks.
  void close_in_child();
  const SessionId& id() const { return id_; }

 private:
  struct Posted {
    AgentRequest request;
    std::string name;
  };
  void post_alone(AgentRequest request, const std::string& name);
  Status ask_alone(AgentRequest& request, const std::string& name, std::span<const iovec> bulk, AgentAnswer& answer, std::string& sentence,
                   std::span<const iovec> into);
  Status over_connections(const std::function<Status()>& talk);
  Status open_line(bool go_on);
  Status go_on();
  Status receive(uint32_t number, AgentAnswer& answer, std::string& sentence, std::span<const iovec> into);
  void forget_posted(uint32_t last);
  void give_up();

  const SessionId id_;
  const std::vector<SessionId> instead_;
  const OpenLine open_;
  const pid_t owner_;
  mutable std::mutex mutex_;  // one question at a time
  std::unique_ptr<AgentLine> line_;
  bool over_ = false;
  std::atomic<int> users_{0};
  uint64_t incarnation_ = 0;   // 0: nothing was answered yet
  uint32_t number_ = 0;        // of the last request
  std::deque<Posted> posted_;  // those of which it is not known that they were carried out
  std::function<void()> tell_;
};

}  // namespace holdfast::target
