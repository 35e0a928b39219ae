// A file that nobody protects, as the bottom of a stack: so that buffers can stand before any file.
#pragma once
#include <memory>
#include <string>

#include "base/raw_syscalls.hpp"
#include "layers/file_layer.hpp"

namespace holdfast::layers {

// `file` was opened by the program's own rules; sync() is fdatasync(2), close() closes it. `name` is for messages.
std::unique_ptr<FileLayer> plain_file(raw::Fd file, std::string name);

}  // namespace holdfast::layers
