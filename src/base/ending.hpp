// What the process ends with: destructors are not told.
#pragma once

namespace holdfast {

// Called after the program's own beginning: what is registered later than what calls the destructors runs before them.
void watch_ending();
// 0 as long as nothing else is known.
int ending_with();

}  // namespace holdfast
