// Which agents there are, and the secret that they and this user's processes share. They are small files of a directory that only the user may
// enter (Settings: agents; else $XDG_STATE_HOME/holdfast/agents, ~/.local/state/holdfast/agents).
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "base/status.hpp"
#include "target/agent.hpp"
#include "target/directory.hpp"
#include "transport/greeting.hpp"

namespace holdfast::target {

// What an agent says of itself when it starts: KEY.agent, once for each directory that it serves.
struct AgentNote {
  std::string node, host;
  transport::Identity id{};  // of this start: whoever answers must be it
  int process = 0;
  std::vector<std::string> directories;
  std::string endpoints;               // a line each
  bool left_dead = false;              // it was killed too often within a minute to be started again
  std::vector<std::string> keys = {};  // of what is read from the registry: whose files it is in
};
// NODE.<16 hex digits>: by it the files of the registry are named that are about a directory which an agent of the node serves. Agents of another version
// have other ones: they stand beside these, as several processes on one directory do.
std::string agent_key(const std::string& node, const std::string& directory);
std::vector<std::string> agent_keys(const std::string& node, const std::vector<std::string>& directories);
std::string node_of_key(const std::string& key);
std::string encode(const AgentNote& note);
Result<AgentNote> decode_agent_note(const std::string& text);

// To be used as a directory of small files.
Result<std::shared_ptr<Target>> open_registry(const std::string& directory);
// Kind::not_found where there is none. The directory must be the user's own and nobody else's to read.
Result<transport::Secret> read_secret(const std::string& directory);
// Makes directory and secret where they are missing.
Result<transport::Secret> make_secret(const std::string& directory);
Status write_note(const std::string& directory, const AgentNote& note);
// Where it is still that agent's.
void remove_note(const std::string& directory, const AgentNote& note);
// For an agent that does not answer: where its process is gone, removes its note and how it is started again. Kind::busy where that lives, which may answer again.
Status forget_agent(const std::string& directory, const AgentNote& note);
// What an agent holds while it lives.
std::string lock_of_agent(const std::string& key);
// Of the agent of that node that serves `served`.
Result<AgentNote> read_note(const std::string& directory, const std::string& node, const std::string& served);
Result<AgentNote> read_note(const std::string& directory, const std::string& key);
struct KnownAgent {
  AgentNote note;  // where its file is damaged: the node, and the key
  Status state;
};
// Each once, in the order of their nodes.
std::vector<KnownAgent> known_agents(const std::string& directory);
// Those of which there is a file KEY`suffix`.
std::vector<std::string> keys_noted(const std::string& directory, const std::string& suffix);

// What an agent's program says to who has started it; else a sentence.
inline constexpr const char* agent_serves = "ok";

transport::Agreement agent_agreement(const transport::Secret& secret, const transport::Identity& id);

// NODE:DIR of which the agent was not known, did not answer, has not answered yet, or hung up when this process last had to do with one: what lies there
// may be lost, or only out of reach.
std::vector<std::string> unreached_addresses();

// The process's one connection to that directory's agent for new objects of that mode.
Result<std::shared_ptr<AgentChannel>> connect_to_agent(const std::string& node, const std::string& path, const std::string& label, uint32_t mode);
// A connection of its own beside that, which goes with the target.
Result<std::shared_ptr<Target>> open_beside_by_agent(const std::string& node, const std::string& path, const std::string& label, uint32_t mode);
// On the agent's own node the directory itself (agent_near.hpp), else over that connection. Kind::not_found where no agent of that node is known, Kind::lost
// where it does not answer, and is not up again within `options.agent_patience_ms` where others start it.
Result<std::shared_ptr<Target>> open_by_agent(const std::string& node, const std::string& path, const std::string& label, uint32_t mode,
                                              const DirectoryOptions& options = {});

}  // namespace holdfast::target
