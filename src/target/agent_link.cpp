#include "target/agent_link.hpp"

#include "transport/link.hpp"

namespace holdfast::target {

namespace {

class LinkLine final : public AgentLine {
 public:
  Status connect(const std::string& endpoints, const transport::Agreement& agreement, uint64_t connect_ms, uint64_t answer_ms) {
    HF_TRY(link_.connect(endpoints, agreement, connect_ms));
    link_.wait_up_to(answer_ms);
    return {};
  }
  Status send(std::span<const iovec> from) override { return link_.send(from); }
  Status receive(std::span<const iovec> into) override { return link_.receive(into); }
  bool has_ended() const override { return link_.has_ended(); }
  void close_in_child() override { link_.close(); }

 private:
  transport::Link link_;
};

}  // namespace

OpenLine line_to(const std::string& endpoints, const transport::Agreement& agreement, uint64_t connect_ms, uint64_t answer_ms) {
  return [=]() -> Result<std::unique_ptr<AgentLine>> {
    auto line = std::make_unique<LinkLine>();
    HF_TRY(line->connect(endpoints, agreement, connect_ms, answer_ms));
    return std::unique_ptr<AgentLine>(std::move(line));
  };
}

Result<std::shared_ptr<SessionChannel>> begin_session(OpenLine open, std::vector<SessionId> instead) {
  SessionId id;
  if (!transport::draw(id)) return Status(Kind::io, "the kernel gives no random numbers");
  auto channel = std::make_shared<SessionChannel>(id, std::move(instead), std::move(open));
  HF_TRY(channel->begin());
  return channel;
}

}  // namespace holdfast::target
