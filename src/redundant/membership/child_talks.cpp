#include "redundant/membership/child_talks.hpp"

#include <poll.h>
#include <signal.h>

#include <cstring>

#include "redundant/child_link.hpp"

namespace holdfast::redundant {

void ChildTalks::came(uint64_t talk, int socket, const Frame& frame, int64_t now_ms) {
  One& one = talks_[talk];
  if (one.socket < 0) {
    ucred peer{};
    socklen_t bytes = sizeof peer;
    if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) == 0 && peer.pid > 0)
      one.handle = raw::Fd(int(syscall(SYS_pidfd_open, peer.pid, 0)));
    one.socket = socket, one.team = frame.team;
  }
  ChildAppend append;
  int64_t taken = 0;
  switch (OfChildAppend(frame.number)) {
    case OfChildAppend::asks:
      append.process = talk;
      if (parse_asked(frame, append)) answer(appends_.asks(append, now_ms));
      break;
    case OfChildAppend::wrote:
      if (frame.payload.size() != sizeof taken) break;
      std::memcpy(&taken, frame.payload.data(), sizeof taken);
      answer(appends_.wrote(talk, frame.subject, taken, now_ms));
      break;
  }
}

void ChildTalks::gone(uint64_t talk, int64_t now_ms) {
  if (talks_.erase(talk) > 0) answer(appends_.gone(talk, now_ms));
}

void ChildTalks::answer(const ChildAppends::Answers& answers) {
  for (const std::string& line : appends_.differences()) say_(line);
  for (const AppendAnswer& one : answers)
    if (const auto talk = talks_.find(one.process); talk != talks_.end()) (void)send_frame(talk->second.socket, frame_of(one), MSG_DONTWAIT);
}

void ChildTalks::kill(int team) {
  constexpr int patience_ms = 2000;
  for (auto& [talk, one] : talks_) {
    if (one.team != team || !one.handle) continue;
    (void)syscall(SYS_pidfd_send_signal, one.handle.get(), SIGKILL, nullptr, 0);
    pollfd ended{one.handle.get(), POLLIN, 0};
    (void)::poll(&ended, 1, patience_ms);
  }
}

}  // namespace holdfast::redundant
