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

TEST(GoldenFrames, what_is_asked_for_checksums_and_sums_is_as_it_is_written_down) {
  const target::AskedChecksums asked{0x0102030405060708, 0x1112131415161718, 3, 4, 0x10000};
  EXPECT_EQ(hex(asked),
            "0807060504030201"
            "1817161514131211"
            "03000000"
            "04000000"
            "00000100"
            "00000000");
  const std::vector<target::SumTerm> terms{{"n1:/d", "o", 0x0102030405060708, 0x10000, 0xab}, {"n2:/d", "", 0, 1, 1}};
  const Bytes bytes = target::encode_terms(terms);
  std::string text;
  for (const std::byte byte : bytes) text += fmt::format("{:02x}", unsigned(byte));
  EXPECT_EQ(text,
            "0807060504030201"
            "0000010000000000"
            "ab00"
            "0500"
            "01000000"
            "6e313a2f64"
            "6f"
            "0000000000000000"
            "0100000000000000"
            "0100"
            "0500"
            "00000000"
            "6e323a2f64");
  const auto read = target::decode_terms(bytes);
  ASSERT_TRUE(read && read->size() == 2);
  EXPECT_EQ((*read)[0].address, "n1:/d");
  EXPECT_EQ((*read)[0].coefficient, 0xab);
  EXPECT_EQ((*read)[1].bytes, 1u);
  for (size_t cut = 0; cut < bytes.size(); ++cut) EXPECT_EQ(target::decode_terms(ByteView(bytes).first(cut)).has_value(), cut == 30) << cut;
  EXPECT_FALSE(target::decode_terms(target::encode_terms(std::vector<target::SumTerm>(41)))) << "there are no units for so many";
}

TEST(GoldenFrames, a_page_of_small_objects_is_as_it_is_written_down) {
  Bytes page;
  EXPECT_TRUE(target::add_small(page, "a", Bytes{std::byte{0xab}, std::byte{0xcd}}));
  EXPECT_TRUE(target::add_small(page, "bc", Status(Kind::not_found, "nothing there", ENOENT)));
  EXPECT_TRUE(target::add_small(page, "d", Bytes(target::most_page_bytes)));
  std::string text;
  for (const std::byte byte : page) text += fmt::format("{:02x}", unsigned(byte));
  EXPECT_EQ(text,
            "01000000020000000000000000000000"
            "61"
            "abcd"
            "02000000000000000200000002000000"
            "6263"
            "01000000000000000000000000000100"
            "64");
  const auto read = target::decode_small(page);
  ASSERT_TRUE(read && read->size() == 3);
  EXPECT_EQ((*read)[0].content->size(), 2u);
  EXPECT_EQ((*read)[1].content.status().kind(), Kind::not_found);
  EXPECT_TRUE((*read)[2].is_large);
  for (size_t cut = 0; cut < page.size(); ++cut)
    EXPECT_EQ(target::decode_small(ByteView(page).first(cut)).has_value(), cut == 0 || cut == 19 || cut == 37) << cut;
}

// The numbers of operations are the protocol's: another order is another version.
TEST(GoldenFrames, operations_have_their_numbers) {
  using target::AgentOp;
  EXPECT_EQ(target::agent_protocol_version, 7u);
  const std::pair<AgentOp, int> numbers[] = {{AgentOp::attach, 1},     {AgentOp::open, 2},    {AgentOp::read, 4},       {AgentOp::put, 14},
                                             {AgentOp::lock, 24},      {AgentOp::about, 26},  {AgentOp::end, 27},       {AgentOp::begin, 28},
                                             {AgentOp::nothing, 29},   {AgentOp::settle, 30}, {AgentOp::directory, 31}, {AgentOp::several, 32},
                                             {AgentOp::checksums, 33}, {AgentOp::sum, 34},    {AgentOp::link, 35},      {AgentOp::each, 36}};
  for (const auto& [op, number] : numbers) EXPECT_EQ(int(op), number);
}

}  // namespace
}  // namespace holdfast::agent
