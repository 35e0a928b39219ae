// Preloaded behind everything else: where a replica's program rests, it does so several times as long (RESTS), until there is a file (RESTS_UNTIL), and then
// not at all. What a test does to a job that runs has all the time that it takes on a busy machine, and on any other nobody waits for the job's end.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { SHORTEST = 15000000, SLICE = 20000000 };  // nanoseconds: shorter ones are not the program's, but of libraries that poll

// Asked of the kernel and not of the C library, where a replica is answered once for all.
static int is_there(const char *name) {
#if defined(__x86_64__)
  long answer;
  __asm__ volatile("syscall" : "=a"(answer) : "a"(SYS_faccessat), "D"((long)AT_FDCWD), "S"(name), "d"(0L) : "rcx", "r11", "memory");
#elif defined(__aarch64__)
  register long number __asm__("x8") = SYS_faccessat;
  register long answer __asm__("x0") = AT_FDCWD;
  register const char *path __asm__("x1") = name;
  register long mode __asm__("x2") = 0;
  __asm__ volatile("svc 0" : "+r"(answer) : "r"(number), "r"(path), "r"(mode) : "memory");
#else
#error "another processor: how is the kernel asked there?"
#endif
  return answer == 0;
}

// Threads that Holdfast and the MPI have beside the program's own look now and then whether there is something to do.
static pthread_t of_program;
__attribute__((constructor)) static void begin(void) { of_program = pthread_self(); }

static int rest(const struct timespec *wanted, struct timespec *left) {
  static int (*native)(const struct timespec *, struct timespec *);
  if (!native) native = (int (*)(const struct timespec *, struct timespec *))dlsym(RTLD_NEXT, "nanosleep");
  const char *until = getenv("RESTS_UNTIL"), *times = getenv("RESTS");
  long long nanoseconds = wanted ? wanted->tv_sec * 1000000000LL + wanted->tv_nsec : 0;
  if (!until || !times || !getenv("HOLDFAST_REPLICA") || !pthread_equal(pthread_self(), of_program) || nanoseconds < SHORTEST)
    return native(wanted, left);
  for (nanoseconds *= atoi(times); nanoseconds > 0 && !is_there(until); nanoseconds -= SLICE) {
    const struct timespec slice = {0, nanoseconds < SLICE ? nanoseconds : SLICE};
    native(&slice, NULL);
  }
  return 0;
}

int nanosleep(const struct timespec *wanted, struct timespec *left) { return rest(wanted, left); }

int usleep(useconds_t microseconds) {
  const struct timespec wanted = {microseconds / 1000000, microseconds % 1000000 * 1000};
  return rest(&wanted, NULL);
}
