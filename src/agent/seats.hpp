// Which connection speaks for which session: the latest. Pure: whoever calls it lets one at a time in, and waits where it says so.
//
// A connection that takes a session over fences the one before. Nothing that comes from there is carried out any more. The new one is answered when
// what was begun there has ended. So no late write lands after a newer one.
#pragma once
#include <map>
#include <memory>
#include <vector>

#include "agent/session.hpp"

namespace holdfast::agent {

class Seats {
 public:
  explicit Seats(std::shared_ptr<const Served> served, OpenPeer open_peer = {}) : served_(std::move(served)), open_peer_(std::move(open_peer)) {}
  using Connection = uint64_t;  // the caller's number for it, from 1 on
  using SessionId = target::SessionId;

  // One client's session.
  struct Seat {
    Seat(std::shared_ptr<const Served> served, OpenPeer open_peer) : session(std::move(served), std::move(open_peer)) {}
    Session session;
    uint64_t number = 0;     // of all that there were
    Connection speaker = 0;  // 0: nobody now
    bool busy = false;       // a request is being carried out
    bool over = false;
    uint32_t last = 0;                             // number of the last request that was carried out
    std::shared_ptr<const Session::Reply> answer;  // what it was answered with; null: it can be carried out again
  };
  using SeatPtr = std::shared_ptr<Seat>;

  struct Begun {
    Status status;                   // why it has no session
    std::vector<Connection> fenced;  // those are to be hung up
  };
  // go_on: with a session that there is. Those in `instead` end.
  Begun begin(Connection connection, const SessionId& id, bool go_on, std::span<const SessionId> instead);
  // Whether the calls have ended for which the connection has to wait: it is to be asked again when `answered` has been called. Sessions that
  // are over come out, to be ended without the caller's lock: that can take long.
  enum class When : uint8_t { now, later, fenced };
  When when(Connection connection, std::vector<SeatPtr>& ended);

  // A request has come. fresh: it is carried out on the seat's session, and `answered`. again: `seat->answer` is what it gets. quiet: it was
  // carried out, and nothing is answered.
  enum class Verdict : uint8_t { fresh, again, quiet, fenced, senseless };
  Verdict take(Connection connection, const target::AgentRequest& request, SeatPtr& seat);
  // Whether the connection still speaks there and the answer is to be sent.
  bool answered(Connection connection, const target::AgentRequest& request, std::shared_ptr<const Session::Reply> reply);

  // The connection is gone. `gone`: the client has ended; its session comes out, to be ended. Else the session waits for another connection, until
  // `give_up` gets what came out. Nothing comes out where another one speaks there.
  struct Left {
    SeatPtr seat;
    std::vector<SeatPtr> dropped;  // to be let go of without the caller's lock
  };
  Left leave(Connection connection, bool gone);
  // True: nobody has gone on with it, and it is to be ended.
  bool give_up(const SeatPtr& seat);
  uint32_t last(Connection connection) const;  // number of the last request of its session
  // That of the session for which it speaks; null where it speaks for none.
  SeatPtr seat_of(Connection connection) const;
  // What the seat keeps of requests that have been answered, and giving that up: its client has been silent for long.
  static uint64_t kept_bytes(const Seat& seat);
  static void forget(Seat& seat);

 private:
  struct Place {
    SessionId id;
    SeatPtr seat;
    std::vector<SeatPtr> awaited;
  };
  void fence(Seat& seat, Place& place, std::vector<Connection>& fenced);
  void end(const SessionId& id, Place& place, std::vector<Connection>& fenced);
  const std::shared_ptr<const Served> served_;
  const OpenPeer open_peer_;
  uint64_t made_ = 0;
  std::map<SessionId, SeatPtr> seats_;
  std::map<Connection, Place> places_;
};

}  // namespace holdfast::agent
