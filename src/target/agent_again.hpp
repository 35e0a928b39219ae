// Starting an agent again that is gone, and with it who would do that: by the first process of its node that needs it.
#pragma once
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/status.hpp"

namespace holdfast::target {

// How that is done: KEY.again beside the agent's note. It stays when the agent ends because nobody has needed it; whoever stops an agent removes it.
struct AgentAgain {
  std::string place;              // this_place() of the agent
  std::string orders;             // what its program is told (agent/serve.hpp)
  std::vector<uint64_t> started;  // when processes of its node have done it lately, in seconds
};
std::string encode(const AgentAgain& again);
std::optional<AgentAgain> decode_agent_again(const std::string& text);

// By a directory's key (agent_registry.hpp).
Status write_again(const std::string& registry, const std::string& key, const AgentAgain& again);
Result<AgentAgain> read_again(const std::string& registry, const std::string& key);
void forget_again(const std::string& registry, const std::string& key);
std::vector<std::string> keys_to_start_again(const std::string& registry);

// The host, and what a process on it sees of files and of the network. An agent is started nowhere else than where it was.
std::string this_place();
// Whether one more is due, which is noted then: three within a minute.
bool may_start(AgentAgain& again, uint64_t now_s);

// Whether the agent of that key, as it is noted, answers within that time.
constexpr uint64_t starter_answers_ms = 1000;
bool agent_answers(const std::string& registry, const std::string& key);

// Starts an agent's program. Kind::ok once it serves.
using StartAgent = Status (*)(const std::string& orders);
void set_agent_starter(StartAgent start);  // nobody starts any without
// Whether the agent of that node, which was to serve `path`, answers now. Only where this process is of its node, one process at a time, and never one
// that was stopped.
bool start_again(const std::string& node, const std::string& path);
// Whether one that others start again (its watcher, `holdfast run`, its node's processes) is up until then. Waited for in processes of a job alone, once for
// each time that it was started: where that was in vain, the registry says so to all of them (KEY.missed).
bool comes_up_again(const std::string& node, const std::string& path, std::chrono::steady_clock::time_point give_up);

}  // namespace holdfast::target
