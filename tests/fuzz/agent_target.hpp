// What the fuzzers run for the bytes that come to a node's agent: any bytes, in any pieces, after the greeting.
#pragma once
#include <cstring>
#include <memory>

#include "agent/request_reader.hpp"
#include "agent/seats.hpp"
#include "fuzz/demand.hpp"
#include "target/memory.hpp"

namespace holdfast::fuzz {

// One connection, as agent/clients.cpp serves it, without the socket.
class AgentConnection {
 public:
  // How many requests were carried out before it was hung up on.
  uint64_t feed(ByteView bytes, size_t piece) {
    while (!bytes.empty() && !over_) {
      const auto room = reader_.room();
      demand(!room.empty() && room.size() <= target::most_bulk_bytes);
      const size_t some = std::min({bytes.size(), room.size(), piece});
      std::memcpy(room.data(), bytes.data(), some);
      bytes = bytes.subspan(some);
      const auto state = reader_.came(some);
      if (state == agent::RequestReader::State::senseless) over_ = true;
      if (state == agent::RequestReader::State::wants_memory) {
        demand(reader_.room().empty());
        reader_.admit();
      }
      if (state != agent::RequestReader::State::whole) continue;
      answer();
      reader_.next();
    }
    return done_;
  }

 private:
  void answer() {
    const target::AgentRequest& request = reader_.request();
    demand(reader_.name().size() == request.name_bytes && reader_.bulk().size() == request.bulk_bytes);
    // Nobody's aim here: memory and time for a hole of exabytes.
    constexpr uint64_t far = 1 << 20;
    if (request.offset > far || request.length > 8 * far) return;
    if (target::AgentOp(request.op) == target::AgentOp::begin) return begin(request);
    agent::Seats::SeatPtr seat;
    const auto verdict = seats_.take(1, request, seat);
    over_ |= verdict == agent::Seats::Verdict::senseless || verdict == agent::Seats::Verdict::fenced;
    if (verdict != agent::Seats::Verdict::fresh) return;
    ++done_;
    auto made = std::make_shared<agent::Session::Reply>(seat->session.answer(request, reader_.name(), reader_.bulk()));
    made->make_sum();
    const std::shared_ptr<const agent::Session::Reply> reply = std::move(made);
    demand(sensible(reply->answer) && reply->answer.sentence_bytes == reply->sentence.size() && reply->answer.bulk_bytes == reply->bulk.size());
    seats_.answered(1, request, reply);
  }
  void begin(const target::AgentRequest& request) {
    std::vector<target::SessionId> ids(reader_.bulk().size() / sizeof(target::SessionId));
    over_ = ids.empty() || reader_.bulk().size() % sizeof ids[0] != 0 || request.number != 0;
    if (over_) return;
    std::memcpy(ids.data(), reader_.bulk().data(), reader_.bulk().size());
    const auto begun = seats_.begin(1, ids[0], request.flags & 1, std::span(ids).subspan(1));
    over_ = !begun.status.ok();
    std::vector<agent::Seats::SeatPtr> ended;
    if (!over_) demand(seats_.when(1, ended) == agent::Seats::When::now);
    for (const auto& seat : ended) seat->session.end();
  }

  std::shared_ptr<target::MemoryDirectory> memory_ = std::make_shared<target::MemoryDirectory>();
  agent::Seats seats_{std::make_shared<const agent::Served>(
      agent::Served{{"/d", [memory = memory_](uint32_t) { return target::make_memory_target(memory, "/d"); }}})};
  agent::RequestReader reader_;
  bool over_ = false;
  uint64_t done_ = 0;
};

// The first byte chooses the pieces.
inline uint64_t agent_frames(ByteView bytes) {
  if (bytes.empty()) return 0;
  constexpr size_t pieces[] = {1, 7, 40, 4096};
  return AgentConnection().feed(bytes.subspan(1), pieces[size_t(bytes[0]) % std::size(pieces)]);
}

}  // namespace holdfast::fuzz
