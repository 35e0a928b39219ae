// The pointer server's process. Descriptor 3 is its control socket; it has no arguments and reads no environment.
#include <sys/socket.h>
#include <unistd.h>

#include <cstdio>

#include "service/pointer_server.hpp"

int main() {
  constexpr int kControl = 3;
  int kind = 0;
  socklen_t bytes = sizeof kind;
  if (getsockopt(kControl, SOL_SOCKET, SO_TYPE, &kind, &bytes) != 0) {
    std::fputs("pointer-server: is started by Holdfast's library, not by hand\n", stderr);
    return 2;
  }
  const pid_t child = fork();  // who started us must not have to wait for us
  if (child != 0) _exit(child < 0);
  holdfast::service::serve_pointers(kControl);
  return 0;
}
