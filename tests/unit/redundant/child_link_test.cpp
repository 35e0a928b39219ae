// How what a replica has started reaches the hub.
#include "redundant/child_link.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <thread>

#include "transport/server.hpp"

namespace holdfast::redundant {
namespace {

class AnswersAll final : public transport::Conversation {
 public:
  std::optional<size_t> take(ByteView bytes, Bytes& out) override {
    if (!reader_.add(bytes)) return std::nullopt;
    while (reader_.next()) {
      const Bytes answer = encode(frame_of({.what = AppendAnswer::is_done, .value = 7}));
      out.insert(out.end(), answer.begin(), answer.end());
    }
    return bytes.size();
  }

 private:
  FrameReader reader_{1 << 20};
};

// On a node that is busy, or was stopped for a while. Who does not wait for it appends what a twin appends as well.
TEST(ChildLink, waits_for_a_hub_that_is_late) {
  TeamOrders orders;
  ASSERT_TRUE(transport::draw(orders.secret));
  int over[2];
  ASSERT_EQ(pipe(over), 0);
  transport::Server hub;
  orders.hub = hub.listen(transport::Reach::loopback, agreement(orders.secret));
  hub.welcome = [](raw::Fd&, ByteView) { return std::make_unique<AnswersAll>(); };
  hub.watch(over[0], [] { return false; });
  std::thread serves([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(2500));
    hub.run();
  });
  ChildLink link(orders, 0, "program");
  const auto answer = link.asks("/shared", 0, 1, 0);
  EXPECT_TRUE(answer.ok() && answer->value == 7) << answer.status().sentence();
  EXPECT_EQ(write(over[1], "x", 1), 1);
  serves.join();
  close(over[0]), close(over[1]);
}

TEST(ChildLink, does_not_wait_for_one_that_has_ended) {
  TeamOrders orders;
  {
    transport::Server hub;
    orders.hub = hub.listen(transport::Reach::loopback, agreement(orders.secret));
  }
  ChildLink link(orders, 0, "program");
  const auto began = std::chrono::steady_clock::now();
  for (int i = 0; i < 2; ++i) EXPECT_EQ(link.asks("/shared", 0, 1, 0).status().kind(), Kind::io);
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(15));
}

}  // namespace
}  // namespace holdfast::redundant
