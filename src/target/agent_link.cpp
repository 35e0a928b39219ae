#include "target/agent_link.hpp"

#include <atomic>
#include <chrono>
#include <thread>

#include "transport/link.hpp"

namespace holdfast::target {

namespace {

// So long an agent keeps a session with locks, less what a connection takes.
constexpr auto patience = std::chrono::milliseconds(4000), between_tries = std::chrono::milliseconds(50);

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
  bool is_elsewhere() const { return transport::is_elsewhere(link_.descriptor()); }

 private:
  transport::Link link_;
};

}  // namespace

OpenLine line_to(const std::string& endpoints, const transport::Agreement& agreement, uint64_t connect_ms, uint64_t answer_ms) {
  const auto was_elsewhere = std::make_shared<std::atomic<bool>>(false);
  return [=]() -> Result<std::unique_ptr<AgentLine>> {
    for (const auto end = std::chrono::steady_clock::now() + patience;; std::this_thread::sleep_for(between_tries)) {
      auto line = std::make_unique<LinkLine>();
      Status status = line->connect(endpoints, agreement, connect_ms, answer_ms);
      if (status.ok()) {
        *was_elsewhere = line->is_elsewhere();
        return std::unique_ptr<AgentLine>(std::move(line));
      }
      if (!*was_elsewhere || status.kind() != Kind::io || std::chrono::steady_clock::now() >= end) return status;
    }
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
