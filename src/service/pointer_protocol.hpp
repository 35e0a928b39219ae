// What goes over the sockets, in the byte order of the machine: a job's ranks are of one kind.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>

namespace holdfast::service {

using Token = std::array<std::byte, 16>;

// The first of a connection. The server answers with kWelcome, or hangs up.
struct Hello {
  uint64_t magic = 0x31746e696f706668;  // "hfpoint1"
  Token token{};
};
inline constexpr uint64_t kWelcome = 0x656d6f636c657768;

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
  enum : uint32_t { listen_near, listen_far, listen_loopback, hush } what = hush;
  Token token{};  // with the first command
};
// The answer to a listen command: text, a line per address: "unix NAME", "tcp ADDRESS PORT".
inline constexpr size_t kEndpointsBytes = 4096;

}  // namespace holdfast::service
