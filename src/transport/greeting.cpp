#include "transport/greeting.hpp"

#include <sodium.h>
#include <sys/random.h>

#include <bit>
#include <cerrno>
#include <cstring>

#include <fmt/format.h>

namespace holdfast::transport {

static_assert(std::endian::native == std::endian::little, "integers go over the network as they lie in memory");
static_assert(sizeof(Hello) == 48 && sizeof(Reply) == 80 && sizeof(Closing) == 32);

namespace {

enum class Side : uint8_t { client = 'c', server = 's' };

Proof prove(Side side, const Agreement& agreement, const Nonce& client, const Nonce& server) {
  static_assert(sizeof(Secret) >= crypto_generichash_KEYBYTES_MIN && sizeof(Secret) <= crypto_generichash_KEYBYTES_MAX);
  Bytes text;
  auto add = [&](const void* from, size_t bytes) {
    const auto* at = static_cast<const std::byte*>(from);
    text.insert(text.end(), at, at + bytes);
  };
  const uint32_t words[2] = {uint32_t(agreement.protocol), agreement.version};
  add(&side, sizeof side);
  add(words, sizeof words);
  add(agreement.server.data(), agreement.server.size());
  add(client.data(), client.size());
  add(server.data(), server.size());
  Proof proof;
  const auto* key = reinterpret_cast<const unsigned char*>(agreement.secret.data());
  crypto_generichash(reinterpret_cast<unsigned char*>(proof.data()), proof.size(), reinterpret_cast<const unsigned char*>(text.data()), text.size(),
                     key, agreement.secret.size());
  return proof;
}

// In a time that says nothing of where they differ.
bool same(const Proof& one, const Proof& other) { return sodium_memcmp(one.data(), other.data(), one.size()) == 0; }

bool speaks(const Agreement& agreement, uint32_t protocol, uint32_t version) {
  return protocol == uint32_t(agreement.protocol) && version == agreement.version;
}

}  // namespace

bool draw(std::span<std::byte> random) {
  for (size_t have = 0; have < random.size();) {
    const ssize_t got = getrandom(random.data() + have, random.size() - have, 0);
    if (got < 0 && errno != EINTR) return false;
    if (got > 0) have += size_t(got);
  }
  return true;
}

Hello ClientGreeting::hello() const {
  Hello hello;
  hello.protocol = uint32_t(agreement_.protocol), hello.version = agreement_.version;
  hello.nonce = nonce_;
  return hello;
}

Result<Closing> ClientGreeting::answer(const Reply& reply) const {
  if (reply.magic != Hello().magic) return Status(Kind::access, "something else than Holdfast answers there");
  if (!speaks(agreement_, reply.protocol, reply.version))
    return Status(Kind::version, fmt::format("it speaks version {} of protocol {}, and this process version {} of protocol {}", reply.version,
                                             reply.protocol, agreement_.version, uint32_t(agreement_.protocol)));
  if (!same(reply.proof, prove(Side::server, agreement_, nonce_, reply.nonce)))
    return Status(Kind::access, "it does not know this secret, or serves something else");
  return Closing{prove(Side::client, agreement_, nonce_, reply.nonce)};
}

std::optional<Reply> ServerGreeting::answer(const Hello& hello) {
  if (hello.magic != Hello().magic) return std::nullopt;
  Reply reply;
  reply.protocol = uint32_t(agreement_.protocol), reply.version = agreement_.version;
  reply.nonce = nonce_;
  if (!speaks(agreement_, hello.protocol, hello.version)) return reply;
  theirs_ = hello.nonce;
  reply.proof = prove(Side::server, agreement_, hello.nonce, nonce_);
  return reply;
}

bool ServerGreeting::accepts(const Closing& closing) const {
  return theirs_ && same(closing.proof, prove(Side::client, agreement_, *theirs_, nonce_));
}

}  // namespace holdfast::transport
