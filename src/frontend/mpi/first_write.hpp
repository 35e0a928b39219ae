// A file that ranks have opened together, and of which it counts whether anybody writes to it: before this rank's first write something else is done.
#pragma once
#include <functional>
#include <memory>

#include "base/file_layer.hpp"

namespace holdfast::frontend {

// Where `before` fails the write does. It is called again before the next one.
std::unique_ptr<CollectiveFile> before_first_write(std::unique_ptr<CollectiveFile> file, std::function<Status()> before);

}  // namespace holdfast::frontend
