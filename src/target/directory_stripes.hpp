// The stripes of one open file: system calls on its attributes.
#pragma once
#include <sys/types.h>

#include <optional>

#include "target/stripes.hpp"

namespace holdfast::target {

// Asks for a layout on a file that holds nothing yet and was not opened to write, and says which one it has then. What cannot be asked for is left as
// it is.
Stripes request_stripes(int fd, const StripeWish& wish);
// Makes an empty file at a path where nothing is yet, with this layout if it can be had. errno where it cannot be made, or not be opened to read.
std::optional<Stripes> make_striped_file(int directory, const char* path, mode_t mode, const StripeWish& wish);
// What the file system says: one node that has no number where it says nothing.
Stripes read_stripes(int fd);

}  // namespace holdfast::target
