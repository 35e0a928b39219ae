// Work that need not be done before a call returns: full buffers written, the next window read.
#pragma once
#include <functional>

namespace holdfast::layers {

class Background {
 public:
  virtual ~Background() = default;
  // Runs it some time, in the order of submission; false: it will not, do it yourself.
  virtual bool submit(std::function<void()> work) = 0;
};

// One thread of this process, started by the first work, with all signals blocked. After fork a child has one of its own.
Background& background_thread();
// Nothing is put off: work is done in submit(). For tests.
Background& no_background();

}  // namespace holdfast::layers
