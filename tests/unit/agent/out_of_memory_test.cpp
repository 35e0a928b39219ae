// An agent that has no memory for a request: the client hears of it, and nobody waits for the request any more.
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <cstring>
#include <new>
#include <thread>

#include "agent/clients.hpp"
#include "target/memory.hpp"

namespace holdfast::agent {
namespace {

using target::AgentOp;

class OutOfMemory : public testing::Test {
 protected:
  // A connection to the agent, served by a thread.
  struct Connection {
    explicit Connection(Clients& clients) {
      int ends[2];
      EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
      ours = raw::Fd(ends[0]);
      constexpr timeval patience{10, 0};
      EXPECT_EQ(setsockopt(ours.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience), 0);
      thread = std::thread([&clients, theirs = ends[1]] { clients.serve(raw::Fd(theirs)); });
    }
    ~Connection() {
      ours.reset();
      thread.join();
    }
    void send(target::AgentRequest request, const void* bytes, size_t count) const {
      EXPECT_EQ(::send(ours.get(), &request, sizeof request, MSG_NOSIGNAL), ssize_t(sizeof request));
      EXPECT_EQ(::send(ours.get(), bytes, count, MSG_NOSIGNAL), ssize_t(count));
    }
    // The sessions in `ids` after the first one end.
    void begin(std::vector<target::SessionId> ids) const {
      target::AgentRequest request;
      request.op = uint16_t(AgentOp::begin), request.quiet = 1, request.bulk_bytes = uint32_t(ids.size() * sizeof ids[0]);
      send(request, ids.data(), request.bulk_bytes);
    }
    void ask_to_attach(uint32_t number, bool quiet = false) const {
      target::AgentRequest request;
      request.op = uint16_t(AgentOp::attach), request.number = number, request.name_bytes = 2, request.flags = 0600, request.quiet = quiet;
      send(request, "/d", 2);
    }
    // The errno of the answer; -1 where none comes, -2 where the agent hangs up.
    int attach(uint32_t number) const {
      ask_to_attach(number);
      return answer();
    }
    int answer() const {
      target::AgentAnswer head;
      const ssize_t got = recv(ours.get(), &head, sizeof head, MSG_WAITALL);
      if (got != ssize_t(sizeof head)) return got == 0 ? -2 : -1;
      std::string rest(head.sentence_bytes + head.bulk_bytes, '\0');
      if (!rest.empty()) {
        EXPECT_EQ(recv(ours.get(), rest.data(), rest.size(), MSG_WAITALL), ssize_t(rest.size()));
      }
      return head.sys_errno;
    }
    raw::Fd ours;
    std::thread thread;
  };

  static target::SessionId id_of(int number) {
    target::SessionId id{};
    id[0] = std::byte(number);
    return id;
  }

  // As many of these fail as `failures` says.
  Result<std::shared_ptr<target::Target>> open() {
    if (failures_ > 0) {
      --failures_;
      throw std::bad_alloc();
    }
    return target::make_memory_target(memory_, "/d");
  }

  std::atomic<int> failures_{0};
  std::shared_ptr<target::MemoryDirectory> memory_ = std::make_shared<target::MemoryDirectory>();
  Clients clients_{std::make_shared<const Served>(Served{{"/d", [this](uint32_t) { return open(); }}}), 1,
                   [](const target::AgentRequest&) { return std::nullopt; }, [](const std::string&) { return Status(Kind::access, "", EACCES); },
                   [] {}};
};

TEST_F(OutOfMemory, the_client_hears_of_it_and_its_session_goes_on) {
  const Connection client(clients_);
  client.begin({id_of(1)});
  failures_ = 1;
  EXPECT_EQ(client.attach(1), ENOMEM);
  EXPECT_EQ(client.attach(2), 0);
}

TEST_F(OutOfMemory, who_takes_the_sessions_place_does_not_wait_for_ever) {
  const Connection client(clients_), next(clients_);
  client.begin({id_of(1)});
  failures_ = 1;
  EXPECT_NE(client.attach(1), -1);
  next.begin({id_of(2), id_of(1)});
  EXPECT_EQ(next.attach(1), 0);
}

TEST_F(OutOfMemory, what_nobody_waits_for_an_answer_of_ends_the_session) {
  const Connection client(clients_), next(clients_);
  client.begin({id_of(1)});
  failures_ = 1;
  client.ask_to_attach(1, true);
  EXPECT_EQ(client.answer(), -2);
  next.begin({id_of(2), id_of(1)});
  EXPECT_EQ(next.attach(1), 0);
}

}  // namespace
}  // namespace holdfast::agent
