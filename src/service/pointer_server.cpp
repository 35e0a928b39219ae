#include "service/pointer_server.hpp"

#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <unordered_map>

#include "service/pointer_protocol.hpp"
#include "transport/server.hpp"

namespace holdfast::service {

namespace {

using Pointers = std::unordered_map<uint64_t, int64_t>;  // by file

int64_t operate(Pointers& pointers, const Request& request) {
  if (request.op == Op::forget) return pointers.erase(request.file), 0;
  int64_t& pointer = pointers[request.file];
  const int64_t before = pointer;
  if (request.op == Op::fetch_add) pointer += request.operand;
  if (request.op == Op::store) pointer = request.operand;
  return before;
}

class Questions final : public transport::Conversation {
 public:
  explicit Questions(Pointers& pointers) : pointers_(pointers) {}
  std::optional<size_t> take(ByteView came, Bytes& out) override {
    size_t used = 0;
    for (; came.size() - used >= sizeof(Request); used += sizeof(Request)) {
      Request request;
      std::memcpy(&request, came.data() + used, sizeof request);
      const Answer answer{operate(pointers_, request), request.number, 0};
      const auto* at = reinterpret_cast<const std::byte*>(&answer);
      out.insert(out.end(), at, at + sizeof answer);
    }
    return used;
  }

 private:
  Pointers& pointers_;
};

// False: who started us is gone, or wants no more.
bool obey(int control, transport::Server& server) {
  Command command;
  const ssize_t got = recv(control, static_cast<void*>(&command), sizeof command, MSG_WAITALL);
  if (got < 0 && errno == EINTR) return true;
  if (got != sizeof command) return false;
  server.hush();
  if (command.what == Command::hush) return true;
  std::string endpoints = server.listen(command.reach, pointer_agreement(command.secret));
  if (endpoints.size() >= kEndpointsBytes) endpoints.resize(endpoints.rfind('\n', kEndpointsBytes - 2) + 1);
  endpoints.resize(kEndpointsBytes);
  return send(control, endpoints.data(), endpoints.size(), MSG_NOSIGNAL) == ssize_t(endpoints.size());
}

}  // namespace

void serve_pointers(int control) {
  const raw::Fd own(control);
  Pointers pointers;
  transport::Server server;
  server.watch(own.get(), [&] { return obey(own.get(), server); });
  server.welcome = [&](raw::Fd&, ByteView) { return std::make_unique<Questions>(pointers); };
  server.run();
}

}  // namespace holdfast::service
