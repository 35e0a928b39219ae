// The process of a node's agent. Descriptor 3 is the socket of who starts it, with its orders; it has no arguments and reads no environment.
#include <sys/socket.h>
#include <unistd.h>

#include <cstdio>
#include <string>

#include "agent/keep_serving.hpp"
#include "service/helper_process.hpp"

int main() {
  holdfast::service::hold_standard_numbers();
  constexpr int control = holdfast::service::first_helper_descriptor;
  int kind = 0;
  socklen_t bytes = sizeof kind;
  if (getsockopt(control, SOL_SOCKET, SO_TYPE, &kind, &bytes) != 0) {
    std::fputs("agent: is started by holdfast, not by hand; see: holdfast agents start --help\n", stderr);
    return 2;
  }
  holdfast::service::live_apart();
  std::string text(1 << 20, '\0');
  const ssize_t got = recv(control, text.data(), text.size(), MSG_WAITALL);
  text.resize(got > 0 ? size_t(got) : 0);
  const auto orders = holdfast::agent::decode_orders(text);
  if (!orders.ok()) return 2;
  if (orders->restart) holdfast::agent::keep_serving(*orders, control);
  else (void)holdfast::agent::serve_agent(*orders, control);
  _exit(0);  // clients' threads are left where they are
}
