// How a connection begins: both sides prove that they know one secret, by challenge. The secret itself is never sent, and what was overheard
// of one connection opens no other. Pure: bytes in, bytes out; no sockets, no clock.
//
//   client  Hello    what it wants to speak, and a number that it has just drawn
//   server  Reply    the same of the server, and its proof
//   client  Closing  its own proof
//   server  welcome  8 bytes; what comes next is the protocol's
//
// A proof is the keyed BLAKE2b of the side's name, the protocol, its version, the identity of the server that is meant, and both numbers
// (libsodium's crypto_generichash). Integers are little-endian. docs/protocol.md.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/bytes.hpp"
#include "base/status.hpp"

namespace holdfast::transport {

using Secret = std::array<std::byte, 32>;
using Identity = std::array<std::byte, 16>;  // of a server; zeros: whoever knows the secret
using Nonce = std::array<std::byte, 32>;
using Proof = std::array<std::byte, 32>;

// From the kernel. False where it gives none.
bool draw(std::span<std::byte> random);

enum class Protocol : uint32_t { pointers = 1, agent = 2, replicas = 3 };

// What both sides have to agree on.
struct Agreement {
  Protocol protocol = Protocol::pointers;
  uint32_t version = 1;
  Secret secret{};
  Identity server{};
};

struct Hello {
  uint64_t magic = 0x3174656572676668;  // "hfgreet1"
  uint32_t protocol = 0, version = 0;
  Nonce nonce{};
};
struct Reply {
  uint64_t magic = Hello().magic;
  uint32_t protocol = 0, version = 0;
  Nonce nonce{};
  Proof proof{};
};
struct Closing {
  Proof proof{};
};
inline constexpr uint64_t welcome_word = 0x656d6f636c657768;

// The client's side. Each step is made once, in this order.
class ClientGreeting {
 public:
  explicit ClientGreeting(const Agreement& agreement, const Nonce& nonce) : agreement_(agreement), nonce_(nonce) {}
  Hello hello() const;
  // Kind::version: it speaks another one. Kind::access: it does not know the secret, or is another server than the one that is meant.
  Result<Closing> answer(const Reply& reply) const;

 private:
  const Agreement agreement_;
  const Nonce nonce_;
};

// The server's side, for one connection.
class ServerGreeting {
 public:
  explicit ServerGreeting(const Agreement& agreement, const Nonce& nonce) : agreement_(agreement), nonce_(nonce) {}
  // Nothing: what came is no greeting, and is hung up on. To a client of another protocol or version the reply says so and proves nothing.
  std::optional<Reply> answer(const Hello& hello);
  // Whether the client may go on.
  bool accepts(const Closing& closing) const;

 private:
  const Agreement agreement_;
  const Nonce nonce_;
  std::optional<Nonce> theirs_;
};

}  // namespace holdfast::transport
