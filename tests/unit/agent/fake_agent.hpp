// An agent without sockets, threads or a clock: the real reader, seats and sessions, and a network that loses, delays and repeats what a test says.
#pragma once
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <vector>

#include "agent/request_reader.hpp"
#include "agent/seats.hpp"
#include "target/agent_session.hpp"

namespace holdfast::agent {

// What happens to a request, and to the connection that it comes by.
enum class Mishap : uint8_t {
  none,
  torn,        // half of it comes, and the connection is reset
  lost,        // all of it comes; reset, and it is not carried out
  delayed,     // the connection is reset; it is looked at when the client speaks by another one already
  unanswered,  // it is carried out; reset before the answer comes
  repeated,    // it comes twice
};

class FakeAgent {
 public:
  FakeAgent(std::shared_ptr<const Served> served, uint64_t incarnation, OpenPeer open_peer = {})
      : incarnation_(incarnation), seats_(std::move(served), std::move(open_peer)) {}
  FakeAgent(const FakeAgent&) = delete;

  std::function<Mishap(const target::AgentRequest&)> mishap = [](const target::AgentRequest&) { return Mishap::none; };
  bool at_begins = false;    // mishaps happen to these too
  bool refuses = false;      // nobody can connect
  bool patient = true;       // those whose connection is reset may come back
  uint64_t round_trips = 0;  // of all clients: those that waited for an answer
  uint64_t connections = 0;

  static target::OpenLine line_to(const std::shared_ptr<FakeAgent>& agent) {
    return [agent = std::weak_ptr(agent)]() -> Result<std::unique_ptr<target::AgentLine>> {
      const auto there = agent.lock();
      if (!there || there->refuses) return Status(Kind::io, "nobody answers");
      return std::unique_ptr<target::AgentLine>(std::make_unique<Line>(there));
    };
  }
  // A client that was away for too long.
  void give_up_those_away() {
    for (const auto& seat : std::exchange(away_, {}))
      if (seats_.give_up(seat)) seat->session.end();
  }
  void reset_all() {
    for (auto& [number, wire] : wires_) reset(number, wire);
  }
  // What was on its way when a connection was reset comes now.
  void deliver_late() {
    for (const Late& late : std::exchange(late_, {})) {
      Seats::SeatPtr seat;
      if (seats_.take(late.connection, late.request, seat) == Seats::Verdict::fresh) std::abort();  // a late write after a newer one
    }
  }

 private:
  struct Wire {
    RequestReader reader;
    std::deque<std::byte> answers;
    bool broken = false;
  };
  struct Late {
    Seats::Connection connection;
    target::AgentRequest request;
  };

  class Line final : public target::AgentLine {
   public:
    explicit Line(std::shared_ptr<FakeAgent> agent) : agent_(std::move(agent)), number_(++agent_->connections) { agent_->wires_[number_]; }
    ~Line() override { agent_->close(number_); }
    Status send(std::span<const iovec> from) override { return agent_->take(number_, from) ? Status() : gone(); }
    Status receive(std::span<const iovec> into) override { return agent_->give(number_, into) ? Status() : gone(); }

   private:
    static Status gone() { return Status(Kind::io, "the connection has gone", ECONNRESET); }
    const std::shared_ptr<FakeAgent> agent_;
    const Seats::Connection number_;
  };

  void reset(Seats::Connection number, Wire& wire) {
    if (std::exchange(wire.broken, true)) return;
    if (const auto left = seats_.leave(number, false); left.seat) away_.push_back(left.seat);
    if (!patient) give_up_those_away();
  }
  void close(Seats::Connection number) {
    if (const auto left = seats_.leave(number, true); left.seat) left.seat->session.end();
    wires_.erase(number);
  }
  bool take(Seats::Connection number, std::span<const iovec> from) {
    Wire& wire = wires_.at(number);
    Bytes all;
    for (const iovec& one : from) {
      const auto* at = static_cast<const std::byte*>(one.iov_base);
      all.insert(all.end(), at, at + one.iov_len);
    }
    if (wire.broken) return false;
    target::AgentRequest head;
    std::memcpy(&head, all.data(), sizeof head);
    const Mishap what = target::AgentOp(head.op) == target::AgentOp::begin && !at_begins ? Mishap::none : mishap(head);
    size_t bytes = what == Mishap::torn ? all.size() / 2 : all.size();
    for (const std::byte* at = all.data(); bytes > 0;) {
      const auto room = wire.reader.room();
      const size_t piece = std::min(bytes, room.size());
      std::memcpy(room.data(), at, piece);
      at += piece, bytes -= piece;
      const auto state = wire.reader.came(piece);
      if (state == RequestReader::State::senseless) std::abort();  // the client's own fault
      if (state == RequestReader::State::wants_memory) wire.reader.admit();
      if (state == RequestReader::State::whole) came(number, wire, what);
    }
    if (what == Mishap::torn) reset(number, wire);
    return !wire.broken;
  }
  void came(Seats::Connection number, Wire& wire, Mishap what) {
    const target::AgentRequest request = wire.reader.request();
    if (target::AgentOp(request.op) == target::AgentOp::begin) {
      if (what != Mishap::lost && what != Mishap::delayed) begin(number, wire, request);
    } else if (what == Mishap::delayed) late_.push_back({number, request});
    else if (what != Mishap::lost) carry_out(number, wire, request);
    if (what == Mishap::repeated && target::AgentOp(request.op) != target::AgentOp::begin) {
      Seats::SeatPtr seat;
      const auto verdict = seats_.take(number, request, seat);
      if (verdict == Seats::Verdict::fresh && seat->answer) std::abort();
      if (verdict == Seats::Verdict::fresh) seat->busy = false;
    }
    wire.reader.next();
    if (what != Mishap::none && what != Mishap::repeated) reset(number, wire);
  }
  void begin(Seats::Connection number, Wire& wire, const target::AgentRequest& request) {
    std::vector<target::SessionId> ids(wire.reader.bulk().size() / sizeof(target::SessionId));
    std::memcpy(ids.data(), wire.reader.bulk().data(), wire.reader.bulk().size());
    const auto begun = seats_.begin(number, ids.at(0), request.flags & 1, std::span(ids).subspan(1));
    for (const auto fenced : begun.fenced)
      if (const auto other = wires_.find(fenced); other != wires_.end()) other->second.broken = true;
    Session::Reply reply = Session::reply_of(begun.status);
    if (begun.status.ok()) {
      std::vector<Seats::SeatPtr> over;
      if (seats_.when(number, over) != Seats::When::now) std::abort();  // nothing takes time here
      for (const auto& seat : over) seat->session.end();
      reply.answer.value = seats_.last(number);
    }
    if (!request.quiet) answer(wire, 0, reply);
  }
  void carry_out(Seats::Connection number, Wire& wire, const target::AgentRequest& request) {
    Seats::SeatPtr seat;
    const auto verdict = seats_.take(number, request, seat);
    if (verdict == Seats::Verdict::again) answer(wire, request.number, *seat->answer);
    if (verdict == Seats::Verdict::senseless) std::abort();
    if (verdict != Seats::Verdict::fresh) return;
    auto made = std::make_shared<Session::Reply>(seat->session.answer(request, wire.reader.name(), wire.reader.bulk()));
    made->make_sum();
    const std::shared_ptr<const Session::Reply> reply = std::move(made);
    if (seats_.answered(number, request, reply)) answer(wire, request.number, *reply);
  }
  void answer(Wire& wire, uint32_t number, const Session::Reply& reply) {
    target::AgentAnswer head = reply.answer;
    head.number = number, head.incarnation = incarnation_;
    if (!sensible(head)) std::abort();
    const auto add = [&](const void* from, size_t bytes) {
      const auto* at = static_cast<const std::byte*>(from);
      wire.answers.insert(wire.answers.end(), at, at + bytes);
    };
    add(&head, sizeof head), add(reply.sentence.data(), reply.sentence.size()), add(reply.bulk.data(), reply.bulk.size());
    ++round_trips;
  }
  bool give(Seats::Connection number, std::span<const iovec> into) {
    Wire& wire = wires_.at(number);
    if (wire.broken) return false;
    for (const iovec& one : into) {
      if (wire.answers.size() < one.iov_len) std::abort();  // it would wait for ever
      std::copy_n(wire.answers.begin(), one.iov_len, static_cast<std::byte*>(one.iov_base));
      wire.answers.erase(wire.answers.begin(), wire.answers.begin() + std::ptrdiff_t(one.iov_len));
    }
    return true;
  }

  const uint64_t incarnation_;
  Seats seats_;
  std::map<Seats::Connection, Wire> wires_;
  std::vector<Late> late_;
  std::vector<Seats::SeatPtr> away_;
};

}  // namespace holdfast::agent
