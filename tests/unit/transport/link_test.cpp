#include "transport/link.hpp"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <chrono>

#include "base/raw_syscalls.hpp"

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

TEST(Link, waits_for_all_addresses_side_by_side) {
  constexpr int64_t deadline_ms = 1000;
  const Silent one, two, three, four;
  Link link;
  const auto began = std::chrono::steady_clock::now();
  const Status status = link.connect(one.line() + two.line() + three.line() + four.line(), Agreement(), deadline_ms);
  EXPECT_EQ(status.kind(), Kind::io);
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::milliseconds(4 * deadline_ms));
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

}  // namespace
}  // namespace holdfast::transport
