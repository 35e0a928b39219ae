// An agent's clients: a thread for each connection, around the seats (seats.hpp) of their sessions.
#pragma once
#include <atomic>
#include <condition_variable>
#include <functional>
#include <mutex>

#include "agent/request_reader.hpp"
#include "agent/seats.hpp"
#include "base/raw_syscalls.hpp"

namespace holdfast::agent {

class Clients {
 public:
  // `aside` answers what is asked of the agent and not of a directory; nothing: it is of a directory.
  using Aside = std::function<std::optional<Session::Reply>(const target::AgentRequest&)>;
  // `open` opens a directory for a process of this node, or says why not. `end` is called when one has asked for the agent's end, and has its answer.
  using OpenForNode = std::function<Result<raw::Fd>(const std::string&)>;
  Clients(std::shared_ptr<const Served> served, uint64_t incarnation, Aside aside, OpenForNode open, std::function<void()> end);

  // Until the connection has ended, and its session with it, or another connection goes on with that.
  void serve(int fd);
  uint64_t requests() const { return requests_; }
  uint64_t senseless() const { return senseless_; }

 private:
  using Connection = Seats::Connection;
  // gone: the client has ended. reset: the connection broke, and the client may come back. hung_up: by us.
  enum class Ending : uint8_t { none, gone, reset, hung_up };
  Ending converse(Connection connection, int fd);
  Ending begin(Connection connection, int fd, const target::AgentRequest& request, ByteView bulk);
  Ending hand_over(int fd, const RequestReader& reader) const;
  Ending carry_out(Connection connection, int fd, const RequestReader& reader);
  std::shared_ptr<const Session::Reply> answer_to(Seats::Seat& seat, const RequestReader& reader) const;
  Ending send(int fd, uint32_t number, const Session::Reply& reply) const;
  void leave(Connection connection, Ending ending);

  const uint64_t incarnation_;
  const Aside aside_;
  const OpenForNode open_;
  const std::function<void()> end_;
  const std::shared_ptr<const Session::Reply> no_memory_;  // made while there is some
  std::mutex mutex_;
  std::condition_variable changed_;
  Seats seats_;
  std::map<Connection, int> sockets_;
  Connection last_connection_ = 0;
  std::atomic<uint64_t> requests_{0}, senseless_{0};
};

}  // namespace holdfast::agent
