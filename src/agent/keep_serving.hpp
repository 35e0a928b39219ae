// An agent and who watches over it.
#pragma once
#include "agent/serve.hpp"

namespace holdfast::agent {

// Serves in a child process, and in another one each time that a child is killed, at most thrice a minute. Returns when the agent has ended by itself
// (told to end, or needed by nobody), was asked to by a signal (SIGTERM, SIGINT, SIGHUP), or cannot begin. `control` (serve_agent) is kept open for
// as long. Who holds its other end learns of the end. Nor is one started again that was forgotten meanwhile (`agents stop`).
void keep_serving(const Orders& orders, int control);

}  // namespace holdfast::agent
