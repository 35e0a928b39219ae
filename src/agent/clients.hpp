// An agent's clients: a thread for each connection, around the seats (seats.hpp) of their sessions.
#pragma once
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>

#include "agent/client_process.hpp"
#include "agent/credits.hpp"
#include "agent/request_reader.hpp"
#include "agent/seats.hpp"
#include "base/raw_syscalls.hpp"

namespace holdfast::agent {

// How much clients get of an agent's memory, and how long they may keep it and do not go on.
struct Limits {
  using Time = std::chrono::milliseconds;
  uint64_t moving_bytes = 32 << 20;  // of requests and answers on their way
  uint64_t begun_bytes = 32 << 20;   // of what comes or goes in several of them
  Time stalled{30000};
  Time stalled_before_others{2000};  // while others wait for what it holds
};

class Clients {
 public:
  // `aside` answers what is asked of the agent and not of a directory; nothing: it is of a directory.
  using Aside = std::function<std::optional<Session::Reply>(const target::AgentRequest&)>;
  // `open` opens a directory for a process of this node, or says why not. `end` is called when one has asked for the agent's end, and has its answer.
  using OpenForNode = std::function<Result<raw::Fd>(const std::string&)>;
  Clients(std::shared_ptr<const Served> served, uint64_t incarnation, Aside aside, OpenForNode open, std::function<void()> end, Limits limits = {},
          OpenPeer open_peer = {});

  // Until the connection has ended, and its session with it, or another connection goes on with that.
  void serve(raw::Fd fd);
  uint64_t requests() const { return requests_; }
  uint64_t senseless() const { return senseless_; }
  // Of those that are connected, those that use nothing now. `when_resting` is called by one that begins to.
  int resting() const { return resting_; }
  std::function<void()> when_resting;

 private:
  using Connection = Seats::Connection;
  // gone: the client has ended. reset: the connection broke, and the client may come back. stalled: by us, and it may come back. hung_up: by us.
  enum class Ending : uint8_t { none, gone, reset, stalled, hung_up };
  // Of one directory: one whose disk hangs takes nothing from the others.
  struct Memory {
    Credits moving, begun;
  };
  // One connection.
  struct Client {
    Connection connection;
    raw::Fd fd;
    RequestReader reader;
    Memory* memory = nullptr;  // it holds some of `moving` there
    bool keeps = false;        // its session holds some of `begun`
    bool asked = false;        // for what the request takes
    bool rests = false;
  };
  Ending converse(Client& client);
  Ending wait_for_bytes(Client& client);
  Ending wait_for(const Client& client, short event);
  Ending take_memory(Client& client);
  Ending take(std::unique_lock<std::mutex>& lock, Credits& credits, Credits::Holder holder, uint64_t bytes, int fd);
  void wake(const std::vector<Credits::Holder>& next);
  void give_back_moving(Client& client);
  void sweep();
  void keep(Client& client, const Seats::SeatPtr& seat);
  void forget(Client& client);
  void rest(Client& client, bool rests);
  Ending begin(Client& client);
  Ending hand_over(const Client& client);
  Ending carry_out(Client& client);
  Ending whole(Client& client);
  std::shared_ptr<const Session::Reply> answer_to(Seats::Seat& seat, const RequestReader& reader) const;
  Ending send(const Client& client, uint32_t number, const Session::Reply& reply);
  Ending send_all(const Client& client, std::span<iovec> parts);
  static Ending ending_of_send(int fd, int reason);
  Ending send_sum(const Client& client, Sum& sum);
  void leave(Client& client, Ending ending);
  void wait_for_return(std::unique_lock<std::mutex>& lock, Client& client, const Seats::SeatPtr& seat, const ClientProcess& process, Ending ending);
  void wait_until_decided(std::unique_lock<std::mutex>& lock, Client& client, const Seats::Seat& seat, const ClientProcess* process,
                          Limits::Time patience);

  const uint64_t incarnation_;
  const Aside aside_;
  const OpenForNode open_;
  const std::function<void()> end_;
  const std::shared_ptr<const Session::Reply> no_memory_;  // made while there is some
  const Limits limits_;
  std::mutex mutex_;
  std::condition_variable changed_;
  Seats seats_;
  std::map<Connection, int> sockets_;
  Connection last_connection_ = 0;
  std::map<std::string, Memory> memory_;                                                // by directory
  std::map<Credits::Holder, std::condition_variable*> waiting_;                         // who waits for some
  std::map<Credits::Holder, std::pair<std::weak_ptr<Seats::Seat>, Credits*>> keepers_;  // of `begun`: sessions end in many places
  std::atomic<uint64_t> requests_{0}, senseless_{0};
  std::atomic<int> resting_{0};
};

}  // namespace holdfast::agent
