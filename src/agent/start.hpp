// Starting, asking and ending agents.
#pragma once
#include <string>

#include "agent/serve.hpp"
#include "base/raw_syscalls.hpp"
#include "target/agent_registry.hpp"

namespace holdfast::agent {

// Starts the process, in a session of its own, and waits until it serves. `executable`: libexec/holdfast/agent. With orders.restart the descriptor
// that is returned has an end of file once the agent has ended for good. Kind::exists where another one serves such a directory, Kind::busy where that one
// does not answer.
Result<raw::Fd> start(const Orders& orders, const std::string& executable);

// What a running agent says of itself; Kind::lost where it does not answer.
struct About {
  uint64_t clients = 0, requests = 0;
  uint64_t refused = 0;   // who did not know the secret, was of another version, or made no sense
  uint64_t linger_s = 0;  // it ends when nobody has been connected for that long; 0: it does not
};
Result<About> ask(const std::string& registry, const target::AgentNote& note);
// Returns when nobody takes it for a running one any more.
Status end(const std::string& registry, const target::AgentNote& note);

}  // namespace holdfast::agent
