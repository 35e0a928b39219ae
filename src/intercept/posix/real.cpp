#include "intercept/posix/real.hpp"

#include <dlfcn.h>

#include <atomic>

namespace holdfast::intercept::posix {

__thread int inside __attribute__((tls_model("initial-exec"))) = 0;

namespace {

Real functions;
std::atomic<bool> resolved{false};

// May run in several threads at once before main: all store the same pointers.
void resolve() {
#define HF_RESOLVE(name) functions.name = reinterpret_cast<decltype(functions.name)>(dlsym(RTLD_NEXT, #name));
  HF_LIBC_DOORS(HF_RESOLVE)
#undef HF_RESOLVE
  resolved.store(true, std::memory_order_release);
}

__attribute__((constructor(101))) void at_load() { (void)real(); }

}  // namespace

const Real& real() {
  if (!resolved.load(std::memory_order_acquire)) resolve();
  return functions;
}

}  // namespace holdfast::intercept::posix
