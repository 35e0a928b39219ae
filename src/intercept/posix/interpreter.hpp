// Python's interpreter waits for its lock, which one of its threads has at a time, and for those of the program. It does so by times of its own.
#pragma once
#include <time.h>

namespace holdfast::intercept::posix {

// Whether the interpreter itself asks that clock: its thread has not got its lock, or no function of module `time` asks. How often it does so differs from run
// to run, and no code of the program sees the answer: it is each replica's own. The first such question counts as the program's: by it the module is marked.
bool asks_for_interpreter(const void* caller, clockid_t which);

}  // namespace holdfast::intercept::posix
