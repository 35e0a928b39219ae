#include "transport/server.hpp"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <thread>

#include "transport/link.hpp"
#include "unit/transport/running.hpp"

namespace holdfast::transport {
namespace {

constexpr uint64_t deadline_ms = 5000;

// Says back what it is told, in capitals.
struct Shout : Conversation {
  std::optional<size_t> take(ByteView came, Bytes& out) override {
    for (const std::byte byte : came) out.push_back(std::byte(toupper(int(byte))));
    return came.size();
  }
};

std::unique_ptr<Conversation> shouts(raw::Fd&, ByteView) { return std::make_unique<Shout>(); }

Status ask(Link& link, const std::string& question, std::string& answer) {
  const iovec out{const_cast<char*>(question.data()), question.size()};
  answer.assign(question.size(), '\0');
  const iovec in[2] = {{answer.data(), 1}, {answer.data() + 1, answer.size() - 1}};
  HF_TRY(link.send({&out, 1}));
  return link.receive(in);
}

TEST(Server, serves_each_client_its_own_answers) {
  const Running server{Agreement(), shouts};
  Link one, other;
  ASSERT_TRUE(one.connect(server.endpoints, Agreement(), deadline_ms).ok());
  ASSERT_TRUE(other.connect(server.endpoints, Agreement(), deadline_ms).ok());
  std::string first, second;
  ASSERT_TRUE(ask(one, "first", first).ok());
  ASSERT_TRUE(ask(other, "second", second).ok());
  EXPECT_EQ(first + second, "FIRSTSECOND");
}

// How many descriptors this process's polls wait for.
int waited_for() {
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fdinfo")) {
    std::ifstream info(entry.path());
    for (std::string line; std::getline(info, line);) count += line.starts_with("tfd:");
  }
  return count;
}

// A closed connection can always be read: a poll that still waits for it returns at once, again and again.
TEST(Server, waits_no_more_for_a_client_that_is_gone_though_its_socket_has_a_copy) {
  std::vector<raw::Fd> copies;
  Running server{Agreement(), [&](raw::Fd& socket, ByteView) {
                   copies.emplace_back(raw::fcntl(socket.get(), F_DUPFD_CLOEXEC));
                   return std::make_unique<Shout>();
                 }};
  const int before = waited_for();
  {
    Link link;
    ASSERT_TRUE(link.connect(server.endpoints, Agreement(), deadline_ms).ok());
    std::string answer;
    ASSERT_TRUE(ask(link, "here", answer).ok());
    EXPECT_EQ(waited_for(), before + 1);
  }
  for (int i = 0; i < 500 && waited_for() > before; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_EQ(waited_for(), before);
  EXPECT_EQ(copies.size(), 1U);
}

TEST(Server, says_why_it_refuses_a_version) {
  const Running server{Agreement(), shouts};
  Link link;
  const Status status = link.connect(server.endpoints, {Protocol::pointers, 2, {}, {}}, deadline_ms);
  EXPECT_EQ(status.kind(), Kind::version);
  EXPECT_FALSE(link.connected());
}

TEST(Server, hangs_up_on_strangers_and_serves_on) {
  const Running server{Agreement(), shouts};
  const auto endpoint = parse_endpoint(server.endpoints.substr(0, server.endpoints.find('\n')));
  ASSERT_TRUE(endpoint);
  const int stranger = socket(endpoint->address.ss_family, SOCK_STREAM, 0);
  ASSERT_EQ(connect(stranger, reinterpret_cast<const sockaddr*>(&endpoint->address), endpoint->bytes), 0);
  const std::string junk(4096, 'j');
  EXPECT_EQ(write(stranger, junk.data(), junk.size()), ssize_t(junk.size()));
  char byte;
  EXPECT_LE(read(stranger, &byte, 1), 0);
  close(stranger);
  Link link;
  std::string answer;
  ASSERT_TRUE(link.connect(server.endpoints, Agreement(), deadline_ms).ok());
  EXPECT_TRUE(ask(link, "still there", answer).ok());
}

// More than may wait unknown: the oldest are turned away, those who are known are served, and new ones are greeted.
TEST(Server, bears_a_crowd_of_strangers) {
  const Running server{Agreement(), shouts};
  Link known;
  ASSERT_TRUE(known.connect(server.endpoints, Agreement(), deadline_ms).ok());
  const auto endpoint = parse_endpoint(server.endpoints.substr(0, server.endpoints.find('\n')));
  std::vector<int> crowd;
  for (int i = 0; i < 400; ++i) {
    crowd.push_back(socket(endpoint->address.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    ASSERT_EQ(connect(crowd.back(), reinterpret_cast<const sockaddr*>(&endpoint->address), endpoint->bytes), 0);
  }
  std::string answer;
  EXPECT_TRUE(ask(known, "known", answer).ok());
  Link late;
  EXPECT_TRUE(late.connect(server.endpoints, Agreement(), deadline_ms).ok());
  for (const int fd : crowd) close(fd);
}

// A server in a process of its own, which may open so many descriptors more.
class Poor {
 public:
  explicit Poor(int descriptors) {
    int told[2];
    EXPECT_EQ(pipe(told), 0);
    server_ = fork();
    if (server_ == 0) {
      Server server;
      server.welcome = [](raw::Fd&, ByteView) { return std::make_unique<Shout>(); };
      const std::string endpoints = server.listen(Reach::loopback, Agreement());
      const int to = dup2(told[1], told[0]);
      close(told[1]);
      const rlimit limit{64, 64};
      if (setrlimit(RLIMIT_NOFILE, &limit) != 0) _exit(1);
      std::vector<int> all;  // wherever there was room
      for (int fd; (fd = dup(to)) >= 0;) all.push_back(fd);
      if (all.size() < size_t(descriptors) || write(to, endpoints.data(), endpoints.size()) < 0) _exit(1);
      for (size_t i = 0; i < all.size(); ++i)
        if (i < size_t(descriptors)) close(all[i]);
      server.run();
      _exit(0);
    }
    close(told[1]);
    char text[4096];
    const ssize_t got = read(told[0], text, sizeof text);
    endpoints.assign(text, size_t(std::max<ssize_t>(got, 0)));
    close(told[0]);
  }
  ~Poor() {
    kill(server_, SIGKILL);
    waitpid(server_, nullptr, 0);
  }
  // A client that says nothing.
  raw::Fd stranger() const {
    const auto endpoint = parse_endpoint(endpoints.substr(0, endpoints.find('\n')));
    raw::Fd fd(socket(endpoint->address.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const timeval patience{long(deadline_ms) / 1000, 0};
    setsockopt(fd.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    EXPECT_EQ(connect(fd.get(), reinterpret_cast<const sockaddr*>(&endpoint->address), endpoint->bytes), 0);
    return fd;
  }
  std::string endpoints;

 private:
  pid_t server_ = -1;
};

// It found the next connection ready again and again, took nobody, and used up a processor.
TEST(Server, without_descriptors_hangs_up_instead_of_spinning) {
  const Poor server(4);
  std::vector<raw::Fd> strangers;
  for (int i = 0; i < 8; ++i) strangers.push_back(server.stranger());
  std::vector<Link> known(4);
  std::string answer;
  for (Link& link : known) {
    ASSERT_TRUE(link.connect(server.endpoints, Agreement(), deadline_ms).ok()) << "strangers are in the way";
    EXPECT_TRUE(ask(link, "here", answer).ok());
  }
  char byte;
  errno = 0;
  EXPECT_LE(read(server.stranger().get(), &byte, 1), 0);
  EXPECT_NE(errno, EAGAIN) << "left in the queue";
  EXPECT_TRUE(ask(known[0], "still there", answer).ok());
  known.pop_back();
  Link late;
  bool taken = false;
  for (int i = 0; i < 100 && !taken; ++i) taken = late.connect(server.endpoints, Agreement(), deadline_ms).ok();
  EXPECT_TRUE(taken) << "one has left";
}

TEST(Endpoint, is_one_of_two_kinds_of_line) {
  EXPECT_TRUE(parse_endpoint("unix holdfast-1"));
  EXPECT_TRUE(parse_endpoint("tcp 127.0.0.1 80"));
  EXPECT_TRUE(parse_endpoint("tcp ::1 65535"));
  for (const char* line : {"", "unix", "unix ", "unix a b", "tcp", "tcp 1.2.3.4", "tcp 1.2.3.4 0", "tcp 1.2.3.4 65536", "tcp host 80",
                           "tcp 1.2.3.4 80 ", "udp 1.2.3.4 80"})
    EXPECT_FALSE(parse_endpoint(line)) << line;
  EXPECT_FALSE(parse_endpoint("unix " + std::string(200, 'x')));
}

}  // namespace
}  // namespace holdfast::transport
