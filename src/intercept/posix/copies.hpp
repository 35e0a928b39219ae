// Native descriptors of mirrored files. A program that only reads one has the kernel's own descriptor of a whole copy, which is as fast as
// without Holdfast. They become the file's own where that would show: when this process opens the file to write, and before a lock.
#pragma once
#include <string>

#include "intercept/posix/descriptors.hpp"

namespace holdfast::intercept::posix {

// A stream of the C library's own reads from it, or does no more: it has to stay the kernel's.
void note_native_stream(int fd, bool is_one);

// Where the file is of which `fd` is a whole copy, by what its target says; empty for any other descriptor, and where it has lost its name.
std::string path_of_copy(int fd);
// What `find_or_adopt` says; a copy's descriptor is the file's own from here on. For locks.
std::shared_ptr<Description> find_or_serve(int fd);
// All numbers that this process has for copies of this mirrored file, which is open to be written.
void serve_copies(const layout::Manifest& manifest);

}  // namespace holdfast::intercept::posix
