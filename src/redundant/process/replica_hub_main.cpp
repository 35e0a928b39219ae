// The hub's process: descriptor 3 is the socket of the `holdfast run` that has started it, 4 and 5 where the ranks' output goes.
#include <sys/socket.h>
#include <unistd.h>

#include <cstdio>

#include "redundant/membership/hub.hpp"
#include "service/helper_process.hpp"

int main() {
  constexpr int control = holdfast::service::first_helper_descriptor, out = control + 1, err = control + 2;
  int kind = 0;
  socklen_t bytes = sizeof kind;
  if (getsockopt(control, SOL_SOCKET, SO_TYPE, &kind, &bytes) != 0) {
    std::fputs("replica-hub: is started by holdfast run, not by hand\n", stderr);
    return 2;
  }
  holdfast::service::live_apart();
  holdfast::redundant::serve_hub(control, out, err);
  _exit(0);
}
