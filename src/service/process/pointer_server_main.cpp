// The pointer server's process. Descriptor 3 is its control socket; it has no arguments and reads no environment.
#include <sys/socket.h>

#include <cstdio>

#include "service/helper_process.hpp"
#include "service/pointer_server.hpp"

int main() {
  holdfast::service::hold_standard_numbers();
  constexpr int kControl = holdfast::service::first_helper_descriptor;
  int kind = 0;
  socklen_t bytes = sizeof kind;
  if (getsockopt(kControl, SOL_SOCKET, SO_TYPE, &kind, &bytes) != 0) {
    std::fputs("pointer-server: is started by Holdfast's library, not by hand\n", stderr);
    return 2;
  }
  holdfast::service::live_apart();
  holdfast::service::serve_pointers(kControl);
  return 0;
}
