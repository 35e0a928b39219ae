// The one way to a target, by its address: "/mnt/a", a directory of this machine, or "n3:/mnt/a", a directory that the agent of node n3 serves.
#pragma once
#include <memory>
#include <string>

#include "target/directory.hpp"

namespace holdfast::target {

// Options are the directory's; of an agent's only the mode counts, with this process's umask. Kind::not_found, Kind::access ... with the address in
// the sentence where there is no such directory; Kind::lost where its agent cannot be asked.
Result<std::shared_ptr<Target>> open(const std::string& address, const DirectoryOptions& options = {});

// What an agent serves, once more, by a connection of its own: what is asked there waits for nothing else that this process asks.
Result<std::shared_ptr<Target>> open_beside(const std::string& address);

// Whether it is another node's whose agent did not answer when this process last asked it: nothing is known of what lies there.
bool is_unreached(const std::string& address);
// The ways over the network to the agent that serves it (transport/endpoint.hpp); empty for a directory of this machine, and where no agent is known.
std::string ways_to_agent(const std::string& address);

}  // namespace holdfast::target
