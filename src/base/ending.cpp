#include "base/ending.hpp"

#include <atomic>
#include <cstdlib>

namespace holdfast {

namespace {

std::atomic<int> ending{0};

}  // namespace

void watch_ending() {
  static const int registered = on_exit([](int code, void*) { ending = code; }, nullptr);
  (void)registered;
}

int ending_with() { return ending; }

}  // namespace holdfast
