#include "intercept/posix/real.hpp"

#include <dlfcn.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <cstring>

#include "base/raw_syscalls.hpp"

namespace holdfast::frontend::posix {

__thread int inside __attribute__((tls_model("initial-exec"))) = 0;

}  // namespace holdfast::frontend::posix

namespace holdfast::intercept::posix {

namespace {

Real functions;
std::atomic<bool> resolved{false};

// Functions of the C library that mean another thing than under their first version, and the version since which they do. Elsewhere than on x86-64 they
// were so from the start.
constexpr struct {
  const char *name, *version;
} renewed_on_x86_64[] = {
    {"glob", "GLIBC_2.27"},          {"glob64", "GLIBC_2.27"},         {"lio_listio", "GLIBC_2.4"},
    {"lio_listio64", "GLIBC_2.4"},   {"nftw", "GLIBC_2.3.3"},          {"nftw64", "GLIBC_2.3.3"},
    {"posix_spawn", "GLIBC_2.15"},   {"posix_spawnp", "GLIBC_2.15"},   {"pthread_cond_timedwait", "GLIBC_2.3.2"},
    {"quick_exit", "GLIBC_2.24"},    {"realpath", "GLIBC_2.3"},        {"timer_create", "GLIBC_2.3.3"},
    {"timer_delete", "GLIBC_2.3.3"}, {"timer_settime", "GLIBC_2.3.3"}, {"timer_gettime", "GLIBC_2.3.3"},
};

bool are_of_one_library(void* one, void* other) {
  Dl_info of_one, of_other;
  return dladdr(one, &of_one) && dladdr(other, &of_other) && of_one.dli_fbase == of_other.dli_fbase;
}

// Beyond what a shell or a program gives names to, below what it is allowed to have, and with room for many.
void lift_own_descriptors() {
  constexpr rlim_t enough = 512;
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0) raw::lowest_own = int(std::min(limit.rlim_cur / 2, enough));
}

// May run in several threads at once before main: all store the same pointers.
void resolve() {
#define HF_RESOLVE(name) functions.name = reinterpret_cast<decltype(functions.name)>(next_symbol(#name));
  HF_LIBC_DOORS(HF_RESOLVE)
#undef HF_RESOLVE
  resolved.store(true, std::memory_order_release);
}

__attribute__((constructor(101))) void real_at_load() {
  (void)real();
  lift_own_descriptors();
}

}  // namespace

// Before glibc 2.36 dlsym(RTLD_NEXT) answers with the oldest version of a name. A library between us and the C library comes first all the same.
void* next_symbol(const char* name) {
  void* const found = dlsym(RTLD_NEXT, name);
  for (const auto& [renewed, version] : renewed_on_x86_64) {
    if (std::strcmp(renewed, name) != 0) continue;
    void* const newer = dlvsym(RTLD_NEXT, name, version);
    return newer && newer != found && are_of_one_library(newer, found) ? newer : found;
  }
  return found;
}

const Real& real() {
  if (!resolved.load(std::memory_order_acquire)) resolve();
  return functions;
}

}  // namespace holdfast::intercept::posix
