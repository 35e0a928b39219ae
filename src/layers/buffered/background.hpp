// Work that need not be done before a call returns: full buffers written, the next window read, what has waited long enough written.
#pragma once
#include <chrono>
#include <functional>

namespace holdfast::layers {

class Background {
 public:
  virtual ~Background() = default;
  // Runs it some time, in the order of submission; false: it will not, do it yourself.
  virtual bool submit(std::function<void()> work) = 0;
  // Runs it once that time has passed, and again each time that it returns how long from then; zero ends it. False as above. It cannot
  // be taken back: work that may outlive what it works on asks whether that is still there.
  using Milliseconds = std::chrono::milliseconds;
  virtual bool submit_after(Milliseconds delay, std::function<Milliseconds()> work) = 0;
  // Since some moment of the past, by the clock that submit_after goes by.
  virtual Milliseconds now() = 0;
};

// One thread of this process, started by the first work, with all signals blocked. After fork a child has one of its own.
Background& background_thread();
// Nothing is put off: work is done in submit(). For tests.
Background& no_background();

}  // namespace holdfast::layers
