#include "frontend/posix/presence.hpp"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cstring>

#include "base/coarse_clock.hpp"
#include "base/own_numbers.hpp"

namespace holdfast::frontend::posix {

namespace {

constexpr int places = 64;  // for writers of a file, and for readers; who finds none stays unseen

struct Name {
  sockaddr_un address{};
  socklen_t bytes = 0;
};

// In the abstract namespace: begins with a zero.
Name name_of(const std::string& file_id, bool writes, int place) {
  Name name;
  name.address.sun_family = AF_UNIX;
  const std::string text = fmt::format("holdfast-{}-{}-{}", writes ? "w" : "r", file_id, place);
  const size_t length = std::min(text.size(), sizeof name.address.sun_path - 1);
  std::memcpy(name.address.sun_path + 1, text.data(), length);
  name.bytes = socklen_t(offsetof(sockaddr_un, sun_path) + 1 + length);
  return name;
}

int take_place(int socket, const std::string& file_id, bool writes) {
  for (int i = 0; i < places; ++i) {
    const int place = (getpid() + i) % places;
    const Name name = name_of(file_id, writes, place);
    if (bind(socket, reinterpret_cast<const sockaddr*>(&name.address), name.bytes) == 0) return place;
  }
  return -1;
}

// True where somebody heard it.
bool greet(int socket, const std::string& file_id, bool writers, int but) {
  bool heard = false;
  for (int place = 0; place < places; ++place) {
    if (place == but) continue;
    const Name name = name_of(file_id, writers, place);
    const bool sent = sendto(socket, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL, reinterpret_cast<const sockaddr*>(&name.address), name.bytes) == 1;
    heard |= sent || errno == EAGAIN;  // its queue is full: it has been greeted often
  }
  return heard;
}

}  // namespace

Presence::Presence(const std::string& file_id, bool writes)
    : socket_(raw::out_of_the_way(raw::Fd(::socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)))) {
  if (!socket_) return;
  const int place = take_place(socket_.get(), file_id, writes);
  met_ = greet(socket_.get(), file_id, true, writes ? place : -1);
  if (writes) met_ |= greet(socket_.get(), file_id, false, -1);
}

bool Presence::met_another() {
  if (met_ || !socket_) return met_;
  const int64_t now = coarse_now_ns();
  if (now == asked_) return false;
  asked_ = now;
  char greeting;
  met_ = recv(socket_.get(), &greeting, 1, MSG_DONTWAIT) == 1;
  return met_;
}

}  // namespace holdfast::frontend::posix
