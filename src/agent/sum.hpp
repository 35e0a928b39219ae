// A sum that several nodes make together (AgentOp::sum), as one of them makes it: a piece at a time, its own part added to what the next one's agent
// answers. Pure but for its peer.
#pragma once
#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "target/target.hpp"

namespace holdfast::agent {

// Another node's agent, asked for a client's sake. One sum at a time.
class Peer {
 public:
  virtual ~Peer() = default;
  // The sum of these terms, of which the first is that agent's own: whether it can be had. Its bytes are to be received then, all of them.
  virtual Status begin(std::span<const target::SumTerm> terms, uint64_t bytes) = 0;
  virtual Status receive(ByteSpan piece) = 0;
};
// The agent that serves this address.
using OpenPeer = std::function<Result<std::unique_ptr<Peer>>(const std::string& address)>;

// The peer of a session between two sums: the next one mostly goes on to the same.
class IdlePeer {
 public:
  void keep(const std::string& address, std::unique_ptr<Peer> peer);
  // Null where there is none of that address.
  std::unique_ptr<Peer> take(const std::string& address);

 private:
  std::mutex mutex_;  // a connection that was fenced may still be sending the last sum
  std::string address_;
  std::unique_ptr<Peer> peer_;
};

class Sum {
 public:
  // Kind::unsupported where others are to be asked and cannot be.
  static Result<std::shared_ptr<Sum>> begin(std::shared_ptr<target::Object> own, std::span<const target::SumTerm> terms, uint64_t bytes,
                                            const OpenPeer& open, std::shared_ptr<IdlePeer> idle);
  uint64_t bytes() const { return bytes_; }
  // The next bytes of it, in turn.
  Status next(ByteSpan piece);

 private:
  Sum(std::shared_ptr<target::Object> own, target::SumTerm term, uint64_t bytes) : own_(std::move(own)), term_(std::move(term)), bytes_(bytes) {}
  Status begin_with_peer(std::span<const target::SumTerm> rest, const OpenPeer& open);

  const std::shared_ptr<target::Object> own_;
  const target::SumTerm term_;
  const uint64_t bytes_;
  uint64_t done_ = 0;
  std::string peer_address_;
  std::unique_ptr<Peer> peer_;  // null: there is no other term
  std::shared_ptr<IdlePeer> idle_;
  Bytes part_;
};

}  // namespace holdfast::agent
