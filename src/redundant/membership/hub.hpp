// The hub's loop: sockets, processes and the clock around Membership. It runs in a process of its own beside `holdfast run`.
#pragma once

namespace holdfast::redundant {

// Serves until the job is over or the other end of `control` has gone. `out` and `err` are where the ranks' output goes. Takes the
// descriptors over.
void serve_hub(int control, int out, int err);

}  // namespace holdfast::redundant
