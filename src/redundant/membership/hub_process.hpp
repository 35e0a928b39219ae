// A process of the job as the hub knows it, and what is said to it.
#pragma once
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/raw_syscalls.hpp"
#include "redundant/frame.hpp"

namespace holdfast::redundant {

inline bool send_frame(int fd, const Frame& frame, int flags) {
  const Bytes bytes = encode(frame);
  return ::send(fd, bytes.data(), bytes.size(), flags | MSG_NOSIGNAL) == ssize_t(bytes.size());
}

inline Frame about_team(Word word, int team) {
  Frame frame;
  frame.word = word, frame.team = uint16_t(team);
  return frame;
}

// The other side has closed it. A connection that was reset, or has gone dead on its way, does not say that.
inline bool was_closed(int socket) {
  tcp_info info{};
  socklen_t bytes = sizeof info;
  return getsockopt(socket, IPPROTO_TCP, TCP_INFO, &info, &bytes) == 0 && info.tcpi_state == TCP_CLOSE_WAIT;
}

// A process of the job, as its connection shows it.
struct Process {
  int team = 0, rank = 0, pid = 0;
  std::string host, endpoints;
  raw::Fd socket;                // a second descriptor of its connection
  raw::Fd handle;                // of the process, where it is on this node
  std::weak_ptr<raw::Fd> guard;  // the connection of who moves its output, and can end it where it hangs
  int64_t heard_ms = 0;
  bool connected = true;
  bool is_far = false;    // on another node: what it hears of the hub lets it live until the deadline
  bool has_died = false;  // as is known of one that is far
  uint64_t behind_ms = 0;
  enum : uint8_t { none, open, ended } output = none;  // who moves its output
  std::optional<std::string> becomes = {};             // another program, which joins as the same rank
  int image = 0;                                       // how many it was before
};

// Nobody ends it any more. A job that is long may lose many.
inline void let_go_of_ended(Process& process) {
  pollfd ended{process.handle.get(), POLLIN, 0};
  if (!process.connected && process.handle && ::poll(&ended, 1, 0) == 1) process.handle.reset();
}

inline void answer_call(const Process& process, const Frame& frame, int64_t told) {
  Frame answer;
  answer.word = frame.word, answer.subject = frame.subject, answer.number = frame.number;
  const auto* const at = reinterpret_cast<const std::byte*>(&told);
  answer.payload.assign(at, at + sizeof told);
  (void)send_frame(process.socket.get(), answer, MSG_DONTWAIT);
}

}  // namespace holdfast::redundant
