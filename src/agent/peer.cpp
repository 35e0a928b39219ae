#include "agent/peer.hpp"

#include <memory>
#include <utility>

#include <fmt/format.h>

#include "base/node_path.hpp"
#include "target/agent_link.hpp"
#include "target/agent_registry.hpp"

namespace holdfast::agent {

using target::AgentOp;

namespace {

// Who has asked for the sum waits no longer for it than about that, and gets it otherwise then.
constexpr uint64_t connect_ms = 2000, answer_ms = 10000;

// A session that breaks is not gone on with: nothing is changed in it.
class PeerLine final : public Peer {
 public:
  Status connect(const std::string& registry, const NodePath& where) {
    const auto secret = target::read_secret(registry);
    if (!secret.ok()) return secret.status();
    const auto note = target::read_note(registry, where.node, where.path);
    if (!note.ok()) return note.status();
    auto line = target::line_to(note->endpoints, target::agent_agreement(*secret, note->id), connect_ms, answer_ms)();
    if (!line.ok()) return line.status();
    line_ = std::move(*line);
    target::SessionId id;
    if (!transport::draw(id)) return Status(Kind::io, "the kernel gives no random numbers");
    HF_TRY(target::send_begin(*line_, {&id, 1}, false));
    target::AgentRequest attach;
    attach.op = uint16_t(AgentOp::attach), attach.flags = 0600;
    target::AgentAnswer answer;
    HF_TRY(ask(attach, where.path, {}, answer));
    Bytes machine(answer.bulk_bytes);
    return receive(machine);
  }
  Status begin(std::span<const target::SumTerm> terms, uint64_t bytes) override {
    target::AgentRequest request;
    request.op = uint16_t(AgentOp::sum), request.length = bytes;
    target::AgentAnswer answer;
    HF_TRY(ask(request, "", target::encode_terms(terms), answer));
    return answer.bulk_bytes == bytes ? Status() : target::senseless_answer();
  }
  Status receive(ByteSpan piece) override {
    const iovec into{piece.data(), piece.size()};
    return line_->receive({&into, 1});
  }

 private:
  // The answer's bytes are to be received next; its sentence says why, where there are none.
  Status ask(target::AgentRequest& request, const std::string& name, ByteView bulk, target::AgentAnswer& answer) {
    request.number = ++number_;
    const iovec from{const_cast<std::byte*>(bulk.data()), bulk.size()};
    HF_TRY(target::send_request(*line_, request, name, {&from, 1}));
    HF_TRY(target::receive_header(*line_, number_, answer));
    std::string sentence(answer.sentence_bytes, ' ');
    HF_TRY(receive(std::as_writable_bytes(std::span(sentence))));
    return status_of(answer, std::move(sentence));
  }

  std::unique_ptr<target::AgentLine> line_;
  uint32_t number_ = 0;
};

}  // namespace

OpenPeer peers_of(const std::string& registry) {
  return [registry](const std::string& address) -> Result<std::unique_ptr<Peer>> {
    auto peer = std::make_unique<PeerLine>();
    if (Status status = peer->connect(registry, parse_node_path(address)); !status.ok())
      return Status(status.kind(), fmt::format("{}: {}", address, status.sentence()), status.sys_errno());
    return std::unique_ptr<Peer>(std::move(peer));
  };
}

}  // namespace holdfast::agent
