// A file that ranks have opened together, and of which it counts whether anybody writes to it: before this rank's first write something else is done.
#pragma once
#include <functional>
#include <memory>

#include "base/file_layer.hpp"

namespace holdfast::frontend {

// Where `before` fails the write does. It is called again before the next one. `resizes`: that sets the file's size.
using BeforeWrite = std::function<Status(bool resizes)>;
std::unique_ptr<CollectiveFile> before_first_write(std::unique_ptr<CollectiveFile> file, BeforeWrite before);

}  // namespace holdfast::frontend
