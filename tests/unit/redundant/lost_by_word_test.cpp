// A replica that hears from the hub that its own team is lost ends at once, whatever became of who was to end it.
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <memory>
#include <thread>

#include "redundant/frame.hpp"
#include "redundant/map.hpp"
#include "redundant/membership/hub_process.hpp"
#include "redundant/twins/replica.hpp"
#include "redundant/twins/twins.hpp"
#include "transport/server.hpp"

namespace holdfast::redundant {
namespace {

Frame who_lives(uint32_t epoch, uint64_t living, uint64_t lost) {
  Frame frame;
  frame.word = Word::lives, frame.epoch = epoch, frame.subject = living, frame.number = lost;
  return frame;
}

// Introduces the one that comes to nobody, and keeps its connection.
class Meets final : public transport::Conversation {
 public:
  Meets(raw::Fd socket, raw::Fd& kept) : socket_(std::move(socket)), kept_(kept) {}
  std::optional<size_t> take(ByteView bytes, Bytes&) override {
    if (!reader_.add(bytes)) return std::nullopt;
    while (const auto frame = reader_.next()) {
      if (frame->word != Word::join) continue;
      Frame twins;
      twins.word = Word::twins, twins.payload = bytes_of("\n\n"), twins.number = 1;
      (void)send_frame(socket_.get(), who_lives(1, team_bit(1), 0), 0);
      (void)send_frame(socket_.get(), twins, 0);
      kept_ = std::move(socket_);
    }
    return bytes.size();
  }

 private:
  raw::Fd socket_;
  raw::Fd& kept_;
  FrameReader reader_{1 << 20};
};

TEST(Twins, end_when_they_hear_that_their_team_is_lost) {
  TeamOrders orders;
  orders.team = 1, orders.teams = 2, orders.deadline_ms = 60000;
  transport::Server server;
  orders.hub = server.listen(orders.reach, agreement(orders.secret));
  int joined[2], over[2];
  ASSERT_EQ(pipe(joined), 0);
  ASSERT_EQ(pipe(over), 0);
  const pid_t replica = fork();
  if (replica == 0) {
    const bool is_one = Replica::join(orders, 0, 1).ok();
    (void)!write(joined[1], is_one ? "y" : "n", 1);
    for (;;) pause();
  }
  raw::Fd kept;
  server.welcome = [&](raw::Fd& socket, ByteView early) -> std::unique_ptr<transport::Conversation> {
    auto meets = std::make_unique<Meets>(raw::Fd(raw::fcntl(socket.get(), F_DUPFD_CLOEXEC)), kept);
    Bytes none;
    if (!early.empty()) (void)meets->take(early, none);
    return meets;
  };
  server.watch(over[0], [] { return false; });
  std::thread serves([&] { server.run(); });
  char answer = 0;
  EXPECT_EQ(read(joined[0], &answer, 1), 1);
  EXPECT_EQ(answer, 'y');
  int status = 0;
  (void)send_frame(kept.get(), who_lives(2, team_bit(1), 0), 0);
  usleep(200000);
  EXPECT_EQ(waitpid(replica, &status, WNOHANG), 0) << "others are told of, too";
  (void)send_frame(kept.get(), who_lives(3, team_bit(0), team_bit(1)), 0);
  pollfd ended{int(syscall(SYS_pidfd_open, replica, 0)), POLLIN, 0};
  EXPECT_EQ(poll(&ended, 1, 10000), 1) << "it goes on";
  (void)kill(replica, SIGKILL);
  waitpid(replica, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == lost_status);
  (void)!write(over[1], "o", 1);
  serves.join();
}

}  // namespace
}  // namespace holdfast::redundant
