// What kind of image a path names, as far as a preloaded library has to know it.
#pragma once

namespace holdfast::catalog {

// Whether no library can be preloaded into the image at `path`. It is linked statically, or runs with rights that the caller does not
// have (setuid, setgid). False for scripts and for what cannot be looked at. System calls only: also called between fork and exec.
bool takes_no_library(const char* path);

// Whether the image at `path` is one of Go's, which makes its system calls itself also where it is linked dynamically.
bool makes_own_calls(const char* path);

}  // namespace holdfast::catalog
