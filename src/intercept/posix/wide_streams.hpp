// Wide characters on a stream of ours. The C library's cookie streams know bytes alone, and its wide calls on them end in a crash. So characters
// become bytes here, by the locale's character set or the one that the stream was opened with (",ccs=").
#pragma once
#include <stdio.h>

namespace holdfast::intercept::posix {

// The number behind a stream of ours; -1 for any other.
int number_of_stream(FILE* stream);

// Where `mode` names a character set the stream is wide from its beginning. False, and errno, where there is no such set.
bool orient_stream(FILE* stream, const char* mode);
// The stream is closed, or opened anew: it has no orientation any more.
void forget_orientation(FILE* stream);

}  // namespace holdfast::intercept::posix
