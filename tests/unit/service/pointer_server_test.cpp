#include <gtest/gtest.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <set>
#include <thread>
#include <vector>

#include "service/pointer_link.hpp"
#include "service/pointer_service.hpp"

namespace holdfast::service {
namespace {

constexpr uint64_t kDeadlineMs = 5000;

// The server's own program, where the build has put it: ../libexec/holdfast from the folder of the tests.
std::string program() {
  return std::filesystem::read_symlink("/proc/self/exe").parent_path().parent_path().string() + "/libexec/holdfast/pointer-server";
}

std::set<int> running_servers() {
  std::set<int> found;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    std::error_code error;
    if (std::filesystem::read_symlink(entry.path() / "exe", error) == program()) found.insert(std::stoi(entry.path().filename()));
  }
  return found;
}

// Whether a server is a process or a thread is a parameter.
class PointerServer : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    before = running_servers();
    auto started = PointerService::start(GetParam() ? program() : "");
    ASSERT_TRUE(started.ok()) << started.status().sentence();
    service = std::move(*started);
  }
  std::string endpoints(PointerService::Reach reach = PointerService::Reach::node) {
    auto listening = service->listen(reach);
    EXPECT_TRUE(listening.ok());
    return listening.ok() ? *listening : "";
  }
  // Of this test; empty where it is a thread.
  std::vector<int> own_process() {
    std::vector<int> own;
    for (int process : running_servers()) {
      if (!before.count(process)) own.push_back(process);
    }
    return own;
  }
  std::set<int> before;
  std::unique_ptr<PointerService> service;
};

TEST_P(PointerServer, gives_every_place_once_to_many_ranks) {
  const std::string where = endpoints();
  constexpr int kRanks = 6, kEach = 2000;
  std::vector<std::vector<int64_t>> got(kRanks);
  std::vector<std::thread> ranks;
  for (int rank = 0; rank < kRanks; ++rank) {
    ranks.emplace_back([&, rank] {
      PointerLink link;
      if (!link.connect(where, service->secret(), kDeadlineMs).ok()) return;
      for (int i = 0; i < kEach; ++i) got[rank].push_back(link.ask(Op::fetch_add, 7, 1));
    });
  }
  for (std::thread& rank : ranks) rank.join();
  std::vector<int64_t> all;
  for (const auto& one : got) {
    EXPECT_TRUE(std::is_sorted(one.begin(), one.end()));
    all.insert(all.end(), one.begin(), one.end());
  }
  std::sort(all.begin(), all.end());
  ASSERT_EQ(all.size(), size_t{kRanks * kEach});
  for (size_t i = 0; i < all.size(); ++i) ASSERT_EQ(all[i], static_cast<int64_t>(i));
}

TEST_P(PointerServer, keeps_files_apart_and_forgets_them) {
  PointerLink link;
  ASSERT_TRUE(link.connect(endpoints(), service->secret(), kDeadlineMs).ok());
  EXPECT_EQ(link.ask(Op::store, 1, 40), 0);
  EXPECT_EQ(link.ask(Op::fetch_add, 2, 5), 0);
  EXPECT_EQ(link.ask(Op::fetch_add, 1, 2), 40);
  EXPECT_EQ(link.ask(Op::load, 1, 0), 42);
  EXPECT_EQ(link.ask(Op::load, 2, 0), 5);
  link.ask(Op::forget, 1, 0);
  EXPECT_EQ(link.ask(Op::load, 1, 0), 0);
}

TEST_P(PointerServer, is_reached_by_tcp_too) {
  const std::string where = endpoints(PointerService::Reach::loopback);
  EXPECT_EQ(where.find("unix"), std::string::npos);
  PointerLink link;
  ASSERT_TRUE(link.connect(where, service->secret(), kDeadlineMs).ok()) << where;
  EXPECT_EQ(link.ask(Op::fetch_add, 1, 3), 0);
  EXPECT_EQ(link.ask(Op::load, 1, 0), 3);
}

TEST_P(PointerServer, hangs_up_on_who_does_not_know_the_secret) {
  const std::string where = endpoints();
  transport::Secret wrong = service->secret();
  wrong[15] ^= std::byte{1};
  PointerLink stranger;
  EXPECT_FALSE(stranger.connect(where, wrong, kDeadlineMs).ok());
  EXPECT_EQ(stranger.ask(Op::load, 1, 0), -1);
}

TEST_P(PointerServer, takes_no_connections_when_all_have_come_and_serves_those_it_has) {
  const std::string where = endpoints();
  PointerLink early, late;
  ASSERT_TRUE(early.connect(where, service->secret(), kDeadlineMs).ok());
  service->hush();
  EXPECT_EQ(early.ask(Op::fetch_add, 1, 1), 0);  // answered after the command before it
  EXPECT_FALSE(late.connect(where, service->secret(), kDeadlineMs).ok());
  EXPECT_EQ(early.ask(Op::load, 1, 0), 1);
  ASSERT_TRUE(late.connect(endpoints(), service->secret(), kDeadlineMs).ok());
  EXPECT_EQ(late.ask(Op::load, 1, 0), 1);
}

TEST_P(PointerServer, ends_with_who_started_it) {
  PointerLink link;
  ASSERT_TRUE(link.connect(endpoints(), service->secret(), kDeadlineMs).ok());
  service.reset();
  while (link.ask(Op::load, 1, 0) >= 0) usleep(1000);
  EXPECT_FALSE(link.connected());
  EXPECT_FALSE(link.failure().ok());
  for (int tries = 0; tries < 5000 && !own_process().empty(); ++tries) usleep(1000);
  EXPECT_TRUE(own_process().empty());
}

// An address that nobody answers on: a listener whose queue is full.
struct SilentAddress {
  SilentAddress() : listener(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t bytes = sizeof address;
    auto* plain = reinterpret_cast<sockaddr*>(&address);
    bind(listener, plain, bytes);
    listen(listener, 0);
    getsockname(listener, plain, &bytes);
    for (int& one : fillers) connect(one = ::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0), plain, bytes);
    endpoint = "tcp 127.0.0.1 " + std::to_string(ntohs(address.sin_port)) + "\n";
  }
  ~SilentAddress() {
    for (int one : fillers) close(one);
    close(listener);
  }
  int listener, fillers[3];
  std::string endpoint;
};

TEST_P(PointerServer, is_reached_well_within_the_deadline_past_addresses_that_do_not_answer) {
  const SilentAddress silent;
  const std::string where = silent.endpoint + silent.endpoint + endpoints(PointerService::Reach::loopback);
  constexpr int64_t kLongMs = 60000;
  PointerLink link;
  const auto start = std::chrono::steady_clock::now();
  ASSERT_TRUE(link.connect(where, service->secret(), kLongMs).ok());
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::milliseconds(kLongMs / 2));
  EXPECT_EQ(link.ask(Op::fetch_add, 1, 3), 0);
}

INSTANTIATE_TEST_SUITE_P(As, PointerServer, testing::Bool(), [](const auto& test) { return test.param ? "process" : "thread"; });

TEST(PointerServerProcess, that_is_killed_is_an_error_and_no_wait) {
  const std::set<int> before = running_servers();
  auto service = PointerService::start(program());
  ASSERT_TRUE(service.ok());
  auto where = (*service)->listen(PointerService::Reach::node);
  ASSERT_TRUE(where.ok());
  PointerLink link;
  ASSERT_TRUE(link.connect(*where, (*service)->secret(), kDeadlineMs).ok());
  int killed = 0;
  for (int process : running_servers()) {
    if (!before.count(process)) killed += kill(process, SIGKILL) == 0;
  }
  ASSERT_EQ(killed, 1);
  int64_t answer = 0;
  for (int tries = 0; tries < 5000 && answer >= 0; ++tries) answer = link.ask(Op::load, 1, 0);
  EXPECT_EQ(answer, -1);
  EXPECT_NE(link.failure().sentence().find("has gone"), std::string::npos);
}

TEST(PointerServerProcess, that_does_not_answer_is_an_error_after_the_deadline_whatever_signals_come) {
  const std::set<int> before = running_servers();
  auto service = PointerService::start(program());
  ASSERT_TRUE(service.ok());
  auto where = (*service)->listen(PointerService::Reach::node);
  ASSERT_TRUE(where.ok());
  PointerLink link;
  ASSERT_TRUE(link.connect(*where, (*service)->secret(), 400).ok());
  for (int process : running_servers()) {
    if (!before.count(process)) kill(process, SIGSTOP);
  }
  struct sigaction count {
  }, old{};
  count.sa_handler = [](int) {};
  sigaction(SIGALRM, &count, &old);
  const itimerval often{{0, 20000}, {0, 20000}}, never{};
  setitimer(ITIMER_REAL, &often, nullptr);
  EXPECT_EQ(link.ask(Op::load, 1, 0), -1);
  setitimer(ITIMER_REAL, &never, nullptr);
  sigaction(SIGALRM, &old, nullptr);
  EXPECT_NE(link.failure().sentence().find("in time"), std::string::npos);
  for (int process : running_servers()) {
    if (!before.count(process)) kill(process, SIGCONT);
  }
}

TEST(PointerServerProcess, that_cannot_be_started_says_so) {
  auto service = PointerService::start("/nowhere/pointer-server");
  ASSERT_FALSE(service.ok());
  EXPECT_NE(service.status().sentence().find("/nowhere/pointer-server"), std::string::npos);
}

}  // namespace
}  // namespace holdfast::service
