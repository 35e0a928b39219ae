#include "redundant/twins/way.hpp"

#include <sys/socket.h>

#include <array>
#include <cerrno>

namespace holdfast::redundant {

namespace {

// How much of it has gone; all of it where the other end is not there any more, which is the hub's to declare.
size_t send_some(int fd, ByteView bytes, int flags) {
  size_t sent = 0;
  while (sent < bytes.size()) {
    const ssize_t done = ::send(fd, bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL | flags);
    if (done < 0 && errno == EINTR) continue;
    if (done < 0 && errno == EAGAIN && !(flags & MSG_DONTWAIT)) continue;
    if (done < 0 && errno == EAGAIN) return sent;
    if (done <= 0) return bytes.size();
    sent += size_t(done);
  }
  return sent;
}

}  // namespace

bool Way::flush(std::mutex& lock, bool waits) {
  std::unique_lock one(sending, std::defer_lock);
  if (waits) one.lock();
  else if (!one.try_lock()) return false;
  for (;;) {
    int fd = -1;
    {
      std::lock_guard held(lock);
      if (!socket || (part.empty() && waiting.empty())) return true;
      if (part.empty()) {
        part = std::move(waiting.front());
        part_sent = 0;
        waiting.pop_front();
      }
      fd = socket.get();
    }
    part_sent += send_some(fd, ByteView(part).subspan(part_sent), waits ? 0 : MSG_DONTWAIT);
    if (part_sent < part.size()) return false;
    part = Bytes();
  }
}

std::optional<Frame> first_frame(int socket, ByteView early, uint64_t patience_ms) {
  FrameReader first(Way::most_payload);
  std::optional<Frame> frame;
  if (!first.add(early)) return std::nullopt;
  raw::fcntl(socket, F_SETFL, raw::fcntl(socket, F_GETFL) & ~O_NONBLOCK);
  const timeval patience{time_t(patience_ms / 1000) + 1, 0};
  setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  std::array<std::byte, 64> buffer;
  while (!(frame = first.next())) {  // it may come in pieces
    const ssize_t got = recv(socket, buffer.data(), 1, 0);
    if (got < 0 && errno == EINTR) continue;  // stopped and continued: a wait with a limit does not go on by itself
    if (got <= 0 || !first.add(ByteView(buffer.data(), size_t(got)))) return std::nullopt;
  }
  return frame;
}

}  // namespace holdfast::redundant
