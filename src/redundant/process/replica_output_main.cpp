// Beside a rank of a redundant job: moves what comes through its two pipes (descriptors 3 and 4) to the hub. It outlives the rank by what is still
// in them. It says how far the rank had come when it died (progress.hpp, at 6). It ends the rank where the hub says so: the rank may hang, and the
// hub be on another node. Its orders come by standard input of the pipe at 5: the same text that the rank has got, and the rank.
// What comes behind these, the output and errors that the launcher has given the rank, it holds open as long as it lives.
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <span>
#include <string>
#include <utility>

#include "base/raw_syscalls.hpp"
#include "redundant/frame.hpp"
#include "redundant/orders.hpp"
#include "redundant/progress.hpp"
#include "service/helper_process.hpp"
#include "transport/endpoint.hpp"
#include "transport/link.hpp"

namespace {

using namespace holdfast;
using namespace holdfast::redundant;

constexpr int pipes = service::first_helper_descriptor, orders_from = pipes + 2, progress_from = pipes + 3;

std::string all_of(int fd) {
  std::string text;
  std::array<char, 4096> buffer;
  for (ssize_t got; (got = ::read(fd, buffer.data(), buffer.size())) != 0;) {
    if (got < 0 && errno != EINTR) break;
    if (got > 0) text.append(buffer.data(), size_t(got));
  }
  return text;
}

class Mover {
 public:
  Mover(const TeamOrders& orders, uint32_t rank, raw::Fd process, transport::Link& hub)
      : orders_(orders), rank_(rank), process_(std::move(process)), hub_(hub) {}
  void run();

 private:
  bool tell(Word word, int stream, uint64_t number, ByteView payload);
  bool move(int stream);
  bool hear();

  const TeamOrders& orders_;
  const uint32_t rank_;
  raw::Fd process_;  // the rank, until it has died
  transport::Link& hub_;
  FrameReader reader_{1 << 20};
  uint64_t positions_[2] = {};
  bool open_[2] = {true, true}, waits_[2] = {true, true};  // until the hub has taken what was sent
};

bool Mover::tell(Word word, int stream, uint64_t number, ByteView payload) {
  Frame frame;
  frame.word = word, frame.team = uint16_t(orders_.team), frame.rank = rank_;
  frame.subject = uint64_t(stream), frame.number = number, frame.epoch = orders_.joins != TeamOrders::from_the_beginning;
  frame.payload.assign(payload.begin(), payload.end());
  Bytes bytes = encode(frame);
  const iovec whole{bytes.data(), bytes.size()};
  return hub_.send({&whole, 1}).ok();
}

// False: nothing more comes, or nobody takes it.
bool Mover::move(int stream) {
  static std::array<std::byte, 32 << 10> buffer;
  const ssize_t got = ::read(pipes + stream, buffer.data(), buffer.size());
  if (got < 0) return errno == EINTR;
  if (got == 0) return false;
  waits_[stream] = true;
  const uint64_t position = positions_[stream];
  positions_[stream] += uint64_t(got);
  return tell(Word::output, stream, position, ByteView(buffer.data(), size_t(got)));
}

// False: there is no hub any more.
bool Mover::hear() {
  std::array<std::byte, 4096> buffer;
  const ssize_t got = recv(hub_.descriptor(), buffer.data(), buffer.size(), MSG_DONTWAIT);
  if (got < 0) return errno == EINTR || errno == EAGAIN;
  if (got == 0 || !reader_.add(ByteView(buffer.data(), size_t(got)))) return false;
  while (const auto frame = reader_.next()) {
    if (frame->word == Word::taken && frame->subject < 2) waits_[frame->subject] = false;
    if (frame->word == Word::end && process_) (void)syscall(SYS_pidfd_send_signal, process_.get(), SIGKILL, nullptr, 0);
  }
  return true;
}

void Mover::run() {
  for (int stream = 0; stream < 2; ++stream)
    if (!tell(Word::output, stream, 0, {})) return;  // so the hub knows whose output comes here, and may come
  while (open_[0] || open_[1] || process_) {
    const auto pipe = [&](int stream) { return pollfd{open_[stream] && !waits_[stream] ? pipes + stream : -1, POLLIN, 0}; };
    pollfd all[] = {pipe(0), pipe(1), {hub_.descriptor(), POLLIN, 0}, {process_.get(), POLLIN, 0}};
    if (::poll(all, 4, -1) < 0 && errno != EINTR) return;
    for (int stream = 0; stream < 2; ++stream)
      if (all[stream].revents && !move(stream)) open_[stream] = false;
    if (all[2].revents && !hear()) return;
    if (process_ && all[3].revents) {
      const std::optional<HowFar> far = Progress::read(progress_from);
      (void)tell(Word::died, 0, 0, far ? std::as_bytes(std::span(&*far, 1)) : ByteView());
      process_.reset();
    }
  }
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
  raw::Fd process(int(syscall(SYS_pidfd_open, ::getppid(), 0)));  // the rank has started this
  holdfast::service::live_apart();
  ::close(orders_from);
  transport::Link hub;
  if (!hub.connect(orders->hub, agreement(orders->secret), orders->deadline_ms).ok()) return 1;
  hub.wait_up_to(uint64_t(24) * 3600 * 1000);  // a terminal that is held back holds back the job's output too
  if (transport::is_far(hub.descriptor())) transport::notice_a_dead_peer(hub.descriptor());
  Mover(*orders, uint32_t(std::atoi(arguments[1])), std::move(process), hub).run();
  return 0;
}
