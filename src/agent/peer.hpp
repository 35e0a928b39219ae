// The way from one node's agent to another's, over a socket.
#pragma once
#include <string>

#include "agent/sum.hpp"

namespace holdfast::agent {

// By the notes and the secret of that registry.
OpenPeer peers_of(const std::string& registry);

}  // namespace holdfast::agent
