// How a process ends: what it wrote goes into the files first.
#include <cstdio>

#include "intercept/posix/descriptors.hpp"

namespace {

using namespace holdfast::intercept::posix;
using holdfast::frontend::posix::OpenFile;

void finish() {
  if (!OpenFile::any_written() || !of_this_process()) return;
  (void)let_go_of_all();
  const OurCode ours_now;
  OpenFile::remove_unlinked();
}

// After the program's own handlers and destructors. Streams are flushed by the C library only later, so it is done here.
__attribute__((destructor(101))) void at_exit() {
  if (OpenFile::any_written() && of_this_process()) fflush(nullptr);
  finish();
}

}  // namespace

HF_DOOR void _exit(int code) {
  finish();
  real()._exit(code);
  __builtin_unreachable();
}
HF_DOOR void _Exit(int code) noexcept {
  finish();
  real()._Exit(code);
  __builtin_unreachable();
}
