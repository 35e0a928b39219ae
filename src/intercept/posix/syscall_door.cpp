// The door of syscall(2): libraries ask by it for calls that older C libraries do not have (libuv does, and with it node). Two of them
// look into files, one into directories. In a redundant job those that ask for the time, or for random numbers, are served too. Every other number
// goes to the kernel as it came, with the caller's own stack, for some (clone) return twice.
#include <dlfcn.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/times.h>
#include <time.h>

#include <cstdarg>

#include "base/raw_syscalls.hpp"
#include "intercept/posix/decided.hpp"
#include "intercept/posix/real.hpp"

namespace {

using namespace holdfast::intercept::posix;

constexpr long for_raw = holdfast::raw::of_our_own;

// Clocks and random numbers: by the doors of the C library's functions.
constexpr bool asks_the_world(long number) {
#ifdef SYS_time
  if (number == SYS_time) return true;
#endif
  return number == SYS_clock_gettime || number == SYS_gettimeofday || number == SYS_times || number == SYS_getrusage || number == SYS_getrandom;
}

template <class To>
To* at(long address) {
  return reinterpret_cast<To*>(address);
}
long ask_the_world(long number, long a, long b, long c) {
  switch (number) {
    case SYS_clock_gettime: return clock_gettime(clockid_t(a), at<timespec>(b));
    case SYS_gettimeofday: return gettimeofday(at<timeval>(a), at<void>(b));
    case SYS_times: return times(at<tms>(a));
    case SYS_getrusage: return getrusage(__rusage_who_t(a), at<struct rusage>(b));
    case SYS_getrandom: return getrandom(at<void>(a), size_t(b), unsigned(c));
    default: return time(at<time_t>(a));
  }
}

}  // namespace

extern "C" {
// The kernel's answer, or -1 and errno: as the C library's own syscall.
long holdfast_plain_syscall(long number, ...) __attribute__((visibility("hidden")));

__attribute__((visibility("hidden"), used)) long holdfast_served_syscall(long number, long a, long b, long c, long d, long e, long f) {
  if (inside > 0 || f == for_raw) return holdfast_plain_syscall(number, a, b, c, d, e, f);
  if (asks_the_world(number)) {
    if (!replica_for(HF_CALLER)) return holdfast_plain_syscall(number, a, b, c, d, e, f);
    const ForProgram by_other_doors(true);
    return ask_the_world(number, a, b, c);
  }
  if (number == SYS_statx) return statx(int(a), reinterpret_cast<const char*>(b), int(c), unsigned(d), reinterpret_cast<struct statx*>(e));
  if (number == SYS_getdents64) return getdents64(int(a), reinterpret_cast<void*>(b), size_t(c));
  return copy_file_range(int(a), reinterpret_cast<off64_t*>(b), int(c), reinterpret_cast<off64_t*>(d), size_t(e), unsigned(f));
}
}

#if defined(__x86_64__)
static_assert(SYS_statx == 332 && SYS_copy_file_range == 326 && SYS_getdents64 == 217);
static_assert(SYS_clock_gettime == 228 && SYS_gettimeofday == 96 && SYS_time == 201 && SYS_times == 100 && SYS_getrusage == 98 &&
              SYS_getrandom == 318);
asm(R"(
  .text
  .globl syscall
  .type syscall, @function
syscall:
  endbr64
  cmpq $332, %rdi
  je holdfast_served_syscall
  cmpq $326, %rdi
  je holdfast_served_syscall
  cmpq $217, %rdi
  je holdfast_served_syscall
  cmpq $228, %rdi
  je holdfast_served_syscall
  cmpq $96, %rdi
  je holdfast_served_syscall
  cmpq $201, %rdi
  je holdfast_served_syscall
  cmpq $100, %rdi
  je holdfast_served_syscall
  cmpq $98, %rdi
  je holdfast_served_syscall
  cmpq $318, %rdi
  je holdfast_served_syscall
  .globl holdfast_plain_syscall
  .hidden holdfast_plain_syscall
  .type holdfast_plain_syscall, @function
holdfast_plain_syscall:
  movq %rdi, %rax
  movq %rsi, %rdi
  movq %rdx, %rsi
  movq %rcx, %rdx
  movq %r8, %r10
  movq %r9, %r8
  movq 8(%rsp), %r9
  syscall
  cmpq $-4095, %rax
  jae 1f
  ret
1:
  subq $8, %rsp
  negl %eax
  movl %eax, 4(%rsp)
  call __errno_location@PLT
  movl 4(%rsp), %ecx
  movl %ecx, (%rax)
  addq $8, %rsp
  movq $-1, %rax
  ret
  .size syscall, .-syscall
)");
#elif defined(__aarch64__)
static_assert(SYS_statx == 291 && SYS_copy_file_range == 285 && SYS_getdents64 == 61);
static_assert(SYS_clock_gettime == 113 && SYS_gettimeofday == 169 && SYS_times == 153 && SYS_getrusage == 165 && SYS_getrandom == 278);
asm(R"(
  .text
  .globl syscall
  .type syscall, %function
syscall:
  hint 34
  cmp x0, 291
  b.eq holdfast_served_syscall
  cmp x0, 285
  b.eq holdfast_served_syscall
  cmp x0, 61
  b.eq holdfast_served_syscall
  cmp x0, 113
  b.eq holdfast_served_syscall
  cmp x0, 169
  b.eq holdfast_served_syscall
  cmp x0, 153
  b.eq holdfast_served_syscall
  cmp x0, 165
  b.eq holdfast_served_syscall
  cmp x0, 278
  b.eq holdfast_served_syscall
  .globl holdfast_plain_syscall
  .hidden holdfast_plain_syscall
  .type holdfast_plain_syscall, %function
holdfast_plain_syscall:
  uxtw x8, w0
  mov x0, x1
  mov x1, x2
  mov x2, x3
  mov x3, x4
  mov x4, x5
  mov x5, x6
  svc 0
  cmn x0, 4095
  b.cs 1f
  ret
1:
  stp x29, x30, [sp, -32]!
  neg w0, w0
  str w0, [sp, 16]
  bl __errno_location
  ldr w1, [sp, 16]
  str w1, [x0]
  ldp x29, x30, [sp], 32
  mov x0, -1
  ret
  .size syscall, .-syscall
)");
#else
// Where a call that returns twice comes by here it returns into this frame: no such machine has been seen yet.
namespace {

template <class Call>
long with_all(long number, va_list arguments, Call call) {
  long all[6];
  for (long& one : all) one = va_arg(arguments, long);
  return call(number, all[0], all[1], all[2], all[3], all[4], all[5]);
}

}  // namespace

extern "C" long holdfast_plain_syscall(long number, ...) {
  static const auto native = reinterpret_cast<decltype(&::syscall)>(dlsym(RTLD_NEXT, "syscall"));
  va_list arguments;
  va_start(arguments, number);
  const long answer = with_all(number, arguments, native);
  va_end(arguments);
  return answer;
}
HF_DOOR long syscall(long number, ...) noexcept {
  const bool served = number == SYS_statx || number == SYS_copy_file_range || number == SYS_getdents64 || asks_the_world(number);
  va_list arguments;
  va_start(arguments, number);
  const long answer = served ? with_all(number, arguments, holdfast_served_syscall) : with_all(number, arguments, holdfast_plain_syscall);
  va_end(arguments);
  return answer;
}
#endif
