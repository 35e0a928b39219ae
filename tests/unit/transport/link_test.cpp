#include "transport/link.hpp"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/ip.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <thread>

#include "base/raw_syscalls.hpp"
#include "unit/transport/running.hpp"

namespace holdfast::transport {
namespace {

// Takes connections and says nothing, as a process that is stopped.
struct Silent {
  Silent() : listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t bytes = sizeof address;
    auto* plain = reinterpret_cast<sockaddr*>(&address);
    EXPECT_EQ(bind(listener.get(), plain, bytes), 0);
    EXPECT_EQ(listen(listener.get(), 8), 0);
    EXPECT_EQ(getsockname(listener.get(), plain, &bytes), 0);
    port = std::to_string(ntohs(address.sin_port));
  }
  std::string line() const { return "tcp 127.0.0.1 " + port + "\n"; }
  raw::Fd listener;
  std::string port;
};

// Whoever knows the secret is greeted.
std::unique_ptr<Conversation> hangs_up(raw::Fd&, ByteView) { return nullptr; }

TEST(Link, waits_for_all_addresses_side_by_side) {
  constexpr int64_t deadline_ms = 1000;
  const Silent one, two, three, four;
  Link link;
  const auto began = std::chrono::steady_clock::now();
  const Status status = link.connect(one.line() + two.line() + three.line() + four.line(), Agreement(), deadline_ms);
  EXPECT_EQ(status.kind(), Kind::io);
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::milliseconds(2 * deadline_ms));
}

// Each silent one before it costs a moment: by then all of them would have been waited for in turn.
TEST(Link, an_address_that_answers_is_not_kept_waiting_by_silent_ones) {
  Secret secret;
  ASSERT_TRUE(draw(secret));
  const Agreement agreement{Protocol::agent, 1, secret, Identity{}};
  const Running server(agreement, hangs_up);
  const std::vector<Silent> silent(16);
  std::string lines;
  for (const Silent& one : silent) lines += one.line();
  Link link;
  const auto began = std::chrono::steady_clock::now();
  const Status status = link.connect(lines + server.endpoints, agreement, 60000);
  EXPECT_TRUE(status.ok()) << status.sentence();
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::milliseconds(16 * 300));
}

TEST(Link, addresses_that_refuse_are_not_waited_for) {
  std::string gone;
  for (int i = 0; i < 4; ++i) gone += Silent().line();
  Link link;
  const auto began = std::chrono::steady_clock::now();
  EXPECT_EQ(link.connect(gone, Agreement(), 60000).kind(), Kind::io);
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(30));
}

// Takes a connection, and hangs up after so many steps of the greeting.
void greet(int listener, const Agreement& agreement, int steps) {
  const raw::Fd client(::accept(listener, nullptr, nullptr));
  Nonce nonce;
  Hello hello;
  Closing closing;
  if (steps < 1 || !draw(nonce) || recv(client.get(), &hello, sizeof hello, MSG_WAITALL) != ssize_t(sizeof hello)) return;
  ServerGreeting greeting(agreement, nonce);
  const auto reply = greeting.answer(hello);
  ASSERT_TRUE(reply);
  if (steps < 2 || ::send(client.get(), &*reply, sizeof *reply, MSG_NOSIGNAL) != ssize_t(sizeof *reply)) return;
  if (recv(client.get(), &closing, sizeof closing, MSG_WAITALL) != ssize_t(sizeof closing) || steps < 3) return;
  EXPECT_EQ(::send(client.get(), &welcome_word, sizeof welcome_word, MSG_NOSIGNAL), ssize_t(sizeof welcome_word));
}

// Of many that come at once a server hangs up on some, which have hardly begun.
TEST(Link, that_is_hung_up_on_in_its_greeting_begins_anew) {
  Secret secret;
  ASSERT_TRUE(draw(secret));
  const Agreement agreement{Protocol::agent, 1, secret, Identity{}};
  const Silent crowded;
  std::thread serves([&] {
    for (const int steps : {0, 1, 2, 3}) greet(crowded.listener.get(), agreement, steps);
  });
  Link link;
  const Status status = link.connect(crowded.line(), agreement, 60000);
  EXPECT_TRUE(status.ok()) << status.sentence();
  if (!status.ok()) shutdown(crowded.listener.get(), SHUT_RDWR);  // nobody else comes
  serves.join();
}

TEST(Link, names_both_ends_of_each_way_where_nobody_answers) {
  std::string gone, silent_port;
  {
    const Silent ended;
    gone = ended.line(), silent_port = ended.port;
  }
  const Silent silent;
  Link link;
  const std::string said = link.connect("unix holdfast-nobody\n" + gone + silent.line(), Agreement(), 100).sentence();
  EXPECT_NE(said.find("from 127.0.0.1 to 127.0.0.1 port " + silent_port), std::string::npos) << said;
  EXPECT_NE(said.find("from 127.0.0.1 to 127.0.0.1 port " + silent.port), std::string::npos) << said;
}

// In a process of its own, as all connections of that process do so from then on.
int class_and_band_where_it_gives_way() {
  give_way();
  Secret secret;
  const Agreement agreement{Protocol::agent, 1, draw(secret) ? secret : Secret(), Identity{}};
  const Running server(agreement, hangs_up);
  std::string lines = server.endpoints;
  if (lines.starts_with("unix")) lines.erase(0, lines.find('\n') + 1);
  Link link;
  int tos = 0, band = 0;
  socklen_t size = sizeof tos;
  if (!link.connect(lines, agreement, 60000).ok() || getsockopt(link.descriptor(), IPPROTO_IP, IP_TOS, &tos, &size) != 0 ||
      getsockopt(link.descriptor(), SOL_SOCKET, SO_PRIORITY, &band, &size) != 0)
    return 1;
  return tos + band;
}

TEST(Link, of_a_process_that_gives_way_is_of_lower_effort_and_the_last_band) {
  const pid_t child = fork();
  if (child == 0) _exit(class_and_band_where_it_gives_way());
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(WEXITSTATUS(status), 0x20 + 2);
}

}  // namespace
}  // namespace holdfast::transport
