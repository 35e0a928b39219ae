// The hub's process: descriptor 3 is the socket of the `holdfast run` that has started it, 4 and 5 where the ranks' output goes. With the argument
// `gather` it goes line by line to the file of --gather-output at descriptor 6, whose lock says that lines are still to come.
#include <sys/socket.h>
#include <unistd.h>

#include <cstdio>
#include <map>
#include <string>
#include <utility>

#include "redundant/membership/hub.hpp"
#include "service/helper_process.hpp"
#include "service/line_writer.hpp"

namespace {

constexpr int control = holdfast::service::first_helper_descriptor, out = control + 1, err = control + 2, gathered = control + 3;

// As the process beside each rank does it without replicas.
void gather(uint32_t rank, uint64_t stream, std::string_view text) {
  static std::map<std::pair<uint32_t, uint64_t>, holdfast::service::LineWriter> writers;
  if (text.empty()) {
    for (auto& [whose, writer] : writers) writer.end();
    return;
  }
  const bool is_output = stream == 0;
  auto [at, fresh] =
      writers.try_emplace({rank, stream}, "rank " + std::to_string(rank) + (is_output ? " out" : " err"), gathered, is_output ? out : err);
  at->second.take(text);
}

}  // namespace

int main(int count, char** words) {
  holdfast::service::hold_standard_numbers();
  int kind = 0;
  socklen_t bytes = sizeof kind;
  if (getsockopt(control, SOL_SOCKET, SO_TYPE, &kind, &bytes) != 0) {
    std::fputs("replica-hub: is started by holdfast run, not by hand\n", stderr);
    return 2;
  }
  holdfast::service::live_apart();
  holdfast::service::use_all_descriptors();  // several for each rank
  holdfast::redundant::serve_hub(control, out, err, count > 1 && std::string(words[1]) == "gather" ? gather : holdfast::redundant::Deliver());
  _exit(0);
}
