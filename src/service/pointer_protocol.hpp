// What goes over the sockets after the greeting (transport/greeting.hpp), in the byte order of the machine: a job's ranks are of one kind.
#pragma once
#include <cstddef>
#include <cstdint>

#include "transport/endpoint.hpp"
#include "transport/greeting.hpp"

namespace holdfast::service {

inline transport::Agreement pointer_agreement(const transport::Secret& secret) { return {transport::Protocol::pointers, 1, secret, {}}; }

enum class Op : uint32_t { fetch_add, load, store, forget };

struct Request {
  uint64_t file = 0;
  int64_t operand = 0;
  Op op = Op::load;
  uint32_t number = 0;  // comes back with the answer
};

struct Answer {
  int64_t before = 0;  // what the pointer was
  uint32_t number = 0;
  uint32_t unused = 0;
};

// On the control socket, from who started the server.
struct Command {
  enum : uint32_t { listen, hush } what = hush;
  transport::Reach reach = transport::Reach::node;
  transport::Secret secret{};  // with the first command
};
// The answer to a listen command: the endpoints' lines.
inline constexpr size_t kEndpointsBytes = 4096;

}  // namespace holdfast::service
