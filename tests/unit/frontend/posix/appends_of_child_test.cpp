// What a replica's child appends to a file, beside a hub that answers as a test says.
#include "frontend/posix/appends_of_child.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstdlib>

#include "redundant/child.hpp"
#include "redundant/child_link.hpp"
#include "unit/layers/disk_file.hpp"
#include "unit/transport/running.hpp"

namespace holdfast::frontend::posix {
namespace {

using redundant::AppendAnswer;

// Lets everybody write, and hangs up on who has written.
class HangsUpAfterTheWrite final : public transport::Conversation {
 public:
  std::optional<size_t> take(ByteView bytes, Bytes& out) override {
    if (!reader_.add(bytes)) return std::nullopt;
    while (const auto frame = reader_.next()) {
      if (redundant::OfChildAppend(frame->number) != redundant::OfChildAppend::asks) return std::nullopt;
      const Bytes answer = redundant::encode(redundant::frame_of({.what = AppendAnswer::write}));
      out.insert(out.end(), answer.begin(), answer.end());
    }
    return bytes.size();
  }

 private:
  redundant::FrameReader reader_{1 << 20};
};

class AppendsOfChild : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(transport::draw(orders_.secret));
    orders_.teams = 2;
  }
  ~AppendsOfChild() override { unsetenv(redundant::child_variable); }
  void is_child_of(const std::string& hub) {
    orders_.hub = hub;
    setenv(redundant::child_variable, redundant::text_of(orders_).c_str(), 1);
  }
  Result<Extent> append(std::string_view text) {
    const ByteView piece = std::as_bytes(std::span(text));
    return append_as_child(file_, "/shared", {&piece, 1});
  }

  redundant::TeamOrders orders_;
  layers::test::Disk disk_;
  layers::test::DiskFile file_{disk_};
};

// They were appended once more, as by one that has nobody to ask.
TEST_F(AppendsOfChild, are_there_once_where_the_hub_ends_while_it_is_told_of_them) {
  const transport::Running hub(redundant::agreement(orders_.secret), [](raw::Fd&, ByteView) { return std::make_unique<HangsUpAfterTheWrite>(); });
  is_child_of(hub.endpoints);
  disk_.bytes = {'a', 'b'};
  const auto put = append("one\n");
  ASSERT_TRUE(put.ok()) << put.status().sentence();
  EXPECT_EQ(put->offset, 2u);
  EXPECT_EQ(put->length, 4u);
  EXPECT_EQ(content(disk_), "abone\n");
  disk_.full = true;
  EXPECT_EQ(append("two\n").status().sys_errno(), ENOSPC);
  EXPECT_EQ(disk_.appends, 1);
}

}  // namespace
}  // namespace holdfast::frontend::posix
