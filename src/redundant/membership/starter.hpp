// Who started the hub: the process at the other end of its pair.
#pragma once

namespace holdfast::redundant {

// 0 where the kernel does not say.
int process_behind(int socket);

// As the job control of a shell does it (Ctrl-Z), of all of a job.
bool is_stopped(int process);

}  // namespace holdfast::redundant
