#include "redundant/membership/control.hpp"

#include <sys/socket.h>

#include <cerrno>
#include <utility>

namespace holdfast::redundant {

namespace {

// Up to where the other end has gone.
void send_all(int socket, const Frame& frame) {
  const Bytes bytes = encode(frame);
  for (ByteView rest(bytes); !rest.empty();) {
    const ssize_t sent = ::send(socket, rest.data(), rest.size(), MSG_NOSIGNAL);
    if (sent > 0) rest = rest.subspan(size_t(sent));
    else if (errno != EINTR) return;
  }
}

}  // namespace

void Control::tell(const Frame& frame) {
  sender_->give([this, frame] { send_all(descriptor(), frame); });
}

void Control::show(std::string state) {
  std::unique_lock lock(mutex_);
  if (std::exchange(state_, std::move(state))) return;
  lock.unlock();
  sender_->give([this] {
    Frame frame;
    frame.word = Word::state;
    std::unique_lock waits(mutex_);
    frame.payload = bytes_of(*std::exchange(state_, std::nullopt));
    waits.unlock();
    send_all(descriptor(), frame);
  });
}

}  // namespace holdfast::redundant
