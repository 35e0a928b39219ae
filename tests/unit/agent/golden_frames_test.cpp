// What goes over the socket, byte for byte as docs/protocol.md has it: agents and clients of one version understand each other.
#include <gtest/gtest.h>

#include "agent/request_reader.hpp"

#include <cstring>

#include <fmt/format.h>

namespace holdfast::agent {
namespace {

template <class Header>
std::string hex(const Header& header) {
  std::string text;
  for (const std::byte byte : std::as_bytes(std::span(&header, 1))) text += fmt::format("{:02x}", unsigned(byte));
  return text;
}

TEST(GoldenFrames, requests_are_as_they_are_written_down) {
  target::AgentRequest request;
  request.number = 0x01020304, request.op = uint16_t(target::AgentOp::write), request.flags = 0x0506, request.handle = 0x80000007;
  request.name_bytes = 8, request.bulk_bytes = 9, request.quiet = 1, request.offset = 0x1112131415161718, request.length = 0x2122232425262728;
  EXPECT_EQ(hex(request),
            "04030201"
            "0500"
            "0605"
            "07000080"
            "08000000"
            "09000000"
            "01000000"
            "1817161514131211"
            "2827262524232221");
}

TEST(GoldenFrames, answers_are_as_they_are_written_down) {
  target::AgentAnswer answer;
  answer.number = 0x01020304, answer.sys_errno = ENOSPC, answer.kind = uint16_t(Kind::no_space), answer.sentence_bytes = 5, answer.bulk_bytes = 6;
  answer.value = 7, answer.other = 8, answer.incarnation = 0x3132333435363738;
  EXPECT_EQ(hex(answer),
            "04030201"
            "1c000000"
            "0500"
            "0000"
            "05000000"
            "06000000"
            "00000000"
            "0700000000000000"
            "0800000000000000"
            "3837363534333231");
}

// The numbers of operations are the protocol's: another order is another version.
TEST(GoldenFrames, operations_have_their_numbers) {
  using target::AgentOp;
  EXPECT_EQ(target::agent_protocol_version, 4u);
  const std::pair<AgentOp, int> numbers[] = {{AgentOp::attach, 1},   {AgentOp::open, 2},    {AgentOp::read, 4},       {AgentOp::put, 14},
                                             {AgentOp::lock, 24},    {AgentOp::about, 26},  {AgentOp::end, 27},       {AgentOp::begin, 28},
                                             {AgentOp::nothing, 29}, {AgentOp::settle, 30}, {AgentOp::directory, 31}, {AgentOp::several, 32}};
  for (const auto& [op, number] : numbers) EXPECT_EQ(int(op), number);
}

}  // namespace
}  // namespace holdfast::agent
