// A companion: code of this process that the process need not wait for when it ends.
//
// The kernel ends a process only when all its threads have ended. A thread in a call that cannot be killed (a FUSE server that took a
// request and never answers) does not end. A companion is no thread: it is a process of its own that shares this one's memory and
// descriptors (clone(2) with CLONE_VM and CLONE_FILES). It is killed when its process ends, and if it cannot be killed, it alone stays
// behind.
#pragma once

namespace holdfast::target {

// Runs `body(argument)` in a companion, all signals that can be blocked being blocked; errno where none can be started. Where the system refuses
// such processes, and under the sanitizers, which do not know them, it is a thread. getpid() differs inside; nothing else does.
int start_companion(void (*body)(void*), void* argument);

// The process that the caller's memory belongs to: getpid(), and inside of a companion that of the process that started it.
int process_of_memory();
// The same, as all ask it. Tests whose processes take turns in one of the kernel's put their own here.
inline int (*process_id)() = process_of_memory;

// How many of this process's companions have not ended. Those that are threads are not counted: they end with the process.
int living_companions();
// In the child of a fork, which has none.
void forget_companions_of_parent();

// Call at the process's end while a companion is held in a call. The companion keeps this process's descriptors open, and whoever reads its output
// through a pipe would wait for their end. Flushes stdio and closes the pipes, sockets and terminals.
void leave_companions_behind();

}  // namespace holdfast::target
