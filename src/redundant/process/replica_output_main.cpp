// Beside a rank of a redundant job: moves what comes through its two pipes (descriptors 3 and 4) to the hub, and outlives the rank by what is
// still in them. Its orders come by standard input of the pipe at 5: the same text that the rank has got, and the rank.
#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <string>

#include "redundant/frame.hpp"
#include "redundant/orders.hpp"
#include "service/helper_process.hpp"
#include "transport/link.hpp"

namespace {

using namespace holdfast;
using namespace holdfast::redundant;

constexpr int pipes = service::first_helper_descriptor, orders_from = pipes + 2;

std::string all_of(int fd) {
  std::string text;
  std::array<char, 4096> buffer;
  for (ssize_t got; (got = ::read(fd, buffer.data(), buffer.size())) != 0;) {
    if (got < 0 && errno != EINTR) break;
    if (got > 0) text.append(buffer.data(), size_t(got));
  }
  return text;
}

// False: nothing more comes, or nobody takes it.
bool move(int stream, const TeamOrders& orders, uint32_t rank, uint64_t& position, transport::Link& hub) {
  static std::array<std::byte, 32 << 10> buffer;
  const ssize_t got = ::read(pipes + stream, buffer.data(), buffer.size());
  if (got < 0) return errno == EINTR;
  Frame frame;
  frame.word = Word::output, frame.team = uint16_t(orders.team), frame.rank = rank;
  frame.subject = uint64_t(stream), frame.number = position;
  frame.payload.assign(buffer.begin(), buffer.begin() + got);
  position += uint64_t(got);
  Bytes bytes = encode(frame);
  const iovec whole{bytes.data(), bytes.size()};
  return hub.send({&whole, 1}).ok() && got > 0;
}

}  // namespace

int main(int count, char** arguments) {
  holdfast::service::hold_standard_numbers();
  const std::string text = count == 2 ? all_of(orders_from) : "";
  const auto orders = parse_orders(text);
  if (!orders) {
    std::fputs("replica-output: is started by Holdfast's library, not by hand\n", stderr);
    return 2;
  }
  holdfast::service::live_apart();
  ::close(orders_from);
  transport::Link hub;
  if (!hub.connect(orders->hub, agreement(orders->secret), orders->deadline_ms).ok()) return 1;
  hub.wait_up_to(uint64_t(24) * 3600 * 1000);  // a terminal that is held back holds back the job's output too
  const auto rank = uint32_t(std::atoi(arguments[1]));
  uint64_t positions[2] = {};
  pollfd both[2] = {{pipes, POLLIN, 0}, {pipes + 1, POLLIN, 0}};
  while (both[0].fd >= 0 || both[1].fd >= 0) {
    if (::poll(both, 2, -1) < 0 && errno != EINTR) return 1;
    for (int i = 0; i < 2; ++i)
      if (both[i].fd >= 0 && both[i].revents && !move(i, *orders, rank, positions[i], hub)) both[i].fd = -1;
  }
  return 0;
}
