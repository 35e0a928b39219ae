/* What calls on descriptors say and leave, for as_natively.py. Each case makes the file and prints what the calls answer. */
#define _GNU_SOURCE
#include <aio.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <poll.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/select.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

static const char *path;

#define SAY(call)                                                         \
  do {                                                                    \
    errno = 0;                                                            \
    const long said = (long)(call);                                       \
    printf("%s: %ld %s\n", #call, said, said < 0 ? strerror(errno) : ""); \
  } while (0)

static int made_anew(int flags) {
  const int fd = open(path, O_CREAT | O_TRUNC | flags, 0644);
  if (fd < 0) {
    perror(path);
    exit(1);
  }
  return fd;
}

/* Its page is there when the file has bytes, and shows them. */
static void a_mapping_made_before_the_bytes(void) {
  char made[] = "mapXXXXXX.dat";
  close(mkstemps(made, 4));
  int fd = open(made, O_RDONLY);
  const char *map = mmap(NULL, 32, PROT_READ, MAP_SHARED, fd, 0);
  close(fd);
  for (int round = 0; round < 2; round++) {
    FILE *file = fopen(made, round ? "r+" : "w");
    fprintf(file, "%d:x", round);
    printf("fflush %d\n", fflush(file));
    struct stat state;
    fstat(fileno(file), &state);
    printf("size %ld, mapped %.3s\n", (long)state.st_size, map);
    fclose(file);
  }
  rename(made, "mapped.dat");
}

static void a_sync_request_with_any_priority(void) {
  const int fd = made_anew(O_RDWR);
  struct aiocb request;
  memset(&request, 0x5a, sizeof request);
  request.aio_fildes = fd;
  request.aio_sigevent.sigev_notify = SIGEV_NONE;
  SAY(write(fd, "abc", 3));
  SAY(aio_fsync(O_SYNC, &request));
  const struct aiocb *list[] = {&request};
  SAY(aio_suspend(list, 1, NULL));
  printf("error %d, answer %ld\n", aio_error(&request), (long)aio_return(&request));
  SAY(close(fd));
}

static void readiness(void) {
  const int fd = made_anew(O_RDWR), set = epoll_create1(0);
  int ends[2];
  if (pipe(ends) != 0) return;
  SAY(write(fd, "hello world\n", 12));
  struct pollfd list[4] = {{fd, POLLIN | POLLOUT, 0}, {ends[0], POLLIN, 0}, {-1 - fd, POLLIN, 0}, {fd, POLLPRI, 0}};
  SAY(poll(list, 4, 0));
  for (int i = 0; i < 4; i++) printf("%d %x\n", list[i].fd == (i == 1 ? ends[0] : i == 2 ? -1 - fd : fd), list[i].revents);
  SAY(poll(list, 1, 1000));
  SAY(poll(list + 1, 1, 10));
  const struct timespec soon = {0, 1000000};
  SAY(ppoll(list, 2, &soon, NULL));
  fd_set reads, writes, exceptions;
  FD_ZERO(&reads);
  FD_ZERO(&writes);
  FD_ZERO(&exceptions);
  FD_SET(fd, &reads);
  FD_SET(ends[0], &reads);
  FD_SET(fd, &writes);
  FD_SET(fd, &exceptions);
  struct timeval none = {0, 0};
  SAY(select((fd > ends[1] ? fd : ends[1]) + 1, &reads, &writes, &exceptions, &none));
  printf("%d %d %d %d\n", FD_ISSET(fd, &reads) != 0, FD_ISSET(ends[0], &reads) != 0, FD_ISSET(fd, &writes) != 0, FD_ISSET(fd, &exceptions) != 0);
  struct epoll_event event = {EPOLLIN, {0}};
  SAY(epoll_ctl(set, EPOLL_CTL_ADD, fd, &event));
  SAY(close(fd));
}

static void questions_to_devices(void) {
  const int fd = made_anew(O_RDWR);
  SAY(write(fd, "hello world\n", 12));
  SAY(lseek(fd, 4, SEEK_SET));
  int bytes = -1, yes = 1;
  SAY(ioctl(fd, FIONREAD, &bytes));
  printf("%d\n", bytes);
  errno = 0;
  printf("isatty %d %s\n", isatty(fd), strerror(errno));
  struct termios terminal;
  SAY(tcgetattr(fd, &terminal));
  SAY(ioctl(fd, TIOCGWINSZ, &terminal));
  SAY(fcntl(fd, F_GETFD));
  SAY(ioctl(fd, FIOCLEX));
  SAY(fcntl(fd, F_GETFD));
  SAY(ioctl(fd, FIONCLEX));
  SAY(fcntl(fd, F_GETFD));
  SAY(ioctl(fd, FIONBIO, &yes));
  SAY(fcntl(fd, F_GETFL) & O_NONBLOCK);
  SAY(close(fd));
  /* Where the file system has flags a protected file may say that it has none. */
  const int again = open(path, O_RDONLY);
  long flags = 0;
  errno = 0;
  const int result = ioctl(again, FS_IOC_GETFLAGS, &flags);
  printf("flags, or none: %d\n", result == 0 || errno == ENOTTY || errno == EOPNOTSUPP);
  close(again);
}

/* What a descriptor leads to, and where it stands. */
static void show(const char *what, int fd) {
  char bytes[64];
  const ssize_t got = pread(fd, bytes, sizeof bytes, 0);
  printf("%s at %ld: %.*s\n", what, (long)lseek(fd, 0, SEEK_CUR), (int)got, bytes);
}

static void sent_files(void) {
  const int fd = made_anew(O_RDWR), copy = open("copy.dat", O_RDWR | O_CREAT | O_TRUNC, 0644);
  const int plain = open("plain", O_RDWR | O_CREAT | O_TRUNC, 0644);
  SAY(write(fd, "0123456789", 10));
  SAY(lseek(fd, 2, SEEK_SET));
  SAY(sendfile(plain, fd, NULL, 5));
  show("from", fd);
  show("to", plain);
  off_t from = 1;
  SAY(sendfile(copy, fd, &from, 100));
  printf("offset %ld\n", (long)from);
  show("from", fd);
  show("to", copy);
  from = 0;
  SAY(sendfile(copy, plain, &from, 3));
  show("to", copy);
  SAY(sendfile(fd, fd, &from, 2));
  SAY(sendfile(fd, copy, &from, 0));
  int ends[2];
  if (pipe(ends) != 0) return;
  from = 0;
  SAY(sendfile(ends[1], fd, &from, 4));
  char bytes[16] = "";
  SAY(read(ends[0], bytes, sizeof bytes));
  printf("%s\n", bytes);
  SAY(sendfile(fd, ends[0], NULL, 4));
  SAY(close(copy));
  const int only = open("copy.dat", O_RDONLY), more = open("copy.dat", O_WRONLY | O_APPEND), write_only = open(path, O_WRONLY);
  from = 0;
  SAY(sendfile(only, fd, &from, 4));
  SAY(sendfile(more, fd, &from, 4));
  SAY(sendfile(plain, write_only, &from, 4));
  close(fd);
}

static void copied_ranges(void) {
  const int fd = made_anew(O_RDWR), copy = open("copy.dat", O_RDWR | O_CREAT | O_TRUNC, 0644);
  const int plain = open("plain", O_RDWR | O_CREAT | O_TRUNC, 0644);
  SAY(write(fd, "0123456789", 10));
  SAY(lseek(fd, 2, SEEK_SET));
  SAY(write(copy, "abc", 3));
  SAY(copy_file_range(fd, NULL, copy, NULL, 4, 0));
  show("from", fd);
  show("to", copy);
  off64_t from = 5, to = 1;
  SAY(copy_file_range(fd, &from, copy, &to, 100, 0));
  printf("offsets %ld %ld\n", (long)from, (long)to);
  show("to", copy);
  from = to = 0;
  SAY(copy_file_range(copy, &from, plain, &to, 100, 0));
  SAY(copy_file_range(plain, &from, fd, &to, 100, 0));
  from = 0;
  SAY(copy_file_range(plain, &from, fd, &to, 2, 0));
  show("plain", plain);
  show("back", fd);
  from = 0, to = 20;
  SAY(copy_file_range(fd, &from, fd, &to, 3, 0));
  from = 0, to = 1;
  SAY(copy_file_range(fd, &from, fd, &to, 3, 0));
  SAY(copy_file_range(fd, &from, copy, &to, 3, 1));
  const int only = open("copy.dat", O_RDONLY), more = open("copy.dat", O_WRONLY | O_APPEND);
  SAY(copy_file_range(fd, &from, only, &to, 3, 0));
  SAY(copy_file_range(fd, &from, more, &to, 3, 0));
  SAY(copy_file_range(more, &from, fd, &to, 3, 0));
  struct stat state;
  SAY(fstat(fd, &state));
  printf("size %ld\n", (long)state.st_size);
  close(fd);
}

static void spliced(void) {
  const int fd = made_anew(O_RDWR);
  int ends[2];
  if (pipe(ends) != 0) return;
  char bytes[32] = "";
  SAY(write(fd, "0123456789", 10));
  off64_t at = 3;
  SAY(splice(fd, &at, ends[1], NULL, 4, 0));
  printf("offset %ld\n", (long)at);
  SAY(lseek(fd, 1, SEEK_SET));
  SAY(splice(fd, NULL, ends[1], NULL, 2, 0));
  show("from", fd);
  SAY(read(ends[0], bytes, sizeof bytes));
  printf("%s\n", bytes);
  SAY(write(ends[1], "pipe", 4));
  SAY(splice(ends[0], NULL, fd, NULL, 100, 0));
  show("to", fd);
  at = 8;
  SAY(write(ends[1], "end", 3));
  SAY(splice(ends[0], NULL, fd, &at, 100, 0));
  show("to", fd);
  SAY(splice(ends[0], NULL, fd, &at, 100, SPLICE_F_NONBLOCK));
  SAY(splice(ends[0], &at, fd, NULL, 1, 0));
  SAY(splice(fd, &at, fd, &at, 1, 0));
  /* More than a pipe holds. */
  static char much[300000];
  SAY(pwrite(fd, much, sizeof much, 0));
  long all = 0;
  for (at = 0; at < (off64_t)sizeof much;) {
    const ssize_t moved = splice(fd, &at, ends[1], NULL, sizeof much, 0);
    if (moved <= 0) break;
    for (ssize_t left = moved; left > 0;) left -= read(ends[0], much, left < 5000 ? left : 5000);
    all += moved;
  }
  printf("through the pipe %ld\n", all);
  close(fd);
}

static void say_times(const char *when) {
  struct stat state;
  if (stat(path, &state) != 0) exit(1);
  printf("%s: read %ld.%09ld, written %ld.%09ld\n", when, (long)state.st_atim.tv_sec, (long)state.st_atim.tv_nsec, (long)state.st_mtim.tv_sec,
         (long)state.st_mtim.tv_nsec);
}

static void times_that_were_set(void) {
  const struct timespec first[2] = {{1, 5}, {2, 7}}, second[2] = {{3, 0}, {4, 1}}, third[2] = {{5, 2}, {6, 3}};
  close(made_anew(O_WRONLY));
  SAY(utimensat(AT_FDCWD, path, first, 0));
  say_times("by name");
  const int fd = open(path, O_WRONLY);
  SAY(write(fd, "abc", 3));
  SAY(futimens(fd, second));
  say_times("by descriptor");
  SAY(write(fd, "def", 3));
  SAY(utimensat(AT_FDCWD, path, third, 0));
  say_times("by name, while it is open");
  SAY(close(fd));
  say_times("closed");
}

static int moved_on(const struct stat *from, const struct stat *to) {
  return from->st_mtim.tv_sec != to->st_mtim.tv_sec || from->st_mtim.tv_nsec != to->st_mtim.tv_nsec;
}

static void times_of_writes(void) {
  const struct timespec a_while = {0, 50000000};
  FILE *file = fopen(path, "w");
  struct stat before, now, named;
  fstat(fileno(file), &before);
  for (int i = 0; i < 3; i++) {
    nanosleep(&a_while, NULL);
    fputs("some text\n", file);
    printf("fflush %d\n", fflush(file));
    fstat(fileno(file), &now);
    stat(path, &named);
    printf("moved on %d, the same by name %d\n", moved_on(&before, &now), !moved_on(&now, &named));
    before = now;
    nanosleep(&a_while, NULL);
    fstat(fileno(file), &now);
    printf("moved on without a write %d\n", moved_on(&before, &now));
  }
  fclose(file);
}

static void numbers_of_a_file(void) {
  struct stat by_number, by_name, before;
  int fd = made_anew(O_RDWR);
  for (int i = 0; i < 3; i++) {
    SAY(fstat(fd, &by_number));
    SAY(stat(path, &by_name));
    printf("the same number %d, on the same device %d\n", by_number.st_ino == by_name.st_ino, by_number.st_dev == by_name.st_dev);
    if (i > 0) printf("as before %d\n", before.st_ino == by_name.st_ino && before.st_dev == by_name.st_dev);
    before = by_name;
    if (i == 0) SAY(write(fd, "abc", 3));
    if (i == 1) SAY(fsync(fd));
  }
  SAY(close(fd));
  SAY(stat(path, &by_name));
  printf("as before %d\n", before.st_ino == by_name.st_ino && before.st_dev == by_name.st_dev);
  fd = open(path, O_RDONLY);
  SAY(fstat(fd, &by_number));
  printf("as before %d\n", before.st_ino == by_number.st_ino && before.st_dev == by_number.st_dev);
}

/* As libraries ask that are older than the C library's own calls. */
static void calls_by_number(void) {
  const int fd = made_anew(O_RDWR), copy = open("copy.dat", O_RDWR | O_CREAT | O_TRUNC, 0644);
  SAY(write(fd, "0123456789", 10));
  struct statx state;
  SAY(syscall(SYS_statx, fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS, &state));
  printf("size %ld\n", (long)state.stx_size);
  SAY(syscall(SYS_statx, AT_FDCWD, path, 0, STATX_BASIC_STATS, &state));
  printf("size %ld\n", (long)state.stx_size);
  long long at = 2;
  SAY(syscall(SYS_copy_file_range, fd, &at, copy, NULL, 5, 0));
  printf("offset %ld\n", (long)at);
  show("to", copy);
  SAY(syscall(SYS_copy_file_range, -1, NULL, copy, NULL, 5, 0));
  SAY(syscall(SYS_getpid) == getpid());
  char bytes[4] = "";
  const int plain = open("plain", O_RDWR | O_CREAT | O_TRUNC, 0644);
  struct iovec piece = {"abc", 3};
  SAY(syscall(SYS_pwritev2, plain, &piece, 1, 1L, 0L, 0)); /* as many arguments as there are */
  SAY(syscall(SYS_pread64, plain, bytes, 3, 1L));
  printf("%.3s\n", bytes);
  SAY(syscall(SYS_close, -1));
  SAY(close(fd));
  SAY(syscall(SYS_statx, AT_FDCWD, path, 0, STATX_BASIC_STATS, &state));
  printf("size %ld\n", (long)state.stx_size);
}

static int child_of(void (*run)(void)) {
  const pid_t child = fork();
  if (child == 0) {
    run();
    printf("exec: %s\n", strerror(errno));
    fflush(stdout);
    _exit(3);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return status;
}
static void by_path(void) { execl(path, "other name", "one", "two words", NULL); }
static void in_directory(void) {
  char *words[] = {"x", "three", NULL}, *environment[64] = {"MARK=here"};
  char dotted[300];
  int count = 1;
  for (char **at = environ; *at && count < 60; at++) environment[count++] = *at; /* what loads a library into it goes on */
  snprintf(dotted, sizeof dotted, "./%s", path);
  execve(dotted, words, environment);
}
static void by_search(void) {
  setenv("PATH", "/usr/bin:/bin:.", 1);
  execlp(path, path, "four", NULL);
}

static void spawned(int searches) {
  char *words[] = {"its name", "five", NULL}, dotted[300];
  snprintf(dotted, sizeof dotted, "./%s", path);
  pid_t child = 0;
  int status = 0;
  const int error = (searches ? posix_spawnp : posix_spawn)(&child, dotted, NULL, NULL, words, environ);
  if (error == 0) waitpid(child, &status, 0);
  printf("spawned: %s %x\n", error ? strerror(error) : "", status);
}

/* The child's variables are the parent's, also those that say why nothing was executed. */
static void by_vfork(int closed, char **environment) {
  char *words[] = {"its name", "six", NULL}, dotted[300];
  snprintf(dotted, sizeof dotted, "./%s", path);
  volatile int error = 0;
  int status = 0;
  fflush(stdout);
  const pid_t child = vfork();
  if (child == 0) {
    for (int i = 0; i < closed; i++) close(i);
    execve(dotted, words, environment);
    error = errno;
    _exit(3);
  }
  waitpid(child, &status, 0);
  printf("by vfork: %s %x\n", error ? strerror(error) : "", status);
  printf("other children: %d\n", (int)waitpid(-1, &status, WNOHANG));
}

/* The program has none of its own, and gives some to what it starts. */
static void by_vfork_without_variables(void) {
  char *kept[1000];
  size_t count = 0;
  while (count < 999 && environ[count]) {
    kept[count] = environ[count];
    count++;
  }
  kept[count] = NULL;
  char **const before = environ;
  environ = NULL;
  by_vfork(0, kept);
  environ = before;
}

static void an_executed_script(void) {
  static const char *const lines[] = {"#!/bin/sh -u\n", "#! /usr/bin/env sh\n", "echo no first line\n", "#!/no/such/interpreter\n", "#!\n"};
  for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
    const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0755);
    const char body[] = "echo \"$0\" \"$#\" \"$1\" \"${MARK-}\"\nexit 7\n";
    write(fd, lines[i], strlen(lines[i]));
    write(fd, body, sizeof body - 1);
    close(fd);
    fflush(stdout);
    printf("%zu: %x\n", i, child_of(by_path));
    printf("%zu: %x\n", i, child_of(in_directory));
    spawned(0);
    spawned(1);
    by_vfork(0, environ);
    by_vfork(2, environ);
    by_vfork_without_variables();
    if (i < 3) printf("%zu: %x\n", i, child_of(by_search)); /* a shell takes what cannot be executed */
    fflush(stdout);
  }
}

static void advice_that_means_nothing(void) {
  const int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0644);
  printf("known %d\n", posix_fadvise(fd, 0, 10, POSIX_FADV_SEQUENTIAL));
  printf("unknown %d %d\n", posix_fadvise(fd, 0, 10, 42), posix_fadvise(fd, 0, 10, -1));
  printf("of a length below 0: %d\n", posix_fadvise(fd, 0, -1, POSIX_FADV_NORMAL));
  close(fd);
}

static void names_of_terminals(void) {
  const int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0644);
  char name[100];
  printf("ttyname_r %d\n", ttyname_r(fd, name, sizeof name));
  errno = 0;
  printf("ttyname %d %d\n", ttyname(fd) != NULL, errno);
  close(fd);
  printf("ttyname_r of nothing %d\n", ttyname_r(fd, name, sizeof name));
}

/* Calls that do not follow a link: the file is none. */
static void of_the_entry_itself(void) {
  const int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0644);
  write(fd, "content", 7);
  close(fd);
  const struct timespec times[2] = {{1000, 500}, {2000, 700}};
  const struct timeval old[2] = {{3000, 0}, {4000, 0}};
  struct stat state;
  printf("utimensat %d", utimensat(AT_FDCWD, path, times, AT_SYMLINK_NOFOLLOW));
  stat(path, &state);
  printf(" %ld %ld\n", (long)state.st_atim.tv_sec, (long)state.st_mtim.tv_sec);
  printf("lutimes %d", lutimes(path, old));
  stat(path, &state);
  printf(" %ld %ld\n", (long)state.st_atim.tv_sec, (long)state.st_mtim.tv_sec);
  char value[10] = "", names[100];
  printf("lsetxattr %d\n", lsetxattr(path, "user.one", "abc", 3, 0));
  printf("lgetxattr %zd %s\n", lgetxattr(path, "user.one", value, sizeof value), value);
  printf("getxattr %zd, listed %d\n", getxattr(path, "user.one", value, sizeof value), llistxattr(path, names, sizeof names) > 0);
  printf("lremovexattr %d", lremovexattr(path, "user.one"));
  printf(" getxattr %zd\n", getxattr(path, "user.one", value, sizeof value));
  printf("lchown %d\n", lchown(path, geteuid(), getegid()));
}

/* Of the program's own; a link of Holdfast's at the file's path is no link to it. */
static void links_that_are_not_followed(void) {
  const int fd = made_anew(O_WRONLY);
  SAY(write(fd, "content", 7));
  SAY(close(fd));
  SAY(symlink(path, "link.dat"));
  SAY(symlink("absent.dat", "dangling.dat"));
  SAY(open("link.dat", O_RDONLY | O_NOFOLLOW));
  SAY(open("link.dat", O_RDWR | O_NOFOLLOW));
  SAY(open("link.dat", O_WRONLY | O_TRUNC | O_NOFOLLOW));
  SAY(open("link.dat", O_WRONLY | O_CREAT | O_NOFOLLOW, 0644));
  SAY(open("link.dat", O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0644));
  SAY(open("dangling.dat", O_WRONLY | O_CREAT | O_NOFOLLOW, 0644));
  const int itself = open(path, O_RDWR | O_NOFOLLOW), followed = open("link.dat", O_RDONLY);
  char seen[8] = "";
  SAY(write(itself, "CON", 3));
  SAY(read(followed, seen, sizeof seen - 1));
  puts(seen);
  SAY(unlink("link.dat"));
  SAY(unlink("dangling.dat"));
}

static void permissions_after_a_rename(void) {
  struct stat state;
  char other[300];
  snprintf(other, sizeof other, "other.%s", path);
  for (int i = 0; i < 2; i++) {
    const int fd = open(i ? path : other, O_WRONLY | O_CREAT | O_TRUNC, 0640);
    write(fd, "content", 7);
    if (!i) chmod(other, 0666);
    close(fd);
  }
  printf("rename %d", rename(other, path));
  stat(path, &state);
  printf(" %o\n", (unsigned)state.st_mode);
  printf("rename %d", rename(path, other));
  stat(other, &state);
  printf(" %o\n", (unsigned)state.st_mode);
  rename(other, path);
}

static void requests_of_a_regular_file(void) {
  const int fd = made_anew(O_RDWR);
  SAY(write(fd, "content", 7));
  SAY(fcntl(fd, F_GETOWN));
  SAY(fcntl(fd, F_GETLEASE));
  SAY(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE));
  SAY(fcntl(fd, 4711));
  SAY(sync_file_range(fd, 0, 7, 64));
  SAY(sync_file_range(fd, -1, 7, 0));
  SAY(sync_file_range(fd, 0, 7, SYNC_FILE_RANGE_WRITE));
  SAY(mmap(NULL, 7, PROT_READ, 0, fd, 0) == MAP_FAILED);
  printf("mmap: %s\n", strerror(errno));
  SAY(close(fd));
}

static int opened_to_read(void) {
  const int fd = made_anew(O_RDWR);
  SAY(write(fd, "0123456789", 10));
  SAY(close(fd));
  return open(path, O_RDONLY);
}

static void readers_before_writers(void) {
  char bytes[16];
  struct stat state;
  const int reader = opened_to_read(), twin = dup(reader), apart = open(path, O_RDONLY | O_CLOEXEC);
  FILE *stream = fopen(path, "r");
  SAY(read(reader, bytes, 2));
  SAY(lseek(apart, 5, SEEK_SET));
  const int writer = open(path, O_RDWR);
  SAY(pwrite(writer, "XYZ", 3, 2));
  SAY(read(twin, bytes, 2));
  printf("%.2s\n", bytes);
  SAY(lseek(reader, 0, SEEK_CUR));
  SAY(lseek(apart, 0, SEEK_CUR));
  show("apart", apart);
  SAY(fcntl(reader, F_GETFD));
  SAY(fcntl(apart, F_GETFD));
  SAY(fcntl(reader, F_GETFL) & O_ACCMODE);
  SAY(write(reader, "x", 1));
  SAY(ftruncate(writer, 7));
  SAY(fstat(reader, &state));
  printf("size %ld\n", (long)state.st_size);
  SAY(lseek(twin, 0, SEEK_END));
  SAY(close(writer));
  show("reader", reader);
  printf("stream: %s\n", fgets(bytes, sizeof bytes, stream));
  fclose(stream);
  SAY(close(reader));
  show("twin", twin);
}

static int locked_by_another(int how) {
  fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    struct flock all = {.l_type = F_WRLCK};
    const int writer = open(path, O_RDWR);
    const int result = how == 0 ? flock(writer, LOCK_EX | LOCK_NB) : how == 1 ? fcntl(writer, F_SETLK, &all) : lockf(writer, F_TLOCK, 0);
    _exit(result == 0 ? 0 : errno);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return status;
}

static void locks_of_readers(void) {
  struct flock all = {.l_type = F_RDLCK};
  char bytes[16];
  const int reader = opened_to_read();
  SAY(read(reader, bytes, 4));
  SAY(flock(reader, LOCK_SH));
  printf("another: %x\n", locked_by_another(0));
  SAY(flock(reader, LOCK_UN));
  printf("another: %x\n", locked_by_another(0));
  SAY(fcntl(reader, F_SETLK, &all));
  printf("another: %x %x\n", locked_by_another(1), locked_by_another(2));
  all.l_type = F_UNLCK;
  SAY(fcntl(reader, F_SETLK, &all));
  printf("another: %x\n", locked_by_another(1));
  show("reader", reader);
}

static void names_of_readers(void) {
  char name[64], leads_to[300];
  const int reader = opened_to_read();
  snprintf(name, sizeof name, "/proc/self/fd/%d", reader);
  const ssize_t length = readlink(name, leads_to, sizeof leads_to);
  printf("leads to %.*s\n", length > 8 ? 8 : 0, leads_to + length - 8);
  const int writer = open(name, O_RDWR);
  SAY(pwrite(writer, "abc", 3, 0));
  show("reader", reader);
  SAY(truncate(name, 5));
  show("reader", reader);
  SAY(close(writer));
}

/* The file and its targets are what they were before. */
static void sizes_beyond_all_storage(void) {
  const off_t beyond = 1L << 62;
  const int fd = made_anew(O_RDWR);
  SAY(write(fd, "content", 7));
  SAY(fsync(fd));
  SAY(ftruncate(fd, beyond));
  SAY(pwrite(fd, "x", 1, beyond));
  SAY(fallocate(fd, 0, beyond, 10));
  SAY(truncate(path, beyond));
  SAY(lseek(fd, 0, SEEK_END));
  SAY(pwrite(fd, "C", 1, 0));
  SAY(ftruncate(fd, 7));
  SAY(fsync(fd));
  show("left", fd);
  SAY(close(fd));
}

int main(int argc, char **argv) {
  static const struct {
    const char *name;
    void (*run)(void);
  } cases[] = {{"a_mapping_made_before_the_bytes", a_mapping_made_before_the_bytes},
               {"a_sync_request_with_any_priority", a_sync_request_with_any_priority},
               {"readiness", readiness},
               {"questions_to_devices", questions_to_devices},
               {"sent_files", sent_files},
               {"copied_ranges", copied_ranges},
               {"spliced", spliced},
               {"times_that_were_set", times_that_were_set},
               {"times_of_writes", times_of_writes},
               {"numbers_of_a_file", numbers_of_a_file},
               {"calls_by_number", calls_by_number},
               {"an_executed_script", an_executed_script},
               {"advice_that_means_nothing", advice_that_means_nothing},
               {"names_of_terminals", names_of_terminals},
               {"of_the_entry_itself", of_the_entry_itself},
               {"links_that_are_not_followed", links_that_are_not_followed},
               {"permissions_after_a_rename", permissions_after_a_rename},
               {"sizes_beyond_all_storage", sizes_beyond_all_storage},
               {"requests_of_a_regular_file", requests_of_a_regular_file},
               {"readers_before_writers", readers_before_writers},
               {"locks_of_readers", locks_of_readers},
               {"names_of_readers", names_of_readers}};
  path = argv[2];
  setvbuf(stdout, NULL, _IOLBF, 0);
  alarm(30);
  for (size_t i = 0; argc == 3 && i < sizeof cases / sizeof *cases; i++)
    if (strcmp(cases[i].name, argv[1]) == 0) return cases[i].run(), 0;
  return 2;
}
