#include "agent/peer.hpp"

#include <cerrno>

#include <fmt/format.h>

#include "base/node_path.hpp"
#include "target/agent_protocol.hpp"
#include "target/agent_registry.hpp"
#include "transport/link.hpp"

namespace holdfast::agent {

using target::AgentOp;

namespace {

// Who has asked for the sum waits no longer for it than about that, and gets it otherwise then.
constexpr uint64_t connect_ms = 2000, answer_ms = 10000;

// A session that breaks is not gone on with: nothing is changed in it.
class PeerLink final : public Peer {
 public:
  Status connect(const std::string& registry, const NodePath& where) {
    const auto secret = target::read_secret(registry);
    if (!secret.ok()) return secret.status();
    const auto note = target::read_note(registry, where.node);
    if (!note.ok()) return note.status();
    HF_TRY(link_.connect(note->endpoints, target::agent_agreement(*secret, note->id), connect_ms));
    link_.wait_up_to(answer_ms);
    target::SessionId id;
    if (!transport::draw(id)) return Status(Kind::io, "the kernel gives no random numbers");
    target::AgentRequest begin;
    begin.op = uint16_t(AgentOp::begin), begin.quiet = 1;
    HF_TRY(send(begin, "", std::as_bytes(std::span(id))));
    target::AgentRequest attach;
    attach.op = uint16_t(AgentOp::attach), attach.number = ++number_, attach.flags = 0600;
    HF_TRY(send(attach, where.path, {}));
    target::AgentAnswer answer;
    HF_TRY(receive_head(answer));
    Bytes machine(answer.bulk_bytes);
    return receive(machine);
  }
  Status begin(std::span<const target::SumTerm> terms, uint64_t bytes) override {
    target::AgentRequest request;
    request.op = uint16_t(AgentOp::sum), request.number = ++number_, request.length = bytes;
    HF_TRY(send(request, "", target::encode_terms(terms)));
    target::AgentAnswer answer;
    HF_TRY(receive_head(answer));
    return answer.bulk_bytes == bytes ? Status() : senseless();
  }
  Status receive(ByteSpan piece) override {
    const iovec into{piece.data(), piece.size()};
    return link_.receive({&into, 1});
  }

 private:
  static Status senseless() { return Status(Kind::io, "the agent's answer makes no sense", EPROTO); }
  Status send(target::AgentRequest& request, const std::string& name, ByteView bulk) {
    request.name_bytes = uint32_t(name.size()), request.bulk_bytes = uint32_t(bulk.size());
    const iovec out[] = {{&request, sizeof request},
                         {const_cast<char*>(name.data()), name.size()},
                         {const_cast<std::byte*>(bulk.data()), bulk.size()}};
    return link_.send(out);
  }
  // With its sentence, where that says why there is nothing else.
  Status receive_head(target::AgentAnswer& answer) {
    HF_TRY(receive(std::as_writable_bytes(std::span(&answer, 1))));
    if (answer.number != number_ || !sensible(answer)) return senseless();
    std::string sentence(answer.sentence_bytes, ' ');
    HF_TRY(receive(std::as_writable_bytes(std::span(sentence))));
    return status_of(answer, std::move(sentence));
  }

  transport::Link link_;
  uint32_t number_ = 0;
};

}  // namespace

OpenPeer peers_of(const std::string& registry) {
  return [registry](const std::string& address) -> Result<std::unique_ptr<Peer>> {
    auto peer = std::make_unique<PeerLink>();
    if (Status status = peer->connect(registry, parse_node_path(address)); !status.ok())
      return Status(status.kind(), fmt::format("{}: {}", address, status.sentence()), status.sys_errno());
    return std::unique_ptr<Peer>(std::move(peer));
  };
}

}  // namespace holdfast::agent
