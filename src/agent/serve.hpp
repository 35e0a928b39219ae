// The agent's process: sockets and threads around sessions.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/status.hpp"
#include "transport/endpoint.hpp"

namespace holdfast::agent {

// What an agent is started with. As text on the control socket: nothing of it stands in an argument or in the environment.
struct Orders {
  std::string node;
  std::string registry;  // the directory with the secret and the agents' notes (target/agent_registry.hpp)
  std::vector<std::string> directories;
  transport::Reach reach = transport::Reach::network;
  uint64_t linger_s = 0;  // ends when it has had no client for so long; 0: never by itself
  bool restart = false;   // when it is killed, another one takes its place
};
std::string encode(const Orders& orders);
Result<Orders> decode_orders(const std::string& text);
// What a second agent says of a node's directory: of one that answers, and of one that lives and does not.
std::string runs_already(const Orders& orders);
std::string hangs(const Orders& orders);
// As each of its directories is known in the registry.
std::vector<std::string> keys_of(const Orders& orders);

// Says on `control` "ok\n" or a sentence once it serves or cannot, closes it, and serves until it is told to end. Takes the descriptor over, and
// sets the process's umask. False: it could not begin.
// `spoke` is called once it has said so.
bool serve_agent(const Orders& orders, int control, const std::function<void()>& spoke = {});

}  // namespace holdfast::agent
