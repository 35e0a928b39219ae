#include "redundant/twins/way.hpp"

#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>

#include <atomic>
#include <chrono>
#include <thread>

namespace holdfast::redundant {
namespace {

// As for a process that is stopped and continued, a wait with a limit ends by a signal.
TEST(Way, the_first_frame_is_waited_for_on_over_signals) {
  signal(SIGUSR1, [](int) {});
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
  const raw::Fd ours(ends[0]), theirs(ends[1]);
  std::optional<Frame> got;
  std::atomic<bool> is_over{false};
  std::thread waits([&] {
    got = first_frame(theirs.get(), {}, 30000);
    is_over = true;
  });
  for (int i = 0; i < 20 && !is_over; ++i) {
    pthread_kill(waits.native_handle(), SIGUSR1);
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  Frame who;
  who.word = Word::who, who.rank = 7;
  const Bytes bytes = encode(who);
  EXPECT_EQ(send(ours.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL), ssize_t(bytes.size()));
  waits.join();
  ASSERT_TRUE(got);
  EXPECT_EQ(got->rank, 7u);
}

}  // namespace
}  // namespace holdfast::redundant
