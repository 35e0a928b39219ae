// The connection was reset while the agent carried out a request. Its answer then found a broken connection, and the question whether the client had
// closed it in order was answered with yes: a kernel says only once that a connection was reset. The session ended, with its locks and open objects.
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <atomic>
#include <list>
#include <semaphore>
#include <thread>

#include "agent/clients.hpp"
#include "target/agent_session.hpp"
#include "target/memory.hpp"

namespace holdfast::agent {
namespace {

using target::OpenMode;

class ResetBeforeTheAnswer : public testing::Test {
 protected:
  ~ResetBeforeTheAnswer() override {
    for (std::thread& thread : threads_) thread.join();
  }

  // Where the test has said so, it resets its connection once the agent is at its request, and before the answer.
  class Line final : public target::AgentLine {
   public:
    Line(ResetBeforeTheAnswer& test, raw::Fd fd) : test_(test), fd_(std::move(fd)) {}
    Status send(std::span<const iovec> from) override {
      for (const iovec& one : from)
        if (one.iov_len > 0 && ::send(fd_.get(), one.iov_base, one.iov_len, MSG_NOSIGNAL) != ssize_t(one.iov_len)) return gone();
      return {};
    }
    Status receive(std::span<const iovec> into) override {
      if (test_.resets_.exchange(false)) {
        test_.at_the_request_.acquire();
        const linger now{1, 0};
        setsockopt(fd_.get(), SOL_SOCKET, SO_LINGER, &now, sizeof now);
        fd_.reset();
        test_.is_reset_.release();
        return gone();
      }
      for (const iovec& one : into)
        if (one.iov_len > 0 && recv(fd_.get(), one.iov_base, one.iov_len, MSG_WAITALL) != ssize_t(one.iov_len)) return gone();
      return {};
    }

   private:
    static Status gone() { return Status(Kind::io, "the connection has gone", ECONNRESET); }
    ResetBeforeTheAnswer& test_;
    raw::Fd fd_;
  };

  // Called by the agent, between its last look at the connection and the answer.
  void carry_out() {
    if (!stops_.exchange(false)) return;
    pollfd reset{theirs_, POLLIN, 0};  // the client connects anew meanwhile
    at_the_request_.release();
    is_reset_.acquire();
    while (poll(&reset, 1, 10000) != 1 || !(reset.revents & POLLERR)) std::this_thread::yield();
  }

  // As between nodes.
  raw::Fd connect() {
    sockaddr_in here{};
    here.sin_family = AF_INET, here.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof here;
    auto* address = reinterpret_cast<sockaddr*>(&here);
    const raw::Fd listener(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    raw::Fd ours(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    EXPECT_EQ(bind(listener.get(), address, size), 0);
    EXPECT_EQ(listen(listener.get(), 1), 0);
    EXPECT_EQ(getsockname(listener.get(), address, &size), 0);
    EXPECT_EQ(::connect(ours.get(), address, size), 0);
    theirs_ = ::accept(listener.get(), nullptr, nullptr);
    threads_.emplace_back([this, theirs = theirs_.load()] { clients_.serve(raw::Fd(theirs)); });
    return ours;
  }

  std::shared_ptr<target::Target> client() {
    const auto open = [this]() -> Result<std::unique_ptr<target::AgentLine>> {
      return std::unique_ptr<target::AgentLine>(new Line(*this, connect()));
    };
    auto channel = std::make_shared<target::SessionChannel>(target::SessionId{}, std::vector<target::SessionId>(), open);
    EXPECT_TRUE(channel->begin().ok());
    return *target::attach_to_agent(channel, "/d", "n1:/d", 0600);
  }

  std::atomic<bool> resets_{false}, stops_{false};  // the next answer's receiver, and the agent at the next request
  std::atomic<int> theirs_{-1};
  std::binary_semaphore at_the_request_{0}, is_reset_{0};
  std::shared_ptr<target::MemoryDirectory> memory_ = std::make_shared<target::MemoryDirectory>();
  Clients clients_{std::make_shared<const Served>(Served{{"/d", [this](uint32_t) { return target::make_memory_target(memory_, "/d"); }}}), 1,
                   [this](const target::AgentRequest&) {
                     carry_out();
                     return std::nullopt;
                   },
                   [](const std::string&) { return Status(Kind::access, "", EACCES); }, [] {}};
  std::list<std::thread> threads_;
};

TEST_F(ResetBeforeTheAnswer, its_session_goes_on) {
  const auto target = client();
  const auto object = *target->open("o", OpenMode::create);
  const auto lock = target->try_lock("lock");
  ASSERT_TRUE(lock.ok());
  resets_ = stops_ = true;
  const Status put = target->put("other", Bytes(10), false);
  EXPECT_TRUE(put.ok()) << put.sentence();
  EXPECT_TRUE(object->still_there().ok());
  EXPECT_FALSE(target::make_memory_target(memory_, "/d")->try_lock("lock").ok());
}

}  // namespace
}  // namespace holdfast::agent
