// A thread of Holdfast's own inside somebody else's program.
#pragma once
#include <functional>

namespace holdfast {

// Starts it, on its own from then on, with all signals blocked: those are the program's, and its handlers run in its own threads.
// False where no thread can be started.
bool start_quiet_thread(std::function<void()> work);

// Whether the thread of that number, of this process, is one of these. Of more than 64 that live at once some are not known.
bool is_quiet_thread(int thread);

// This thread is one, or one of MPI's own. What is asked there is no question of the program's, whoever asks: also a library of its own that our calls come by.
inline __thread bool in_quiet_thread __attribute__((tls_model("initial-exec"))) = false;

}  // namespace holdfast
