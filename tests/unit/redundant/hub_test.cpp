// The hub itself, in a process of its own, with a `holdfast run` and ranks that the test plays.
#include "redundant/membership/hub.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "redundant/frame.hpp"
#include "redundant/membership/hub_process.hpp"
#include "transport/link.hpp"

namespace holdfast::redundant {
namespace {

constexpr uint64_t patience_ms = 10000;

class HubOfAJob : public testing::Test {
 protected:
  void SetUp() override {
    int ends[2];
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    hub_ = fork();
    if (hub_ == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      close(ends[0]);
      serve_hub(ends[1], dup(STDOUT_FILENO), dup(STDERR_FILENO));
      _exit(0);
    }
    close(ends[1]);
    control_.reset(ends[0]);
    const timeval limit{time_t(patience_ms / 1000), 0};
    setsockopt(control_.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    ASSERT_TRUE(transport::draw(secret_));
    Frame begin;
    begin.word = Word::begin, begin.number = 2, begin.subject = uint64_t(transport::Reach::loopback), begin.epoch = 60000;
    begin.payload.assign(secret_.begin(), secret_.end());
    ASSERT_TRUE(send_frame(control_.get(), begin, 0));
    const auto listens = hear(Word::listens);
    ASSERT_TRUE(listens);
    endpoints_ = text_of(listens->payload);
  }
  void TearDown() override {
    control_.reset();
    kill(hub_, SIGKILL);
    waitpid(hub_, nullptr, 0);
  }
  // The next such one from the hub to `holdfast run`.
  std::optional<Frame> hear(Word word) {
    std::byte buffer[4096];
    for (;;) {
      while (auto frame = heard_.next())
        if (frame->word == word) return frame;
      const ssize_t got = recv(control_.get(), buffer, sizeof buffer, 0);
      if (got <= 0 || !heard_.add(ByteView(buffer, size_t(got)))) return std::nullopt;
    }
  }
  static Status say(transport::Link& rank, const Frame& frame) {
    Bytes bytes = encode(frame);
    const iovec whole{bytes.data(), bytes.size()};
    return rank.send({&whole, 1});
  }
  // Of team 0 and on another node, as far as the hub knows.
  void join(transport::Link& rank) {
    ASSERT_TRUE(rank.connect(endpoints_, agreement(secret_), patience_ms).ok());
    Frame join;
    join.word = Word::join, join.number = 1, join.subject = uint64_t(getpid()), join.payload = bytes_of("node\n");
    ASSERT_TRUE(say(rank, join).ok());
  }

  pid_t hub_ = -1;
  raw::Fd control_;
  transport::Secret secret_{};
  std::string endpoints_;
  FrameReader heard_{1 << 26};
};

// It is stopped, or looks for nodes for a new team. Ranks on other nodes end where they do not hear of the hub.
TEST_F(HubOfAJob, answers_ranks_while_nobody_reads_what_it_shows) {
  transport::Link rank;
  join(rank);
  Frame note;
  note.word = Word::note;
  for (int i = 0; i < 100; ++i) {
    note.payload = bytes_of(std::to_string(i) + std::string(4000, 'n'));
    ASSERT_TRUE(say(rank, note).ok());
  }
  Frame alive;
  alive.subject = 4711;
  ASSERT_TRUE(say(rank, alive).ok());
  FrameReader from_hub(1 << 20);
  std::optional<Frame> answer;
  std::byte buffer[4096];
  for (ssize_t got = 1; !answer && got > 0;) {
    got = recv(rank.descriptor(), buffer, sizeof buffer, 0);
    if (got > 0 && from_hub.add(ByteView(buffer, size_t(got))))
      while (auto frame = from_hub.next())
        if (frame->word == Word::alive) answer = frame;
  }
  ASSERT_TRUE(answer) << "it waits for who does not read";
  EXPECT_EQ(answer->subject, 4711u);
  for (auto state = hear(Word::state); state; state = hear(Word::state))
    if (text_of(state->payload).find("\"99nnn") != std::string_view::npos) return;
  FAIL() << "the last state was never shown";
}

}  // namespace
}  // namespace holdfast::redundant
