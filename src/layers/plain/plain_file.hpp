// A file that nobody protects, as the bottom of a stack: so that buffers can stand before any file.
#pragma once
#include <memory>
#include <string>

#include "base/file_layer.hpp"
#include "base/raw_syscalls.hpp"

namespace holdfast::layers {

// `descriptor` was opened by the program's own rules and stays its owner's. Closing it in between would give up the locks that the process holds on
// the file. sync() is fdatasync(2), close() nothing. `name` is for messages.
std::unique_ptr<FileLayer> plain_file(int descriptor, std::string name);

// The same file with the right to read and to write where there is one; else as it is open.
raw::Fd with_all_rights(raw::Fd file);
raw::Fd open_again(const std::string& path, bool to_write);

}  // namespace holdfast::layers
