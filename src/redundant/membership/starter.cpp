#include "redundant/membership/starter.hpp"

#include <fcntl.h>
#include <sys/socket.h>

#include <algorithm>
#include <string_view>

#include <fmt/format.h>

#include "base/raw_syscalls.hpp"

namespace holdfast::redundant {

int process_behind(int socket) {
  ucred peer{};
  socklen_t bytes = sizeof peer;
  return getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) == 0 ? peer.pid : 0;
}

bool is_stopped(int process) {
  char text[512];
  const raw::Fd file(raw::openat(AT_FDCWD, fmt::format("/proc/{}/stat", process).c_str(), O_RDONLY | O_CLOEXEC, 0));
  const ssize_t got = file ? raw::read(file.get(), text, sizeof text) : 0;
  const std::string_view line(text, size_t(std::max<ssize_t>(got, 0)));
  const size_t name_ends = line.rfind(')');
  return name_ends != std::string_view::npos && line.substr(name_ends).starts_with(") T");
}

}  // namespace holdfast::redundant
