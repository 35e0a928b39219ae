// The threads around credits: who stalls with what others wait for is reset and may go on, and who goes gives back.
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>
#include <list>
#include <thread>

#include "agent/clients.hpp"
#include "target/agent_session.hpp"
#include "target/memory.hpp"

namespace holdfast::agent {
namespace {

using std::chrono::milliseconds;
using target::AgentOp;
using target::OpenMode;

constexpr size_t unit = target::most_bulk_bytes;
constexpr int all_units = 4;  // so many are lent at once

class MemoryOfClients : public testing::Test {
 protected:
  ~MemoryOfClients() override {
    end_sessions();
    for (std::thread& thread : threads_) thread.join();
  }
  // Those that wait for their clients, too.
  void end_sessions() {
    const Raw last{connect()};
    target::AgentRequest request;
    std::vector<target::SessionId> ids{id_of(100)};
    for (int number = 1; number <= 10; ++number) ids.push_back(id_of(number));
    request.op = uint16_t(AgentOp::begin), request.quiet = 1, request.bulk_bytes = uint32_t(ids.size() * sizeof ids[0]);
    last.send(request, ids.data(), request.bulk_bytes);
  }
  void begin(Limits::Time stalled, Limits::Time before_others) {
    clients_ = std::make_unique<Clients>(
        std::make_shared<const Served>(Served{{"/d", [this](uint32_t) { return target::make_memory_target(memory_, "/d"); }}}), 1,
        [](const target::AgentRequest&) { return std::nullopt; }, [](const std::string&) { return Status(Kind::access, "", EACCES); }, [] {},
        Limits{all_units * unit, all_units * unit, stalled, before_others});
  }
  // The client's end of a connection.
  raw::Fd connect() {
    int ends[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    constexpr timeval patience{20, 0};
    EXPECT_EQ(setsockopt(ends[0], SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience), 0);
    ++connections_;
    threads_.emplace_back([this, theirs = ends[1]] {
      clients_->serve(raw::Fd(theirs));
      --serving_;
    });
    ++serving_;
    return raw::Fd(ends[0]);
  }

  class Line final : public target::AgentLine {
   public:
    explicit Line(raw::Fd fd) : fd_(std::move(fd)) {}
    Status send(std::span<const iovec> from) override {
      for (const iovec& one : from)
        if (one.iov_len > 0 && ::send(fd_.get(), one.iov_base, one.iov_len, MSG_NOSIGNAL) != ssize_t(one.iov_len)) return gone();
      return {};
    }
    Status receive(std::span<const iovec> into) override {
      for (const iovec& one : into)
        if (one.iov_len > 0 && recv(fd_.get(), one.iov_base, one.iov_len, MSG_WAITALL) != ssize_t(one.iov_len)) return gone();
      return {};
    }

   private:
    static Status gone() { return Status(Kind::io, "the connection has gone", ECONNRESET); }
    const raw::Fd fd_;
  };
  static target::SessionId id_of(int number) {
    target::SessionId id{};
    id[0] = std::byte(number);
    return id;
  }
  // A whole client, which connects again where it is reset.
  std::shared_ptr<target::Target> client(int number) {
    const auto open = [this]() -> Result<std::unique_ptr<target::AgentLine>> { return std::unique_ptr<target::AgentLine>(new Line(connect())); };
    auto channel = std::make_shared<target::SessionChannel>(id_of(number), std::vector<target::SessionId>(), open);
    EXPECT_TRUE(channel->begin().ok());
    return *target::attach_to_agent(channel, "/d", "n1:/d", 0600);
  }

  // A client that does what a test says, byte by byte.
  struct Raw {
    raw::Fd fd;
    uint32_t number = 0, handle = 0;
    void send(target::AgentRequest request, const void* bytes, size_t count) const {
      EXPECT_EQ(::send(fd.get(), &request, sizeof request, MSG_NOSIGNAL), ssize_t(sizeof request));
      EXPECT_EQ(::send(fd.get(), bytes, count, MSG_NOSIGNAL), ssize_t(count));
    }
    // Nothing where the agent hangs up.
    std::optional<target::AgentAnswer> answer() const {
      target::AgentAnswer head;
      if (recv(fd.get(), &head, sizeof head, MSG_WAITALL) != ssize_t(sizeof head)) return std::nullopt;
      std::string rest(head.sentence_bytes + head.bulk_bytes, '\0');
      if (!rest.empty() && recv(fd.get(), rest.data(), rest.size(), MSG_WAITALL) != ssize_t(rest.size())) return std::nullopt;
      return head;
    }
    std::optional<target::AgentAnswer> ask(AgentOp op, const std::string& name, uint16_t flags) {
      target::AgentRequest request;
      request.op = uint16_t(op), request.number = ++number, request.name_bytes = uint32_t(name.size()), request.flags = flags;
      send(request, name.data(), name.size());
      return answer();
    }
  };
  Raw raw_client(int number) {
    Raw one{connect()};
    const auto id = id_of(number);
    target::AgentRequest request;
    request.op = uint16_t(AgentOp::begin), request.quiet = 1, request.bulk_bytes = sizeof id;
    one.send(request, id.data(), sizeof id);
    EXPECT_EQ(one.ask(AgentOp::attach, "/d", 0600)->kind, 0);
    one.handle = uint32_t(one.ask(AgentOp::open, "o" + std::to_string(number), uint16_t(OpenMode::create))->value);
    return one;
  }
  // The header of a write, and a little of it.
  static void begin_write(Raw& client) {
    target::AgentRequest request;
    request.op = uint16_t(AgentOp::write), request.number = ++client.number, request.handle = client.handle, request.bulk_bytes = unit;
    client.send(request, "abc", 3);
  }
  // Client `number`, which has been hung up on in its last request, connects again and writes.
  void goes_on(Raw& one, int number) {
    one.fd = connect();
    const auto id = id_of(number);
    target::AgentRequest request;
    request.op = uint16_t(AgentOp::begin), request.flags = 1, request.bulk_bytes = sizeof id;
    one.send(request, id.data(), sizeof id);
    const auto found = one.answer();
    ASSERT_TRUE(found);
    EXPECT_EQ(Kind(found->kind), Kind::ok);
    ASSERT_EQ(found->value, one.number - 1) << "its session is there, and that write was not carried out";
    request = {};
    request.op = uint16_t(AgentOp::write), request.number = one.number, request.handle = one.handle, request.bulk_bytes = unit;
    const Bytes whole(unit, std::byte('s'));
    one.send(request, whole.data(), whole.size());
    const auto written = one.answer();
    ASSERT_TRUE(written);
    EXPECT_EQ(written->kind, 0);
  }
  // The first one that is, within seconds.
  static std::vector<Raw>::iterator hung_up(std::vector<Raw>& clients) {
    std::vector<pollfd> look;
    for (const Raw& one : clients) look.push_back({one.fd.get(), POLLRDHUP, 0});
    EXPECT_GT(poll(look.data(), look.size(), 20000), 0);
    return clients.begin() + (std::find_if(look.begin(), look.end(), [](const pollfd& one) { return one.revents != 0; }) - look.begin());
  }
  static Status write_unit(target::Object& object, char of) {
    std::string bytes(unit, of);
    const iovec one{bytes.data(), bytes.size()};
    return object.write(0, {&one, 1});
  }
  void wait_until_serving(int count) const {
    for (int i = 0; i < 1000 && serving_ != count; ++i) std::this_thread::sleep_for(milliseconds(10));
    EXPECT_EQ(serving_, count);
  }

  std::shared_ptr<target::MemoryDirectory> memory_ = std::make_shared<target::MemoryDirectory>();
  std::unique_ptr<Clients> clients_;
  std::list<std::thread> threads_;
  std::atomic<int> serving_{0}, connections_{0};
};

TEST_F(MemoryOfClients, who_stops_in_mid_request_while_others_wait_is_reset_and_may_go_on) {
  begin(milliseconds(600000), milliseconds(200));
  std::vector<Raw> slow;
  for (int i = 0; i < all_units; ++i) begin_write(slow.emplace_back(raw_client(i + 1)));
  std::this_thread::sleep_for(milliseconds(500));
  EXPECT_EQ(serving_, all_units) << "nobody waits for what they hold";
  const auto fast = client(50);
  const auto object = *fast->open("fast", OpenMode::create);
  ASSERT_TRUE(write_unit(*object, 'f').ok());
  const auto one = hung_up(slow);
  ASSERT_NE(one, slow.end());
  goes_on(*one, 1 + int(one - slow.begin()));
}

TEST_F(MemoryOfClients, who_was_stopped_in_mid_request_for_long_may_go_on) {
  begin(milliseconds(2000), milliseconds(2000));
  std::vector<Raw> slow;
  begin_write(slow.emplace_back(raw_client(1)));
  ASSERT_NE(hung_up(slow), slow.end());
  goes_on(slow[0], 1);
}

TEST_F(MemoryOfClients, who_does_not_take_its_answer_while_others_wait_is_reset) {
  begin(milliseconds(600000), milliseconds(200));
  std::vector<Raw> slow;
  for (int i = 0; i < all_units; ++i) {
    Raw& one = slow.emplace_back(raw_client(i + 1));
    const auto mine = *target::make_memory_target(memory_, "/d")->open("o" + std::to_string(i + 1), OpenMode::write);
    ASSERT_TRUE(write_unit(*mine, 's').ok());
    target::AgentRequest request;
    request.op = uint16_t(AgentOp::read), request.number = ++one.number, request.handle = one.handle, request.length = unit;
    one.send(request, "", 0);
    // Its answer has memory, as soon as the beginning of it is there.
    pollfd begun{one.fd.get(), POLLIN, 0};
    ASSERT_EQ(poll(&begun, 1, 20000), 1);
  }
  const auto fast = client(50);
  const auto object = *fast->open("fast", OpenMode::create);
  ASSERT_TRUE(write_unit(*object, 'f').ok());
  const auto one = hung_up(slow);
  ASSERT_NE(one, slow.end());
  EXPECT_FALSE(one->answer()) << "half of it came";
}

TEST_F(MemoryOfClients, who_ends_while_it_waits_gives_its_turn_back_at_once) {
  begin(milliseconds(60000), milliseconds(60000));
  std::vector<Raw> slow;
  for (int i = 0; i < all_units; ++i) begin_write(slow.emplace_back(raw_client(i + 1)));
  Raw waits = raw_client(9);
  begin_write(waits);
  std::this_thread::sleep_for(milliseconds(300));
  EXPECT_EQ(serving_, all_units + 1);
  waits.fd.reset();
  wait_until_serving(all_units);
  slow[0].fd.reset();
  const auto fast = client(50);
  EXPECT_TRUE(write_unit(**fast->open("fast", OpenMode::create), 'f').ok());
}

TEST_F(MemoryOfClients, small_requests_wait_for_nobody) {
  begin(milliseconds(60000), milliseconds(60000));
  std::vector<Raw> slow;
  for (int i = 0; i < 2 * all_units; ++i) begin_write(slow.emplace_back(raw_client(i + 1)));
  const auto fast = client(50);
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(fast->put("small" + std::to_string(i), Bytes(target::most_free_bytes, std::byte(i)), false).ok());
}

TEST_F(MemoryOfClients, what_is_begun_and_not_gone_on_with_is_given_up) {
  begin(milliseconds(300), milliseconds(300));
  Raw slow = raw_client(1);
  target::AgentRequest request;
  request.op = uint16_t(AgentOp::append), request.number = ++slow.number, request.bulk_bytes = unit, request.length = all_units * unit;
  const Bytes piece(unit, std::byte(1));
  slow.send(request, piece.data(), piece.size());
  const auto begun = slow.answer();
  ASSERT_EQ(begun->kind, 0);
  const auto fast = client(50);
  ASSERT_TRUE(fast->put("large", Bytes(all_units * unit, std::byte(2)), false).ok()) << "it waits until there is memory for it";
  request.number = ++slow.number, request.handle = uint32_t(begun->value);
  slow.send(request, piece.data(), piece.size());
  const auto late = slow.answer();
  ASSERT_TRUE(late) << "it is not hung up on";
  EXPECT_EQ(late->sys_errno, ESTALE);
}

TEST_F(MemoryOfClients, what_is_put_in_pieces_takes_turns_and_is_given_back) {
  begin(milliseconds(60000), milliseconds(60000));
  std::vector<std::thread> writers;
  for (int i = 1; i <= 6; ++i)
    writers.emplace_back([this, one = client(i), i] {
      for (int round = 0; round < 5; ++round) {
        const std::string name = "m" + std::to_string(i);
        const Bytes content(3 * unit + size_t(i), std::byte(i));
        EXPECT_TRUE(one->put(name, content, false).ok());
        EXPECT_EQ(one->get(name, 8 * unit).value(), content);
      }
    });
  for (std::thread& writer : writers) writer.join();
  EXPECT_TRUE(client(50)->put("whole", Bytes(all_units * unit, std::byte(9)), false).ok()) << "all of it is there again";
}

}  // namespace
}  // namespace holdfast::agent
