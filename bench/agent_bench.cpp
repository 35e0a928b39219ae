// One client of one node agent over loopback, beside plain TCP that copies the same bytes into a file of the same directory, in turn in one run.
// Wanted: 1 MiB writes and reads >= 0.8 of plain TCP, small calls >= 0.5 of a bare ping-pong. Directory: AGENT_BENCH_DIR, else /dev/shm.
#include <benchmark/benchmark.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "agent/serve.hpp"
#include "target/address.hpp"

namespace {

using namespace holdfast;

constexpr size_t unit = 1 << 20, units_in_file = 64;

bool move_all(int fd, char* at, size_t bytes, bool out) {
  while (bytes > 0) {
    const ssize_t moved = out ? send(fd, at, bytes, MSG_NOSIGNAL) : recv(fd, at, bytes, 0);
    if (moved <= 0) return false;
    at += moved, bytes -= size_t(moved);
  }
  return true;
}

std::string directory() {
  static const std::string made = [] {
    const char* where = std::getenv("AGENT_BENCH_DIR");
    std::string name = std::string(where ? where : "/dev/shm") + "/holdfast-bench.XXXXXX";
    return std::string(mkdtemp(name.data()) ? name : "");
  }();
  return made;
}

// Servers end with this process.
std::vector<pid_t> children;
struct Ending {
  ~Ending() {
    for (pid_t child : children) kill(child, SIGKILL), waitpid(child, nullptr, 0);
    (void)!system(("rm -rf '" + directory() + "'").c_str());
  }
} ending;

// One byte says what comes: a unit to be written, a unit to be sent, or only the byte itself.
void serve_plainly(int socket) {
  const int file = open((directory() + "/plain").c_str(), O_RDWR | O_CREAT, 0600);
  std::vector<char> buffer(unit, 'f');
  // Bytes to read from the beginning, in whatever order the benchmarks are run: what is not there costs nothing to read.
  for (size_t i = 0; i < units_in_file; ++i)
    if (pwrite(file, buffer.data(), unit, off_t(i * unit)) != ssize_t(unit)) _exit(1);
  for (uint64_t count = 0;; ++count) {
    char what;
    if (!move_all(socket, &what, 1, false)) _exit(0);
    const off_t at = off_t(count % units_in_file * unit);
    if (what == 'w' && (!move_all(socket, buffer.data(), unit, false) || pwrite(file, buffer.data(), unit, at) != ssize_t(unit))) _exit(1);
    if (what == 'r' && (pread(file, buffer.data(), unit, at) != ssize_t(unit) || !move_all(socket, buffer.data(), unit, true))) _exit(1);
    if (what != 'r' && !move_all(socket, &what, 1, true)) _exit(0);
  }
}

int plain_connection() {
  static const int connected = [] {
    const int listener = socket(AF_INET, SOCK_STREAM, 0), yes = 1;
    sockaddr_in address{};
    address.sin_family = AF_INET, address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t bytes = sizeof address;
    auto* plain = reinterpret_cast<sockaddr*>(&address);
    if (bind(listener, plain, bytes) != 0 || listen(listener, 1) != 0 || getsockname(listener, plain, &bytes) != 0) std::abort();
    directory();
    const pid_t child = fork();
    if (child == 0) {
      const int client = accept(listener, nullptr, nullptr);
      setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
      serve_plainly(client);
    }
    children.push_back(child);
    const int made = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(made, plain, bytes) != 0) std::abort();
    setsockopt(made, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    close(listener);
    return made;
  }();
  return connected;
}

target::Object& object_by_agent() {
  static const std::shared_ptr<target::Object> object = [] {
    setenv("HOLDFAST_AGENTS", (directory() + "/agents").c_str(), 1);
    const agent::Orders orders{"n1", directory() + "/agents", {directory()}, transport::Reach::loopback, 0};
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) std::abort();
    const pid_t child = fork();
    if (child == 0) {
      close(ends[0]);
      agent::serve_agent(orders, ends[1]);
      _exit(0);
    }
    children.push_back(child);
    close(ends[1]);
    char said[512];
    (void)!recv(ends[0], said, sizeof said, MSG_WAITALL);
    auto opened = target::open("n1:" + directory());
    if (!opened.ok()) std::abort();
    const auto made = *(*opened)->open("unit", target::OpenMode::create);
    std::vector<char> content(unit, 'f');
    const iovec one{content.data(), content.size()};
    for (size_t i = 0; i < units_in_file; ++i)
      if (!made->write(i * unit, {&one, 1}).ok()) std::abort();
    return made;
  }();
  return *object;
}

void write_plain(benchmark::State& state) {
  const int socket = plain_connection();
  std::vector<char> message(unit + 1, 'w');
  char answer;
  for (auto _ : state)
    if (!move_all(socket, message.data(), message.size(), true) || !move_all(socket, &answer, 1, false)) state.SkipWithError("the server has gone");
}
void write_agent(benchmark::State& state) {
  target::Object& object = object_by_agent();
  std::vector<char> message(unit, 'w');
  const iovec one{message.data(), message.size()};
  uint64_t count = 0;
  for (auto _ : state)
    if (!object.write(count++ % units_in_file * unit, {&one, 1}).ok()) state.SkipWithError("the agent has gone");
}
void read_plain(benchmark::State& state) {
  const int socket = plain_connection();
  std::vector<char> buffer(unit, 'w');
  char what = 'r';
  for (auto _ : state)
    if (!move_all(socket, &what, 1, true) || !move_all(socket, buffer.data(), unit, false)) state.SkipWithError("the server has gone");
}
void read_agent(benchmark::State& state) {
  target::Object& object = object_by_agent();
  std::vector<char> buffer(unit);
  const iovec one{buffer.data(), buffer.size()};
  uint64_t count = 0;
  for (auto _ : state)
    if (!object.read(count++ % units_in_file * unit, {&one, 1}).ok()) state.SkipWithError("the agent has gone");
}
void small_plain(benchmark::State& state) {
  const int socket = plain_connection();
  char what = 'p';
  for (auto _ : state)
    if (!move_all(socket, &what, 1, true) || !move_all(socket, &what, 1, false)) state.SkipWithError("the server has gone");
}
void small_agent(benchmark::State& state) {
  target::Object& object = object_by_agent();
  for (auto _ : state)
    if (!object.size().ok()) state.SkipWithError("the agent has gone");
}
BENCHMARK(write_plain)->UseRealTime();
BENCHMARK(write_agent)->UseRealTime();
BENCHMARK(read_plain)->UseRealTime();
BENCHMARK(read_agent)->UseRealTime();
BENCHMARK(small_plain)->UseRealTime();
BENCHMARK(small_agent)->UseRealTime();

}  // namespace

BENCHMARK_MAIN();
