// The way to an agent over a socket.
#pragma once
#include "target/agent_session.hpp"
#include "transport/greeting.hpp"

namespace holdfast::target {

// Each connection is made within about `connect_ms`. A call that is never answered is given up after ten minutes, or `answer_ms`: whoever must not wait
// that long has a lane. Where the agent was spoken with on another node, a network that is gone for some seconds is waited for: it keeps the session.
OpenLine line_to(const std::string& endpoints, const transport::Agreement& agreement, uint64_t connect_ms, uint64_t answer_ms = 10 * 60 * 1000);
// A session of its own there, begun.
Result<std::shared_ptr<SessionChannel>> begin_session(OpenLine open, std::vector<SessionId> instead = {});

}  // namespace holdfast::target
