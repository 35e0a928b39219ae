// A program that a signal ends leaves what it wrote in its files, as it would natively: all but SIGKILL can be answered.
#pragma once

namespace holdfast::intercept::posix {

// From the first file that is written on. Signals that the program handles or ignores are its own.
void watch_signals();
// In a forked child: the thread that answers them is the parent's.
void watch_signals_in_child();

}  // namespace holdfast::intercept::posix
