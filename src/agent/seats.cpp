#include "agent/seats.hpp"

#include <algorithm>
#include <cerrno>
#include <utility>

namespace holdfast::agent {

using target::AgentOp;

namespace {
constexpr size_t most_instead = 16;
}  // namespace

// Whoever speaks there is fenced. The connection at `place` waits for its calls, and for those that it was waiting for itself.
void Seats::fence(Seat& seat, Place& place, std::vector<Connection>& fenced) {
  if (seat.speaker == 0) return;
  fenced.push_back(seat.speaker);
  if (const auto former = places_.find(seat.speaker); former != places_.end())
    place.awaited.insert(place.awaited.end(), former->second.awaited.begin(), former->second.awaited.end());
}

void Seats::end(const SessionId& id, Place& place, std::vector<Connection>& fenced) {
  const auto found = seats_.find(id);
  if (found == seats_.end()) return;
  const SeatPtr seat = found->second;
  seats_.erase(found);
  fence(*seat, place, fenced);
  seat->speaker = 0, seat->over = true;
  place.awaited.push_back(seat);
}

Seats::Begun Seats::begin(Connection connection, const SessionId& id, bool go_on, std::span<const SessionId> instead) {
  if (places_.contains(connection) || instead.size() > most_instead) return {Status(Kind::invalid, "a connection is of one session", EPROTO), {}};
  const auto found = seats_.find(id);
  if (go_on && found == seats_.end())
    return {Status(Kind::stale, "the agent has no such session any more: it was started again, or the connection was broken for too long", ESTALE),
            {}};
  Begun begun;
  Place place{id, nullptr, {}};
  if (go_on) {
    place.seat = found->second;
    fence(*place.seat, place, begun.fenced);
    place.awaited.push_back(place.seat);
  } else {
    end(id, place, begun.fenced);
    for (const SessionId& one : instead) end(one, place, begun.fenced);
    place.seat = seats_[id] = std::make_shared<Seat>(served_, open_peer_);
    place.seat->number = ++made_;
  }
  place.seat->speaker = connection;
  places_[connection] = std::move(place);
  return begun;
}

Seats::When Seats::when(Connection connection, std::vector<SeatPtr>& ended) {
  Place& place = places_.at(connection);
  if (place.seat->speaker != connection) return When::fenced;
  if (std::any_of(place.awaited.begin(), place.awaited.end(), [](const SeatPtr& seat) { return seat->busy; })) return When::later;
  for (const SeatPtr& seat : place.awaited)
    if (seat->over) ended.push_back(seat);
  place.awaited.clear();
  return When::now;
}

Seats::Verdict Seats::take(Connection connection, const target::AgentRequest& request, SeatPtr& seat) {
  const auto place = places_.find(connection);
  if (place == places_.end()) return Verdict::senseless;
  seat = place->second.seat;
  if (seat->speaker != connection) return Verdict::fenced;
  const bool next = request.number == seat->last + 1, same = request.number == seat->last && seat->last != 0;
  if ((!next && !same) || AgentOp(request.op) == AgentOp::begin) return Verdict::senseless;
  if (same && request.quiet) return Verdict::quiet;
  if (same && seat->answer) return Verdict::again;
  seat->busy = true;
  return Verdict::fresh;
}

bool Seats::answered(Connection connection, const target::AgentRequest& request, std::shared_ptr<const Session::Reply> reply) {
  Seat& seat = *places_.at(connection).seat;
  seat.busy = false;
  seat.last = request.number;
  const auto op = AgentOp(request.op);
  const bool repeatable =
      !reply->only_once && (op == AgentOp::read || op == AgentOp::get || reply->sum || reply->bulk.size() > target::most_free_bytes);
  seat.answer = repeatable ? nullptr : std::move(reply);
  return seat.speaker == connection && !request.quiet;
}

Seats::Left Seats::leave(Connection connection, bool gone) {
  const auto found = places_.find(connection);
  if (found == places_.end()) return {};
  Place place = std::move(found->second);
  places_.erase(found);
  Left left{place.seat, std::move(place.awaited)};
  if (place.seat->speaker != connection) {
    left.dropped.push_back(std::exchange(left.seat, nullptr));
    return left;
  }
  left.seat->speaker = 0;
  if (gone) {
    left.seat->over = true;
    seats_.erase(place.id);
  }
  return left;
}

bool Seats::give_up(const SeatPtr& seat) {
  const auto found = std::find_if(seats_.begin(), seats_.end(), [&](const auto& one) { return one.second == seat; });
  if (found == seats_.end() || seat->speaker != 0) return false;
  seat->over = true;
  seats_.erase(found);
  return true;
}

Seats::SeatPtr Seats::seat_of(Connection connection) const {
  const auto place = places_.find(connection);
  return place != places_.end() && place->second.seat->speaker == connection ? place->second.seat : nullptr;
}

uint64_t Seats::kept_bytes(const Seat& seat) {
  const uint64_t answer = seat.answer ? seat.answer->bulk.size() : 0;
  return seat.session.begun_bytes() + (answer > target::most_free_bytes ? answer : 0);
}

void Seats::forget(Seat& seat) {
  seat.session.forget_begun();
  if (seat.answer && seat.answer->bulk.size() > target::most_free_bytes) seat.answer = nullptr;
}

uint32_t Seats::last(Connection connection) const { return places_.at(connection).seat->last; }

}  // namespace holdfast::agent
