// What comes to a node's agent, changed by a seeded mutator: forged, oversized, truncated, replayed, in pieces of any size.
#include <gtest/gtest.h>

#include <random>

#include "base/vectors.hpp"
#include "fuzz/agent_target.hpp"
#include "target/agent_together.hpp"

namespace holdfast::fuzz {
namespace {

using target::AgentOp;

// What a client says in a short life, a frame each.
class Talk {
 public:
  std::vector<Bytes> frames;

  Talk() {
    add({.op = uint16_t(AgentOp::begin), .quiet = 1}, "", Bytes(16, std::byte(1)));
    add({.op = uint16_t(AgentOp::attach), .flags = 0600}, "/d");
    add({.op = uint16_t(AgentOp::open), .flags = 512 | 2, .handle = target::first_drawn_handle, .quiet = 1}, "o");
    add({.op = uint16_t(AgentOp::write), .handle = target::first_drawn_handle, .offset = 3}, "", Bytes(300, std::byte(7)));
    add({.op = uint16_t(AgentOp::read), .handle = target::first_drawn_handle, .length = 1000}, "");
    add({.op = uint16_t(AgentOp::checksums), .handle = target::first_drawn_handle, .length = 512}, "", checksums());
    add({.op = uint16_t(AgentOp::sum), .length = 300}, "", terms(1));
    add({.op = uint16_t(AgentOp::sum), .length = 300}, "", terms(2));
    add({.op = uint16_t(AgentOp::lock)}, "lock");
    add({.op = uint16_t(AgentOp::append)}, "m", Bytes(50, std::byte(8)));
    add({.op = uint16_t(AgentOp::put), .flags = 1}, "manifest", Bytes(100, std::byte(9)));
    add({.op = uint16_t(AgentOp::get), .length = 4096}, "manifest");
    add({.op = uint16_t(AgentOp::list)}, "");
    add({.op = uint16_t(AgentOp::settle), .flags = 1, .length = 1}, "", Bytes{std::byte(0), std::byte(0), std::byte(0), std::byte(128)});
    add({.op = uint16_t(AgentOp::several)}, "", together());
    add({.op = uint16_t(AgentOp::close), .handle = target::first_drawn_handle, .quiet = 1}, "");
    add({.op = uint16_t(AgentOp::remove)}, "o");
  }
  Bytes all(std::byte pieces) const {
    Bytes bytes{pieces};
    for (const Bytes& frame : frames) bytes.insert(bytes.end(), frame.begin(), frame.end());
    return bytes;
  }

 private:
  static Bytes together();
  static Bytes terms(int count) {
    return target::encode_terms(std::vector<target::SumTerm>(size_t(count), target::SumTerm{"n1:/d", "o", 3, 200, 7}));
  }
  static Bytes checksums() {
    const target::AskedChecksums asked{1, 2, 3, 0, 256};
    const ByteView bytes = std::as_bytes(std::span(&asked, 1));
    return {bytes.begin(), bytes.end()};
  }
  void add(target::AgentRequest request, const std::string& name, const Bytes& bulk = {}) {
    request.number = uint32_t(frames.size());
    request.name_bytes = uint32_t(name.size()), request.bulk_bytes = uint32_t(bulk.size());
    Bytes frame(sizeof request + name.size());
    std::memcpy(frame.data(), &request, sizeof request);
    std::memcpy(frame.data() + sizeof request, name.data(), name.size());
    frame.insert(frame.end(), bulk.begin(), bulk.end());
    frames.push_back(std::move(frame));
  }
};

// Another attachment to the same directory, a write, and a look at a small object.
Bytes Talk::together() {
  target::AgentTogether all;
  const Bytes written(100, std::byte(5));
  const iovec from{const_cast<std::byte*>(written.data()), written.size()};
  all.add({.op = uint16_t(AgentOp::attach), .flags = 0600}, "/d");
  all.add({.op = uint16_t(AgentOp::write), .handle = target::first_drawn_handle}, "", {&from, 1});
  all.add({.op = uint16_t(AgentOp::get), .length = 4096}, "manifest");
  return concatenated(all.bytes());
}

void change(Talk& talk, std::mt19937_64& random) {
  Bytes& frame = talk.frames[random() % talk.frames.size()];
  const size_t at = random() % frame.size(), in_header = random() % sizeof(target::AgentRequest);
  constexpr uint32_t words[] = {0, 1, 40, 4096, 4097, 1 << 20, (1 << 20) + 1, 1u << 31, ~0u};
  const size_t word = in_header / 4 * 4;
  switch (random() % 7) {
    case 0: frame[in_header] ^= std::byte(1 << random() % 8); break;
    case 1: frame[at] = std::byte(random()); break;
    case 2: frame.resize(at + 1); break;                                                                    // truncated
    case 3: std::memcpy(frame.data() + word, &words[random() % std::size(words)], sizeof words[0]); break;  // forged, oversized
    case 4: talk.frames.push_back(talk.frames[random() % talk.frames.size()]); break;                       // replayed
    case 5: std::swap(talk.frames[random() % talk.frames.size()], talk.frames[random() % talk.frames.size()]); break;
    default: frame.insert(frame.begin() + std::ptrdiff_t(at), 1 + random() % 60, std::byte(random())); break;
  }
}

TEST(Fuzz, an_agent_survives_any_frames) {
  std::mt19937_64 random(11);
  const uint64_t whole = Talk().frames.size() - 1;
  for (int pieces = 0; pieces < 4; ++pieces) EXPECT_EQ(agent_frames(Talk().all(std::byte(pieces))), whole) << "unchanged it is all carried out";
  uint64_t all_done = 0, some_done = 0;
  constexpr int rounds = 12000;
  for (int round = 0; round < rounds; ++round) {
    Talk talk;
    for (uint64_t times = 1 + random() % 3; times > 0; --times) change(talk, random);
    const uint64_t done = agent_frames(talk.all(std::byte(random())));
    all_done += done >= whole, some_done += done > 2 && done < whole;
  }
  EXPECT_GT(all_done, uint64_t(rounds) / 20) << "the changes are too coarse";
  EXPECT_GT(some_done, uint64_t(rounds) / 4);
}

TEST(Fuzz, an_agent_survives_any_bytes) {
  std::mt19937_64 random(12);
  for (int round = 0; round < 4000; ++round) {
    Bytes bytes(random() % 2000);
    for (std::byte& byte : bytes) byte = random() % 3 ? std::byte(0) : std::byte(random());
    EXPECT_EQ(agent_frames(bytes), 0u) << "who has begun no session is answered nothing";
  }
}

// Nothing that a header announces is made room for before it is known to be sensible.
TEST(Fuzz, what_is_oversized_takes_no_memory) {
  for (const auto& [name, bulk] : {std::pair(4097u, 0u), std::pair(0u, (1u << 20) + 1), std::pair(~0u, ~0u)}) {
    target::AgentRequest request;
    request.op = uint16_t(AgentOp::write), request.name_bytes = name, request.bulk_bytes = bulk;
    agent::RequestReader reader;
    std::memcpy(reader.room().data(), &request, sizeof request);
    EXPECT_EQ(reader.came(sizeof request), agent::RequestReader::State::senseless);
    EXPECT_TRUE(reader.room().empty());
  }
}

}  // namespace
}  // namespace holdfast::fuzz
