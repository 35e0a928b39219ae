#include "intercept/posix/real.hpp"

#include <dlfcn.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>

#include "base/raw_syscalls.hpp"

namespace holdfast::frontend::posix {

__thread int inside __attribute__((tls_model("initial-exec"))) = 0;

}  // namespace holdfast::frontend::posix

namespace holdfast::intercept::posix {

namespace {

Real functions;
std::atomic<bool> resolved{false};

// Beyond what a shell or a program gives names to, below what it is allowed to have, and with room for many.
void lift_own_descriptors() {
  constexpr rlim_t enough = 512;
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0) raw::lowest_own = int(std::min(limit.rlim_cur / 2, enough));
}

// May run in several threads at once before main: all store the same pointers.
void resolve() {
#define HF_RESOLVE(name) functions.name = reinterpret_cast<decltype(functions.name)>(dlsym(RTLD_NEXT, #name));
  HF_LIBC_DOORS(HF_RESOLVE)
#undef HF_RESOLVE
  resolved.store(true, std::memory_order_release);
}

__attribute__((constructor(101))) void real_at_load() {
  (void)real();
  lift_own_descriptors();
}

}  // namespace

const Real& real() {
  if (!resolved.load(std::memory_order_acquire)) resolve();
  return functions;
}

}  // namespace holdfast::intercept::posix
