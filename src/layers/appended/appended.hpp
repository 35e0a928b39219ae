// Appends to a protected file. Other openers append too, and only at a commit, under the file's lock, is it known where their bytes end. So
// what is appended is kept here until somebody asks for more than the end of the file, and gets its place then.
#pragma once
#include <memory>

#include "base/file_layer.hpp"

namespace holdfast::layers {

class AppendedFile : public FileLayer {
 public:
  // At `most` bytes that wait they get their places, too. `durable_close`: whether what waits at a close is made durable with it.
  static std::unique_ptr<AppendedFile> make(std::unique_ptr<FileLayer> below, uint64_t most, bool durable_close);

  // From now on each append is a commit: processes that share a descriptor see each other's at once.
  virtual void place_at_once() = 0;
  // Gives what waits its place. What cannot be placed is dropped: who asked is told, once.
  virtual Status place(bool durable) = 0;
  // Nothing waits: a read changes nothing here.
  virtual bool is_empty() const = 0;
};

}  // namespace holdfast::layers
