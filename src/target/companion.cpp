#include "target/companion.hpp"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/rseq.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string_view>
#include <vector>

#include "base/directory_entries.hpp"
#include "base/raw_syscalls.hpp"
#include "base/without_signals.hpp"

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define HF_COMPANIONS_ARE_THREADS 1
#else
#define HF_COMPANIONS_ARE_THREADS 0
#endif

namespace holdfast::target {

namespace {

struct Start {
  void (*body)(void*);
  void* argument;
};

[[maybe_unused]] constexpr size_t kStackBytes = 1 << 20;
[[maybe_unused]] constexpr size_t kGuardBytes = 64 << 10;

// The kernel's per-thread area of restartable sequences (allocators with a cache per processor use it) belongs to the task that registered it. The
// host gives it up. The companion, which runs with the host's thread-local storage, takes it over.
[[maybe_unused]] void restartable_sequences(int flags) {
  if (__rseq_size == 0) return;
  auto* area = static_cast<char*>(__builtin_thread_pointer()) + __rseq_offset;
  constexpr long kRegisteredBytes = 32;  // what every C library so far registers, whatever it uses of it
  syscall(SYS_rseq, area, kRegisteredBytes, flags, RSEQ_SIG);
}

// Set in hosts, whose thread-local storage their companions have too.
thread_local pid_t hosted_by __attribute__((tls_model("initial-exec"))) = 0;

// The companion's life.
[[maybe_unused]] int companion_main(void* start_of) {
  const Start* start = static_cast<const Start*>(start_of);
  restartable_sequences(0);
  start->body(start->argument);
  restartable_sequences(RSEQ_FLAG_UNREGISTER);
  return 0;
}

struct Life {
  Start start;
  pid_t parent;
};

[[maybe_unused]] int watched_main(void* life_of) {
  Life* life = static_cast<Life*>(life_of);
  prctl(PR_SET_PDEATHSIG, SIGKILL);  // sent when the host ends, and that ends with its process
  if (getppid() != life->parent) return 0;
  return companion_main(&life->start);
}

// Of this process, that have its descriptors and have not ended.
std::atomic<int> living{0};

// Waits until the companion has ended; its status as of wait(2).
[[maybe_unused]] int end_of(int pid) {
  int status = 0;
  int waited;
  do waited = int(syscall(SYS_wait4, pid, &status, __WALL, nullptr));
  while (waited < 0 && errno == EINTR);
  --living;
  // A program that waits for children of any kind has taken this one's end: nobody can tell when to clean up after it.
  while (waited < 0) pause();
  return status;
}

// The host: a thread that lends the companion its thread-local storage and waits for its end without touching it. True if
// there was a companion.
[[maybe_unused]] bool host(const Start& start) {
  void* stack = mmap(nullptr, kGuardBytes + kStackBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK | MAP_NORESERVE, -1, 0);
  if (stack == MAP_FAILED) return false;
  char* const bottom = static_cast<char*>(stack) + kGuardBytes;
  bool lived = false;
  if (mprotect(bottom, kStackBytes, PROT_READ | PROT_WRITE) == 0) {
    Life life{start, getpid()};
    hosted_by = life.parent;
    restartable_sequences(RSEQ_FLAG_UNREGISTER);
    // No signal at its end (the last byte of the flags): the program's handlers and its wait() never see it.
    ++living;
    const int pid = clone(watched_main, bottom + kStackBytes, CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_IO, &life);
    lived = pid > 0;
    const int status = lived ? end_of(pid) : 0;
    if (!lived) --living;
    restartable_sequences(0);
    // What would have ended the process, had it been a thread, ends it now.
    if (lived && WIFSIGNALED(status)) kill(getpid(), WTERMSIG(status));
  }
  munmap(stack, kGuardBytes + kStackBytes);
  return lived;
}

void* thread_main(void* start_of) {
  const std::unique_ptr<Start> start(static_cast<Start*>(start_of));
#if !HF_COMPANIONS_ARE_THREADS
  if (host(*start)) return nullptr;
#endif
  start->body(start->argument);
  return nullptr;
}

// Of what the kernel knows without asking a server: this returns also where the file lies on a mount that hangs.
bool is_character_device(int fd) {
  struct statx known {};
  if (raw::statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_TYPE, &known) != 0) return false;
  return S_ISCHR(known.stx_mode);
}

// A name below /dev says little: /dev/shm is a place for files, and anything may be mounted there.
bool keeps_others_waiting(int fd, std::string_view link) {
  for (const char* kind : {"pipe:", "socket:", "anon_inode:"}) {
    if (link.starts_with(kind)) return true;
  }
  return link.starts_with("/dev/") && is_character_device(fd);
}

// By their links in /proc, which asks no file system. A stat of a hung one would hang too, and so would closing a file on it.
std::vector<int> pipes_and_terminals() {
  std::vector<int> found;
  raw::Fd directory(raw::openat(AT_FDCWD, "/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!directory) return found;
  alignas(8) char entries[4096];
  for (ssize_t bytes; (bytes = raw::getdents64(directory.get(), entries, sizeof entries)) > 0;)
    each_name_in(entries, bytes, [&](const char* name) {
      char link[64] = "";
      const int fd = std::atoi(name);
      if (raw::readlinkat(directory.get(), name, link, sizeof link - 1) > 0 && keeps_others_waiting(fd, link)) found.push_back(fd);
    });
  return found;
}

}  // namespace

int process_of_memory() { return hosted_by ? hosted_by : getpid(); }

int start_companion(void (*body)(void*), void* argument) {
  const WithoutSignals none(WithoutSignals::Faults::let_through);
  pthread_attr_t detached;
  pthread_attr_init(&detached);
  pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
  pthread_t thread;
  auto* start = new Start{body, argument};
  const int failed = pthread_create(&thread, &detached, &thread_main, start);
  pthread_attr_destroy(&detached);
  if (failed) delete start;
  return failed;
}

int living_companions() { return living; }

void forget_companions_of_parent() { living = 0; }

void leave_companions_behind() {
  std::fflush(nullptr);
  for (const int fd : pipes_and_terminals()) raw::close(fd);
}

}  // namespace holdfast::target
