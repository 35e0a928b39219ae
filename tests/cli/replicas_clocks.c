/* What replicas ask of clocks, timers and random numbers. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <sys/time.h>
#include <sys/timeb.h>
#include <sys/timerfd.h>
#include <sys/times.h>
#include <sys/timex.h>
#include <time.h>
#include <unistd.h>

#include "of_team.h"
#include "replicas.h"

/* All that differs from process to process, where nobody sees to it. */
static int clocks(const char *path) {
  FILE *file = fopen(path, "w");
  for (int i = 0; i < 200; ++i) {
    struct timespec now;
    struct timeval day;
    struct tms used;
    struct rusage usage;
    unsigned char random[16], entropy[8];
    clock_gettime(CLOCK_MONOTONIC, &now);
    gettimeofday(&day, NULL);
    clock_t since = times(&used);
    getrusage(RUSAGE_SELF, &usage);
    if (getrandom(random, sizeof random, 0) != sizeof random || getentropy(entropy, sizeof entropy) != 0) return 1;
    fprintf(file, "%ld.%09ld %ld.%06ld %ld %ld %ld %ld %ld %d %d\n", (long)now.tv_sec, now.tv_nsec, (long)day.tv_sec, (long)day.tv_usec,
            (long)time(NULL), (long)clock(), (long)since, (long)usage.ru_utime.tv_usec, usage.ru_maxrss, random[0], entropy[0]);
  }
  return fclose(file);
}

#pragma GCC diagnostic ignored "-Wdeprecated-declarations" /* of ftime, which old programs call */
/* The same by other doors, each in a line of its own: the first that is not decided stops the job. */
static int otherclocks(const char *path) {
  FILE *file = fopen(path, "w");
  const struct itimerspec far_off = {{0, 0}, {100, 0}};
  struct timespec now;
  struct timeval day;
  struct timeb old;
  struct tms used;
  struct rusage usage;
  struct timex kernel = {.modes = 0};
  struct ntptimeval network;
  struct itimerval interval = {{0, 0}, {100, 0}};
  struct itimerspec left;
  struct sysinfo node;
  unsigned long random = 0;
  double load = 0;
  timer_t timer;
  const int fd = timerfd_create(CLOCK_MONOTONIC, 0);
  if (fd < 0 || timerfd_settime(fd, 0, &far_off, NULL) != 0 || setitimer(ITIMER_REAL, &interval, NULL) != 0) return 1;
  if (timer_create(CLOCK_MONOTONIC, NULL, &timer) != 0 || timer_settime(timer, 0, &far_off, NULL) != 0) return 1;
  if (is_of_team('1')) syscall(SYS_nanosleep, &(struct timespec){0, 30000000}, NULL);
  int answer;
#define SAY(what, asked, value) answer = (int)(asked), fprintf(file, "%s %d %020ld\n", what, answer, (long)(value)), fflush(file)
  SAY("timespec_get", timespec_get(&now, TIME_UTC), now.tv_nsec);
  SAY("ftime", ftime(&old), old.millitm);
  SAY("getitimer", getitimer(ITIMER_REAL, &interval), interval.it_value.tv_usec);
  SAY("timerfd_gettime", timerfd_gettime(fd, &left), left.it_value.tv_nsec);
  SAY("timer_gettime", timer_gettime(timer, &left), left.it_value.tv_nsec);
  SAY("adjtimex", adjtimex(&kernel) < 0, kernel.time.tv_usec);
  SAY("ntp_gettime", ntp_gettime(&network) < 0, network.time.tv_usec);
  SAY("sysinfo", sysinfo(&node), node.freeram);
  SAY("getloadavg", getloadavg(&load, 1), load * 1e6);
  SAY("sched_getcpu", 0, sched_getcpu());
  SAY("SYS_clock_gettime", syscall(SYS_clock_gettime, CLOCK_REALTIME, &now), now.tv_nsec);
  SAY("SYS_gettimeofday", syscall(SYS_gettimeofday, &day, NULL), day.tv_usec);
  SAY("SYS_times", 0, syscall(SYS_times, &used));
  SAY("SYS_getrusage", syscall(SYS_getrusage, RUSAGE_SELF, &usage), usage.ru_utime.tv_usec);
  SAY("SYS_getrandom", syscall(SYS_getrandom, &random, sizeof random, 0), random);
  return fclose(file);
}

/* The time as finely as it is there: no two processes have the same. Lines of one length, each written at once: all replicas make the same calls, whatever it is. */
static int nanoseconds(const char *path) {
  FILE *file = fopen(path, "w");
  for (int i = 0; i < 20; ++i) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    fprintf(file, "%012ld.%09ld\n", (long)now.tv_sec, now.tv_nsec);
    fflush(file);
  }
  return fclose(file);
}

/* The time and a random number, and both once more in the next line: a replica that is told others is found out. */
static int slowclocks(const char *path) {
  FILE *file = fopen(path, "w");
  unsigned random = 0, before = 0;
  for (int i = 0; i < 60; ++i) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    before = random;
    if (getrandom(&random, sizeof random, 0) != sizeof random) return 1;
    fprintf(file, "%d %ld %u %u\n", i, (long)now.tv_sec * 1000 + now.tv_nsec / 1000000, random, before);
    fflush(file);
    usleep(50000);
  }
  return fclose(file);
}

/* Asks for the time again and again, and then says that it has come this far. */
static int polls(const char *path) {
  const time_t begun = time(NULL);
  FILE *file = fopen(path, "w");
  fprintf(file, "begun\n");
  fflush(file);
  while (time(NULL) < begun + 8) continue;
  fprintf(file, "ended\n");
  return fclose(file);
}

/* Many answers in a row, of which each counts. */
static int manyclocks(const char *path) {
  unsigned long sum = 0;
  FILE *file = fopen(path, "w");
  fprintf(file, "begun\n");
  fflush(file);
  for (int i = 0; i < 600000; ++i) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    sum = sum * 31 + (unsigned long)now.tv_nsec;
  }
  fprintf(file, "%lu\n", sum);
  return fclose(file);
}

/* The system's devices of random numbers, and what C libraries make of them. */
static int devices(const char *path) {
  FILE *out = fopen(path, "w"), *stream = fopen("/dev/random", "rb");
  unsigned char some[300], more[16];
  unsigned (*arc4)(void) = (unsigned (*)(void))dlsym(RTLD_DEFAULT, "arc4random");
  int fd = open("/dev/urandom", O_RDONLY), again = dup(fd);
  if (!stream || read(fd, some, sizeof some) != sizeof some || fread(more, 1, sizeof more, stream) != sizeof more) return 1;
  for (size_t i = 0; i < sizeof some; ++i) fprintf(out, "%02x", some[i]);
  for (size_t i = 0; i < sizeof more; ++i) fprintf(out, "%02x", more[i]);
  if (read(again, some, 8) != 8 || close(fd) != 0 || close(again) != 0 || fclose(stream) != 0) return 1;
  fprintf(out, " %02x%02x %u\n", some[0], some[7], arc4 ? arc4() : 0);
  return fclose(out);
}

/* The same lines, small buffers, and the time decides which of them fills first. */
static int fills_by_time(void) {
  FILE *files[2] = {fopen("one", "w"), fopen("two", "w")};
  for (int i = 0; i < 2; ++i) setvbuf(files[i], NULL, _IOFBF, 64);
  for (int i = 0; i < 4000; ++i) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    fputs("same\n", files[(uint32_t)now.tv_nsec * 2654435761u >> 16 & 1]);
  }
  return fclose(files[0]) || fclose(files[1]);
}

static void ask_processor(double *all) {
  struct rusage usage;
  struct timespec now;
  struct tms ticks;
  getrusage(RUSAGE_SELF, &usage);
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  times(&ticks);
  all[0] = (double)clock(), all[1] = (double)usage.ru_utime.tv_sec * 1e6 + (double)usage.ru_utime.tv_usec;
  all[2] = (double)now.tv_sec * 1e9 + (double)now.tv_nsec, all[3] = (double)ticks.tms_utime;
}

/* The first replica has computed much more than its twin when it is lost. */
static int processor(const char *path) {
  double before[4], after[4];
  for (volatile long i = is_of_team('0') ? 0 : 400000000; i < 400000000; ++i) {
  }
  ask_processor(before);
  FILE *out = fopen(path, "w");
  fputs("asked\n", out), fflush(out);
  while (access("go", F_OK) != 0) usleep(5000);
  ask_processor(after);
  for (int i = 0; i < 4; ++i) fprintf(out, "%s\n", after[i] >= before[i] ? "on" : "back");
  return fclose(out);
}

/* Time since the node's start, before a loss and after it; and a sleep until a time by that clock. */
static int uptime(const char *path) {
  struct timespec before, until, after;
  FILE *out = fopen(path, "w");
  clock_gettime(CLOCK_MONOTONIC, &before);
  fputs("asked\n", out), fflush(out);
  while (access("go", F_OK) != 0) {
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += 5000000;
    if (until.tv_nsec >= 1000000000) ++until.tv_sec, until.tv_nsec -= 1000000000;
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
  }
  clock_gettime(CLOCK_MONOTONIC, &after);
  const double passed = (double)(after.tv_sec - before.tv_sec) + 1e-9 * (double)(after.tv_nsec - before.tv_nsec);
  fputs(passed < 0 ? "back\n" : passed > 100 ? "ahead\n" : "on\n", out);
  return fclose(out);
}

static struct timespec soon(void) {
  struct timespec until;
  clock_gettime(CLOCK_MONOTONIC, &until);
  until.tv_nsec += 30000000;
  if (until.tv_nsec >= 1000000000) ++until.tv_sec, until.tv_nsec -= 1000000000;
  return until;
}

static volatile sig_atomic_t rung = 0;
static void ring(int signal) { rung = signal; }

/* Each until that time; answers whether it has ended as it should. */
static int wait_by(const char *how, struct timespec until) {
  static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
  const struct itimerspec once = {{0, 0}, until};
  pthread_mutex_lock(&mutex);
  int answer = -1;
  if (!strcmp(how, "condition")) answer = pthread_cond_clockwait(&condition, &mutex, CLOCK_MONOTONIC, &until) == ETIMEDOUT;
  if (!strcmp(how, "attribute")) {
    pthread_condattr_t by_clock;
    pthread_cond_t own;
    pthread_condattr_init(&by_clock);
    pthread_condattr_setclock(&by_clock, CLOCK_MONOTONIC);
    pthread_cond_init(&own, &by_clock);
    answer = pthread_cond_timedwait(&own, &mutex, &until) == ETIMEDOUT;
  }
  pthread_mutex_unlock(&mutex);
  if (!strcmp(how, "semaphore")) {
    sem_t none;
    sem_init(&none, 0, 0);
    answer = sem_clockwait(&none, CLOCK_MONOTONIC, &until) != 0 && errno == ETIMEDOUT;
  }
  if (!strcmp(how, "descriptor")) {
    uint64_t times = 0;
    const int fd = timerfd_create(CLOCK_MONOTONIC, 0);
    answer = timerfd_settime(fd, TFD_TIMER_ABSTIME, &once, NULL) == 0 && read(fd, &times, sizeof times) == sizeof times && times == 1;
    close(fd);
  }
  if (!strcmp(how, "timer")) {
    timer_t timer;
    rung = 0;
    signal(SIGALRM, ring);
    answer = timer_create(CLOCK_MONOTONIC, NULL, &timer) == 0 && timer_settime(timer, TIMER_ABSTIME, &once, NULL) == 0;
    while (!rung) syscall(SYS_nanosleep, &(struct timespec){0, 1000000}, NULL);
    timer_delete(timer);
  }
  return answer;
}

/* Waits until a time since the node's start, when the leader is lost by whose clock it is; and ticks of it. */
static int deadlines(const char *path) {
  static const char *const all[] = {"condition", "attribute", "semaphore", "descriptor", "timer"};
  struct tms used;
  struct timespec after;
  FILE *out = fopen(path, "w");
  (void)soon();
  const clock_t before = times(&used);
  fputs("asked\n", out), fflush(out);
  while (access("go", F_OK) != 0) usleep(5000);
  for (size_t i = 0; i < sizeof all / sizeof *all; ++i) {
    const struct timespec until = soon();
    const int answer = wait_by(all[i], until);
    clock_gettime(CLOCK_MONOTONIC, &after);
    const double late = (double)(after.tv_sec - until.tv_sec) + 1e-9 * (double)(after.tv_nsec - until.tv_nsec);
    fprintf(out, "%s %s\n", all[i], answer != 1 ? "failed" : late < 0 ? "early" : late > 10 ? "late" : "in time");
  }
  const clock_t passed = times(&used) - before;
  fprintf(out, "ticks %s\n", passed < 0 ? "back" : passed > 6000 ? "ahead" : "on");
  return fclose(out);
}

/* Timers that are made and deleted again and again: nothing is kept of them. */
static int timers(void) {
  const size_t before = mallinfo2().uordblks;
  for (int i = 0; i < 100000; ++i) {
    timer_t timer;
    if (timer_create(CLOCK_MONOTONIC, NULL, &timer) != 0 || timer_delete(timer) != 0) return 1;
  }
  const size_t after = mallinfo2().uordblks;
  puts(after > before + (1 << 20) ? "kept" : "forgotten");
  return 0;
}

int run_clocks(const char *what, const char *path) {
  if (!strcmp(what, "clocks")) return clocks(path);
  if (!strcmp(what, "otherclocks")) return otherclocks(path);
  if (!strcmp(what, "nanoseconds")) return nanoseconds(path);
  if (!strcmp(what, "processor")) return processor(path);
  if (!strcmp(what, "uptime")) return uptime(path);
  if (!strcmp(what, "deadlines")) return deadlines(path);
  if (!strcmp(what, "fills_by_time")) return fills_by_time();
  if (!strcmp(what, "slowclocks")) return slowclocks(path);
  if (!strcmp(what, "polls")) return polls(path);
  if (!strcmp(what, "manyclocks")) return manyclocks(path);
  if (!strcmp(what, "devices")) return devices(path);
  if (!strcmp(what, "timers")) return timers();
  return is_another;
}
