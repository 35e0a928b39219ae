// An agent without sockets, threads or a clock: the real reader, seats and sessions, and a network that loses, delays and repeats what a test says.
//
// It keeps books of its own on who may still be heard, which know nothing of seats: what a session asks is carried out for the connection that was
// answered last, and for nobody once the session is over.
#pragma once
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
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
  slow,        // the disk takes its time; what else the client does meanwhile comes first
  astray,      // the client finds the connection reset, the agent does not: it comes in by that one later
};

// Of a world in which others go on while one waits.
struct Surroundings {
  std::function<int()> process = [] { return 0; };                        // who speaks; `an_agent`: none of the job's
  std::function<bool()> lives = [] { return true; };                      // who speaks
  std::function<Status(int process)> way = [](int) { return Status(); };  // to the agent, and back
  std::function<void()> wait = [] { std::abort(); };                      // others go on
  std::function<void()> connecting = [] {};                               // perhaps they do
  std::function<void(std::function<void()>)> later;                       // it is done when others have gone on
  std::function<bool()> breaks = [] { return false; };                    // whether a connection does while its request is carried out
  std::function<void(const std::string&)> wrong = [](const std::string&) { std::abort(); };
};

class FakeAgent {
 public:
  static constexpr int an_agent = -1;

  FakeAgent(std::shared_ptr<const Served> served, uint64_t incarnation, OpenPeer open_peer = {}, Surroundings around = {})
      : incarnation_(incarnation), seats_(std::move(served), std::move(open_peer)), around_(std::move(around)) {}
  FakeAgent(const FakeAgent&) = delete;

  std::function<Mishap(const target::AgentRequest&)> mishap = [](const target::AgentRequest&) { return Mishap::none; };
  bool at_begins = false;    // mishaps happen to these too
  bool refuses = false;      // nobody can connect
  bool patient = true;       // those whose connection is reset may come back
  uint64_t round_trips = 0;  // of all clients: those that waited for an answer
  uint64_t connections = 0;
  // What came of mishaps: takeovers that had to wait for a call, late requests that were turned away, and that were still the session's.
  uint64_t waited_for_calls = 0, late_refused = 0, late_taken = 0, reset_while_busy = 0;
  uint64_t awaited_by_the_next = 0;  // sessions that had to wait for calls of those that their client had lost

  // `process`: whose it is, where it is not of who asks.
  static target::OpenLine line_to(const std::shared_ptr<FakeAgent>& agent, std::optional<int> process = {}) {
    return [agent = std::weak_ptr(agent), process]() -> Result<std::unique_ptr<target::AgentLine>> {
      const auto there = agent.lock();
      if (!there || there->refuses || !there->around_.lives()) return Status(Kind::io, "nobody answers");
      const int owner = process.value_or(there->around_.process());
      HF_TRY(there->around_.way(owner));
      there->around_.connecting();
      if (there->refuses || !there->around_.lives()) return Status(Kind::io, "nobody answers");
      return std::unique_ptr<target::AgentLine>(std::make_unique<Line>(there, owner));
    };
  }
  // A client that was away for too long.
  void give_up_those_away() {
    for (const Away& one : std::exchange(away_, {})) give_up(one);
  }
  void reset_all() {
    for (const auto& [number, wire] : Wires(wires_)) reset(number, *wire);
  }
  // What was on its way when a connection was reset comes now.
  void deliver_late() {
    for (const Late& late : std::exchange(late_, {})) {
      Seats::SeatPtr seat;
      if (seats_.take(late.connection, late.request, seat) == Seats::Verdict::fresh) std::abort();  // a late write after a newer one
    }
  }
  // It is killed, with all that it was doing.
  void die() {
    refuses = dead_ = true;
    for (const auto& [number, wire] : Wires(wires_)) {
      wire->busy = false, wire->begins.reset();
      end_for_agent(number, *wire, true);
    }
    give_up_those_away();
  }
  // The process has ended: the kernel closes what it had open, also copies of what its parent had.
  void died(int process) {
    died_.insert(process);
    for (const auto& [number, wire] : Wires(wires_)) let_go(number, *wire, process);
    give_up_of(process);
  }
  // Nothing was heard of the process for so long that its connections count as broken. `closed`: only those that it has closed without a way.
  void expire(int process, bool closed) {
    for (const auto& [number, wire] : Wires(wires_)) {
      if (wire->process != process || (closed && !wire->holders.empty())) continue;
      wire->ends.reset();
      wire->broken = true;
      end_for_agent(number, *wire, true);
    }
    if (!closed) give_up_of(process);
  }
  // That have a session there, by a connection that the agent takes for whole.
  bool hears(int process) const {
    return std::any_of(wires_.begin(), wires_.end(), [&](const auto& one) { return one.second->process == process && !one.second->left; });
  }
  // What the parent has closed since the fork, or has died with, the child had closed then.
  void close_what_parents_closed(int child) {
    for (const auto& [number, wire] : Wires(wires_))
      if (wire->process != child && !wire->holders.contains(wire->process)) let_go(number, *wire, child);
  }
  // The client says so to whoever keeps the books, and to the agent or not.
  void lost_by_client(const target::SessionId& session) { lost_.insert(session); }
  void forked(int parent, int child) {
    for (const auto& [number, wire] : wires_)
      if (wire->holders.contains(parent)) wire->holders.insert(child);
  }

 private:
  struct Asked {
    target::AgentRequest request;
    std::string name;
    Bytes bulk;
    Mishap what = Mishap::none;
  };
  struct Begins {
    bool quiet, goes_on;
    std::vector<target::SessionId> instead;
  };
  struct Wire {
    RequestReader reader;
    std::deque<std::byte> answers;
    int process = 0;
    std::set<int> holders;         // processes that have it open
    bool broken = false;           // for the client
    bool silent = false;           // nor does the agent hear that it is closed
    bool left = false;             // by the agent
    bool busy = false;             // a request that came by it is being carried out
    std::optional<bool> ends;      // when that has ended; whether the client is gone
    std::optional<Begins> begins;  // and waits for its turn
    target::SessionId session{};
    std::deque<Asked> waiting;  // behind those
  };
  using WirePtr = std::shared_ptr<Wire>;
  using Wires = std::map<Seats::Connection, WirePtr>;
  struct Late {
    Seats::Connection connection;
    target::AgentRequest request;
  };
  struct Away {
    Seats::SeatPtr seat;
    target::SessionId session;
    int process;
  };

  class Line final : public target::AgentLine {
   public:
    Line(std::shared_ptr<FakeAgent> agent, int process) : agent_(std::move(agent)), number_(agent_->connect(process)) {}
    ~Line() override { agent_->close(number_); }
    Status send(std::span<const iovec> from) override {
      HF_TRY(agent_->may_speak(number_));
      return agent_->take(number_, from) ? Status() : gone();
    }
    Status receive(std::span<const iovec> into) override {
      HF_TRY(agent_->may_speak(number_));
      return agent_->give(number_, into);
    }
    void close_in_child() override { agent_->close(number_); }

   private:
    const std::shared_ptr<FakeAgent> agent_;
    const Seats::Connection number_;
  };
  static Status gone() { return Status(Kind::io, "the connection has gone", ECONNRESET); }

  Seats::Connection connect(int process) {
    const WirePtr wire = wires_[++connections] = std::make_shared<Wire>();
    wire->process = process;
    wire->holders.insert(process);
    return connections;
  }
  Status may_speak(Seats::Connection number) {
    if (!around_.lives()) return gone();
    const WirePtr wire = find(number);
    const int process = around_.process();
    if (wire && wire->process != an_agent && wire->process != process)
      around_.wrong("process " + std::to_string(process) + " speaks by a connection of process " + std::to_string(wire->process));
    return wire ? around_.way(wire->process) : Status();
  }
  WirePtr find(Seats::Connection number) const {
    const auto found = wires_.find(number);
    return found == wires_.end() ? nullptr : found->second;
  }

  // --- connections that end

  void reset(Seats::Connection number, Wire& wire) {
    if (std::exchange(wire.broken, true)) return;
    end_for_agent(number, wire, false);
    if (patient) return;
    for (const Away& one : std::exchange(away_, {}))
      if (one.session == wire.session) give_up(one);
      else away_.push_back(one);
  }
  void close(Seats::Connection number) {
    const WirePtr wire = find(number);
    if (wire) let_go(number, *wire, wire->process == an_agent ? an_agent : around_.process());
  }
  // The agent hears of it when the last one has closed it, and where there is a way.
  void let_go(Seats::Connection number, Wire& wire, int process) {
    if (wire.holders.erase(process) == 0 || !wire.holders.empty()) return;
    wire.broken = true;
    if ((around_.way(wire.process).ok() && !wire.silent) || wire.left) end_for_agent(number, wire, true);
  }
  // Whatever it has begun has to end first. That a client closes what was reset nobody hears.
  void end_for_agent(Seats::Connection number, Wire& wire, bool client_gone) {
    if (wire.busy || wire.begins) {
      if (!wire.ends) wire.ends = client_gone;
      return;
    }
    wire.broken = wire.left = true;
    wire.waiting.clear();
    const auto left = seats_.leave(number, client_gone);
    const Away away{left.seat, wire.session, wire.process};
    if (left.seat && client_gone) end(away);
    else if (left.seat && died_.contains(away.process)) give_up(away);
    else if (left.seat) away_.push_back(away);
    if (wire.holders.empty()) wires_.erase(number);
    if (left.seat && client_gone) turns();
  }
  void give_up_of(int process) {
    for (const Away& one : std::exchange(away_, {}))
      if (one.process == process) give_up(one);
      else away_.push_back(one);
  }
  void give_up(const Away& one) {
    if (seats_.give_up(one.seat)) end(one);
  }
  void end(const Away& one) {
    one.seat->session.end();
    heard_[one.session] = 0;
  }

  // --- requests

  bool take(Seats::Connection number, std::span<const iovec> from) {
    const WirePtr wire = find(number);
    if (!wire || wire->broken) return false;
    Bytes all;
    for (const iovec& one : from) {
      const auto* at = static_cast<const std::byte*>(one.iov_base);
      all.insert(all.end(), at, at + one.iov_len);
    }
    target::AgentRequest head;
    std::memcpy(&head, all.data(), sizeof head);
    const Mishap what = target::AgentOp(head.op) == target::AgentOp::begin && !at_begins ? Mishap::none : mishap(head);
    if (wire->broken) return false;
    size_t bytes = what == Mishap::torn ? all.size() / 2 : all.size();
    for (const std::byte* at = all.data(); bytes > 0;) {
      const auto room = wire->reader.room();
      const size_t piece = std::min(bytes, room.size());
      std::memcpy(room.data(), at, piece);
      at += piece, bytes -= piece;
      const auto state = wire->reader.came(piece);
      if (state == RequestReader::State::senseless) std::abort();  // the client's own fault
      if (state == RequestReader::State::wants_memory) wire->reader.admit();
      if (state != RequestReader::State::whole) continue;
      const ByteView bulk = wire->reader.bulk();
      Asked asked{wire->reader.request(), wire->reader.name(), Bytes(bulk.begin(), bulk.end()), what};
      wire->reader.next();
      came(number, *wire, std::move(asked));
    }
    if (what == Mishap::torn) reset(number, *wire);
    return !wire->broken;
  }
  // One after another, also where the client does not wait.
  void came(Seats::Connection number, Wire& wire, Asked asked) {
    if (asked.what == Mishap::astray) return go_astray(number, wire, std::move(asked));
    if (wire.busy || wire.begins) return wire.waiting.push_back(std::move(asked));
    look_at(number, wire, asked);
  }
  void look_at(Seats::Connection number, Wire& wire, const Asked& asked) {
    const target::AgentRequest& request = asked.request;
    const Mishap what = asked.what;
    if (target::AgentOp(request.op) == target::AgentOp::begin) {
      if (what != Mishap::lost && what != Mishap::delayed) begin(number, wire, asked);
    } else if (what == Mishap::delayed) late_.push_back({number, request});
    else if (what != Mishap::lost) carry_out(number, wire, asked);
    if (what == Mishap::repeated && target::AgentOp(request.op) != target::AgentOp::begin && !wire.left) {
      Seats::SeatPtr seat;
      const auto verdict = seats_.take(number, request, seat);
      if (verdict == Seats::Verdict::fresh && seat->answer) std::abort();
      if (verdict == Seats::Verdict::fresh) seat->busy = false;
    }
    if (what != Mishap::none && what != Mishap::repeated && what != Mishap::slow) reset(number, wire);
  }
  // The agent finds out that nobody is there any more when it comes.
  void go_astray(Seats::Connection number, Wire& wire, Asked asked) {
    wire.broken = wire.silent = true;
    around_.later([this, number, asked = std::move(asked)] {
      if (dead_) return;
      const WirePtr now = find(number);
      Seats::SeatPtr seat;
      if (!now || now->left || now->busy || now->begins) ++late_refused;
      else if (seats_.take(number, asked.request, seat) != Seats::Verdict::fresh) ++late_refused;
      else ++late_taken, carry_out_fresh(number, *now, asked, seat);
      if (now) end_for_agent(number, *now, false);
    });
  }
  void begin(Seats::Connection number, Wire& wire, const Asked& asked) {
    std::vector<target::SessionId> ids(asked.bulk.size() / sizeof(target::SessionId));
    std::memcpy(ids.data(), asked.bulk.data(), asked.bulk.size());
    wire.session = ids.at(0);
    const auto begun = seats_.begin(number, ids[0], asked.request.flags & 1, std::span(ids).subspan(1));
    for (const auto fenced : begun.fenced)
      if (const WirePtr other = find(fenced)) other->broken = true;
    if (!begun.status.ok()) {
      if (!asked.request.quiet) answer(wire, 0, Session::reply_of(begun.status));
      return;
    }
    owners_[wire.session] = wire.process;
    wire.begins = Begins{asked.request.quiet != 0, (asked.request.flags & 1) != 0, {ids.begin() + 1, ids.end()}};
    turns();
    if (!wire.begins) return;
    ++waited_for_calls;
    awaited_by_the_next += !wire.begins->goes_on && !wire.begins->instead.empty();
  }
  // Those that have begun, and waited for calls of before.
  void turns() {
    for (const auto& [number, wire] : Wires(wires_)) {
      if (!wire->begins || wire->left) continue;
      std::vector<Seats::SeatPtr> over;
      const auto turn = seats_.when(number, over);
      if (turn == Seats::When::later) continue;
      const Begins begins = *std::exchange(wire->begins, std::nullopt);
      for (const auto& seat : over) seat->session.end();
      if (turn == Seats::When::fenced) {
        wire->broken = true;
        if (wire->ends) end_for_agent(number, *wire, *wire->ends);
        continue;
      }
      for (const auto& session : begins.instead) heard_[session] = 0;
      if (!begins.goes_on) comes_after_lost_ones(*wire);
      heard_[wire->session] = number;
      Session::Reply reply = Session::reply_of(Status());
      reply.answer.value = seats_.last(number);
      if (!begins.quiet) answer(*wire, 0, reply);
      if (wire->ends) end_for_agent(number, *wire, *wire->ends);
      else go_on(number, *wire);
    }
  }
  // What a process asks over a session that begins comes after all that it has asked over those that it has lost by then.
  void comes_after_lost_ones(const Wire& wire) {
    for (const auto& session : lost_) {
      if (session == wire.session || owners_[session] != wire.process) continue;
      heard_[session] = 0;
      for (const auto& [number, other] : wires_)
        if (other->session == session && other->busy)
          around_.wrong("process " + std::to_string(wire.process) + " is let in again while a call of before is being carried out");
    }
  }
  void go_on(Seats::Connection number, Wire& wire) {
    while (!wire.waiting.empty() && !wire.busy && !wire.begins && !wire.left) {
      const Asked next = std::move(wire.waiting.front());
      wire.waiting.pop_front();
      look_at(number, wire, next);
    }
  }
  void carry_out(Seats::Connection number, Wire& wire, const Asked& asked) {
    Seats::SeatPtr seat;
    const auto verdict = seats_.take(number, asked.request, seat);
    if (verdict == Seats::Verdict::again) answer(wire, asked.request.number, *seat->answer);
    if (verdict == Seats::Verdict::senseless) std::abort();
    if (verdict == Seats::Verdict::fresh) carry_out_fresh(number, wire, asked, seat);
  }
  void carry_out_fresh(Seats::Connection number, Wire& wire, const Asked& asked, const Seats::SeatPtr& seat) {
    wire.busy = true;
    if (asked.what != Mishap::slow) return finish(number, asked, seat);
    around_.later([this, number, asked, seat] {
      if (dead_) return;
      if (const WirePtr wire = find(number); wire && around_.breaks()) {
        wire->broken = true, ++reset_while_busy;
        end_for_agent(number, *wire, false);
        return around_.later([this, number, asked, seat] {
          if (!dead_) finish(number, asked, seat);
        });
      }
      finish(number, asked, seat);
    });
  }
  void finish(Seats::Connection number, const Asked& asked, const Seats::SeatPtr& seat) {
    const WirePtr wire = find(number);
    is_heard(number, *wire);
    auto made = std::make_shared<Session::Reply>(seat->session.answer(asked.request, asked.name, asked.bulk));
    made->make_sum();
    if (dead_) return;
    is_heard(number, *wire);
    const std::shared_ptr<const Session::Reply> reply = std::move(made);
    if (seats_.answered(number, asked.request, reply) && !wire->broken) answer(*wire, asked.request.number, *reply);
    wire->busy = false;
    if (wire->ends) end_for_agent(number, *wire, *wire->ends);
    else go_on(number, *wire);
    turns();
  }
  // Whether the connection is the one that may still change anything.
  void is_heard(Seats::Connection number, const Wire& wire) {
    const auto heard = heard_.find(wire.session);
    if (heard != heard_.end() && heard->second == number) return;
    around_.wrong("a request of process " + std::to_string(wire.process) +
                  (heard == heard_.end() || heard->second == 0 ? " is carried out after its session" : " lands after the takeover of its session"));
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
  Status give(Seats::Connection number, std::span<const iovec> into) {
    const WirePtr wire = find(number);
    if (!wire || wire->broken) return gone();
    for (const iovec& one : into) {
      while (wire->answers.size() < one.iov_len) {
        around_.wait();
        if (wire->broken || !around_.lives()) return gone();
        HF_TRY(around_.way(wire->process));
      }
      std::copy_n(wire->answers.begin(), one.iov_len, static_cast<std::byte*>(one.iov_base));
      wire->answers.erase(wire->answers.begin(), wire->answers.begin() + std::ptrdiff_t(one.iov_len));
    }
    return {};
  }

  const uint64_t incarnation_;
  Seats seats_;
  const Surroundings around_;
  Wires wires_;
  std::map<target::SessionId, Seats::Connection> heard_;  // the connection whose requests may still be carried out; 0: nobody's
  std::map<target::SessionId, int> owners_;               // processes
  std::set<target::SessionId> lost_;                      // by their clients
  std::vector<Late> late_;
  std::vector<Away> away_;
  std::set<int> died_;  // processes
  bool dead_ = false;
};

}  // namespace holdfast::agent
