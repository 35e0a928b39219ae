// Entries of record logs and what describes a session: written, read back, and what is refused.
#include "layout/shared_record.hpp"

#include <gtest/gtest.h>

#include <array>
#include <span>

namespace holdfast::layout {
namespace {

Entry example_entry() { return {EntryKind::record, session_key("s"), 3, 2, 5, 7, 1'000'000'007, 40, 4096, 24, 0x0123456789abcdef}; }

using Header = std::array<std::byte, entry_header_bytes>;
Header written(uint64_t log, uint64_t position, const Entry& entry) {
  Header header;
  encode_entry(log, position, entry, header.data());
  return header;
}

Session session() {
  Session s;
  s.id = "00112233445566778899aabbccddeeff";
  s.path = "/data/caf\xe9";
  s.device = 5, s.inode = 6, s.ranks = 4, s.rank = 3, s.node = "boot", s.clock_offset_ns = -9, s.clock_uncertainty_ns = 8;
  s.view = {64, 8, 1024, {{0, 8, 4, 64}, {512, 16, 1, 0}}};
  return s;
}

TEST(SharedRecord, an_entry_comes_back_as_it_was) {
  auto read = decode_entry(11, 4096, written(11, 4096, example_entry()));
  ASSERT_TRUE(read.ok()) << read.status().sentence();
  EXPECT_EQ(*read, example_entry());
}

TEST(SharedRecord, an_entry_of_another_log_or_place_is_damaged) {
  EXPECT_EQ(decode_entry(12, 4096, written(11, 4096, example_entry())).status().kind(), Kind::corrupt);
  EXPECT_EQ(decode_entry(11, 4104, written(11, 4096, example_entry())).status().kind(), Kind::corrupt);
}

TEST(SharedRecord, zeros_are_the_end_of_a_log_and_a_part_of_an_entry_is_torn) {
  EXPECT_EQ(decode_entry(11, 0, Header{}).status().kind(), Kind::not_found);
  EXPECT_EQ(decode_entry(11, 0, ByteView()).status().kind(), Kind::not_found);
  const Header header = written(11, 0, example_entry());
  EXPECT_EQ(decode_entry(11, 0, ByteView(header).first(50)).status().kind(), Kind::corrupt);
}

TEST(SharedRecord, a_session_comes_back_as_it_was) {
  const std::string text = encode(session());
  auto read = decode_session(std::as_bytes(std::span(text)));
  ASSERT_TRUE(read.ok()) << read.status().sentence();
  EXPECT_EQ(*read, session());
}

TEST(SharedRecord, a_view_that_no_file_can_have_is_refused) {
  const std::vector<std::vector<ViewRun>> wrong{
      {}, {{-8, 8, 1, 0}}, {{0, 0, 1, 0}}, {{0, 8, 2, 4}}, {{8, 8, 1, 0}, {0, 8, 1, 0}}, {{0, 8, UINT64_MAX, 8}}};
  for (const auto& runs : wrong) {
    Session s = session();
    s.view.runs = runs;
    const std::string text = encode(s);
    EXPECT_EQ(decode_session(std::as_bytes(std::span(text))).status().kind(), Kind::corrupt);
  }
}

TEST(SharedRecord, a_note_comes_back_as_it_was) {
  const SessionNote note{"00112233445566778899aabbccddeeff", 4, {"/a/single-1", "holdfast-records/single-2"}, true, {1, 2, 3, -4}};
  const std::string text = encode(note);
  auto read = decode_note(std::as_bytes(std::span(text)));
  ASSERT_TRUE(read.ok()) << read.status().sentence();
  EXPECT_EQ(*read, note);
}

}  // namespace
}  // namespace holdfast::layout
