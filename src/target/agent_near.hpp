// On an agent's own node: its directory as a descriptor, and then as a directory target, so that no byte goes through the agent. In a container,
// too, where the path may lead elsewhere or nowhere.
#pragma once
#include <memory>
#include <string>

#include "base/raw_syscalls.hpp"
#include "target/target.hpp"
#include "transport/greeting.hpp"

namespace holdfast::target {

struct AgentNote;

// What the agent serves as `directory`, from a socket of this node alone. Both sides see to it that the other one is the same user. Fails where the
// agent is on another node, stands for one, or hands nothing over. `answered`: whether it said so itself, or nobody could be asked.
Result<raw::Fd> ask_for_directory(const AgentNote& note, const transport::Secret& secret, const std::string& directory, bool& answered);

// The other side: the answer `header` with the descriptor. False: it could not be sent.
bool send_with_descriptor(int socket, ByteView header, int descriptor);
// Whether the other end of a socket of this node is a process of this user.
bool is_own_user(int socket);

}  // namespace holdfast::target
