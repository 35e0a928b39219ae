#include "sim/openers_agents.hpp"

#include <algorithm>
#include <cstring>

#include "agent/session.hpp"
#include "target/agent.hpp"

namespace holdfast::sim {

class SimulatedChannel final : public target::AgentChannel {
 public:
  SimulatedChannel(Agents& agents, int place, std::shared_ptr<const agent::Served> served)
      : agents_(agents), place_(place), session_(std::make_unique<agent::Session>(std::move(served))) {}

  Status ask(target::AgentRequest request, const std::string& name, std::span<const iovec> bulk, target::AgentAnswer& answer, std::string& sentence,
             std::span<const iovec> into) override {
    if (!session_) return Status(Kind::io, "the connection has gone", ECONNRESET);
    Bytes sent;
    for (const iovec& one : bulk) {
      const auto* from = static_cast<const std::byte*>(one.iov_base);
      sent.insert(sent.end(), from, from + one.iov_len);
    }
    request.number = ++number_;
    request.name_bytes = uint32_t(name.size()), request.bulk_bytes = uint32_t(sent.size());
    if (!sensible(request)) std::abort();  // the client's own fault
    agent::Session::Reply reply = session_->answer(request, name, sent);
    if (const auto losing = agents_.losing_.find(place_); losing != agents_.losing_.end() && --losing->second <= 0) {
      agents_.losing_.erase(losing);
      hang_up();
      return Status(Kind::io, "the connection has gone", ECONNRESET);
    }
    if (!sensible(reply.answer)) std::abort();
    answer = reply.answer, sentence = std::move(reply.sentence);
    size_t done = 0;
    for (const iovec& one : into) {
      const size_t bytes = std::min(one.iov_len, reply.bulk.size() - done);
      if (bytes) std::memcpy(one.iov_base, reply.bulk.data() + done, bytes);
      done += bytes;
    }
    return done == reply.bulk.size() ? Status() : Status(Kind::io, "the answer is too long", EPROTO);
  }
  void post(target::AgentRequest request, const std::string& name) override {
    target::AgentAnswer answer;
    std::string sentence;
    (void)ask(request, name, {}, answer, sentence, {});
  }
  bool broken() const override { return session_ == nullptr; }
  void hang_up() { session_.reset(); }

 private:
  Agents& agents_;
  const int place_;
  std::unique_ptr<agent::Session> session_;
  uint32_t number_ = 0;
};

Result<std::shared_ptr<target::Target>> Agents::attach(std::shared_ptr<target::Target> storage, int place) {
  const std::string label = storage->describe();
  auto served = std::make_shared<const agent::Served>(agent::Served{{label, [storage](uint32_t) { return storage; }}});
  auto channel = std::make_shared<SimulatedChannel>(*this, place, std::move(served));
  auto& known = channels_[place];
  std::erase_if(known, [](const auto& one) { return one.expired(); });
  known.push_back(channel);
  return target::attach_to_agent(std::move(channel), label, label, 0600);
}

void Agents::restart(int place) {
  for (const auto& channel : std::exchange(channels_[place], {}))
    if (const auto living = channel.lock()) living->hang_up();
}

}  // namespace holdfast::sim
