// The process beside a rank that gathers its output (service/output_gatherer.hpp). Its argument is the rank; its descriptors are the
// file, the two pipes, and what standard output and error were before. It ends when nobody writes to the pipes any more.
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <string>

#include "service/helper_process.hpp"
#include "service/line_writer.hpp"

namespace {

constexpr int first = holdfast::service::first_helper_descriptor;
constexpr int file = first, out = first + 1, err = first + 2, out_before = first + 3, err_before = first + 4;

// Whether more may come.
bool move(int from, holdfast::service::LineWriter& to) {
  static char buffer[64 << 10];
  const ssize_t got = ::read(from, buffer, sizeof buffer);
  if (got < 0) return errno == EINTR;
  if (got == 0) to.end();
  else to.take({buffer, size_t(got)});
  return got > 0;
}

void serve(const std::string& rank) {
  holdfast::service::LineWriter lines[2] = {{rank + " out", file, out_before}, {rank + " err", file, err_before}};
  pollfd pipes[2] = {{out, POLLIN, 0}, {err, POLLIN, 0}};
  while (pipes[0].fd >= 0 || pipes[1].fd >= 0) {
    if (::poll(pipes, 2, -1) < 0 && errno != EINTR) return;
    for (int i = 0; i < 2; ++i)
      if (pipes[i].fd >= 0 && pipes[i].revents && !move(pipes[i].fd, lines[i])) pipes[i].fd = -1;
  }
}

}  // namespace

int main(int count, char** arguments) {
  holdfast::service::hold_standard_numbers();
  struct stat pipe {};
  if (count != 2 || ::fstat(out, &pipe) != 0 || !S_ISFIFO(pipe.st_mode)) {
    std::fputs("gather-output: is started by Holdfast's library, not by hand\n", stderr);
    return 2;
  }
  holdfast::service::live_apart();
  serve(arguments[1]);
  return 0;
}
