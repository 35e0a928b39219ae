// A seeded program of POSIX calls on a few files: random_calls SEED CALLS DIRECTORY. Each call's answer, errno and what it moved
// goes to standard output, so that two runs of one seed, one of them on protected files, can be compared line by line.
// Every file is closed, opened again and read whole at the end.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

enum { files = 3, most_open = 8, most_bytes = 300000 };

static uint64_t state;
static uint64_t next(void) {  // splitmix64
  uint64_t z = (state += 0x9e3779b97f4a7c15u);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}
static uint64_t below(uint64_t n) { return next() % n; }
// Sizes and offsets near what matters: small, a unit, a row, and anything.
static size_t some_bytes(void) {
  switch (below(6)) {
    case 0: return below(4);
    case 1: return below(600);
    case 2: return 4096 * (1 + below(16)) - 2 + below(5);
    case 3: return 65536 * (1 + below(4));
    default: return below(most_bytes);
  }
}
static off_t some_offset(void) {
  switch (below(8)) {
    case 0: return 0;
    case 1: return (off_t)(65536 * below(12));
    case 2: return -(off_t)below(3);
    case 3: return (off_t)below(3000000);
    default: return (off_t)below(900000);
  }
}

static uint64_t sum(const char* bytes, size_t count) {
  uint64_t hash = 14695981039346656037u;
  for (size_t i = 0; i < count; ++i) hash = (hash ^ (unsigned char)bytes[i]) * 1099511628211u;
  return hash;
}

static char out[most_bytes * 4 + 4096], in[most_bytes * 4 + 4096];
static int numbers[most_open], leads_to[most_open];
static const char* names[files] = {"out.a", "out.b", "out.c"};

static void fill(size_t bytes) {
  uint64_t word = next();
  for (size_t i = 0; i < bytes; ++i) {
    if (i % 8 == 0) word = word * 6364136223846793005u + 1442695040888963407u;
    out[i] = (char)(word >> (8 * (i % 8)));
  }
}

static void say(const char* call, int64_t result) {
  printf("%s = %lld", call, (long long)result);
  if (result < 0) printf(" %s", strerrorname_np(errno));
}
static void say_read(const char* call, ssize_t got) {
  say(call, got);
  if (got > 0) printf(" %016llx", (unsigned long long)sum(in, (size_t)got));
}

static int free_slot(void) {
  for (int i = 0; i < most_open; ++i)
    if (numbers[i] < 0) return i;
  return -1;
}

static void open_one(void) {
  static const int ways[] = {O_RDONLY,
                             O_RDWR,
                             O_RDWR | O_CREAT,
                             O_WRONLY | O_CREAT,
                             O_RDWR | O_CREAT | O_APPEND,
                             O_WRONLY | O_CREAT | O_TRUNC,
                             O_RDWR | O_CREAT | O_EXCL,
                             O_WRONLY | O_APPEND,
                             O_RDWR | O_TRUNC,
                             O_RDWR | O_CREAT | O_SYNC};
  const int slot = free_slot(), file = (int)below(files), way = ways[below(sizeof ways / sizeof *ways)];
  if (slot < 0) return;
  leads_to[slot] = file;
  numbers[slot] = open(names[file], way, 0640);
  printf("open %s[%d] %o", names[file], slot, way);
  say("", numbers[slot] >= 0 ? 0 : -1);
}

static void close_one(int slot) {
  if (numbers[slot] < 0) return;
  say("close", close(numbers[slot]));
  numbers[slot] = -1;
}

static int pieces(struct iovec* list, char* base) {
  const int count = (int)below(5);
  char* at = base;
  for (int i = 0; i < count; ++i) {
    list[i] = (struct iovec){at, some_bytes()};
    at += list[i].iov_len;
  }
  return count;
}

static void describe(int fd) {
  struct stat s;
  int result = fstat(fd, &s);
  say("fstat", result);
  if (result == 0) printf(" size %lld mode %o", (long long)s.st_size, s.st_mode & S_IFMT);
  printf(" flags %o", fcntl(fd, F_GETFL) & (O_ACCMODE | O_APPEND | O_NONBLOCK | O_DSYNC));
}
static void describe_name(const char* name) {
  struct stat s;
  int result = stat(name, &s);
  say("stat", result);
  if (result == 0) printf(" size %lld mode %o", (long long)s.st_size, s.st_mode & S_IFMT);
}

// The child writes through the descriptor that it has inherited; the parent goes on where that left off.
static void in_a_child(int fd) {
  fill(1000);
  fflush(stdout);
  pid_t child = fork();
  if (child == 0) {
    ssize_t put = write(fd, out, 1000);
    int failed = put < 0 ? errno : 0;
    off_t at = lseek(fd, 0, SEEK_CUR);
    close(fd);
    _exit(put == 1000 && at >= 1000 ? 0 : failed == EBADF ? 1 : 2);
  }
  int status = 0;
  waitpid(child, &status, 0);
  say("child", status);
  say(" at", lseek(fd, 0, SEEK_CUR));
}

static void one_call(void) {
  const int slot = (int)below(most_open);
  int fd = numbers[slot];
  const uint64_t what = below(34);
  if (what == 0 || fd < 0) return open_one();
  const size_t bytes = some_bytes();
  const off_t offset = some_offset();
  struct iovec list[5];
  printf("%s[%d] (%zu, %lld) ", names[leads_to[slot]], slot, bytes, (long long)offset);
  switch (what) {
    case 1:
    case 2:
    case 3:
    case 4: fill(bytes); return say("write", write(fd, out, bytes));
    case 5:
    case 6:
    case 7: fill(bytes); return say("pwrite", pwrite(fd, out, bytes, offset));
    case 8:
    case 9:
    case 10: return say_read("read", read(fd, in, bytes));
    case 11:
    case 12:
    case 13: return say_read("pread", pread(fd, in, bytes, offset));
    case 14: {
      const int n = pieces(list, out);
      fill(most_bytes * 4);
      return say("writev", writev(fd, list, n));
    }
    case 15: return say_read("readv", readv(fd, list, pieces(list, in)));
    case 16: {
      const int n = pieces(list, out);
      fill(most_bytes * 4);
      return say("pwritev", pwritev(fd, list, n, offset));
    }
    case 17: return say_read("preadv", preadv(fd, list, pieces(list, in), offset));
    case 18: {
      const int n = pieces(list, out);
      fill(most_bytes * 4);
      return say("pwritev2", pwritev2(fd, list, n, below(2) ? -1 : offset, below(2) ? RWF_APPEND : RWF_DSYNC));
    }
    case 19: return say_read("preadv2", preadv2(fd, list, pieces(list, in), below(2) ? -1 : offset, 0));
    case 20: return say("lseek set", lseek(fd, offset, SEEK_SET));
    case 21: return say("lseek cur", lseek(fd, offset - 300000, SEEK_CUR));
    case 22: return say("lseek end", lseek(fd, offset - 300000, SEEK_END));
    case 23: return say("ftruncate", ftruncate(fd, offset));
    case 24: {
      const char* name = names[below(files)];
      printf("%s ", name);
      return say("truncate", truncate(name, offset));
    }
    case 25: return describe(fd);
    case 26: return describe_name(names[below(files)]);
    case 27: return say("fsync", fsync(fd));
    case 28: return close_one(slot);
    case 29: {
      const int other = free_slot();
      if (other < 0) return;
      leads_to[other] = leads_to[slot];
      numbers[other] = dup(fd);
      return say("dup", numbers[other] >= 0 ? 0 : -1);
    }
    case 30: return say("setfl", fcntl(fd, F_SETFL, below(2) ? O_APPEND : 0));
    case 31: {
      static const int modes[] = {0, FALLOC_FL_KEEP_SIZE, FALLOC_FL_KEEP_SIZE | FALLOC_FL_PUNCH_HOLE};
      return say("fallocate", fallocate(fd, modes[below(3)], offset, (off_t)bytes));
    }
    case 32:
      switch (below(4)) {
        case 0: {
          const char* name = names[below(files)];
          printf("%s ", name);
          return say("unlink", unlink(name));
        }
        case 1: {
          const char *from = names[below(files)], *to = names[below(files)];
          printf("%s to %s ", from, to);
          return say("rename", rename(from, to));
        }
        case 2: return say("access", access(names[below(files)], R_OK));
        default: return in_a_child(fd);
      }
    default: return say("posix_fallocate", posix_fallocate(fd, offset, (off_t)bytes));
  }
}

int main(int argc, char** argv) {
  if (argc != 4 || chdir(argv[3]) != 0) return 2;
  state = strtoull(argv[1], NULL, 10) * 1000003;
  memset(numbers, 0xff, sizeof numbers);
  const int calls = atoi(argv[2]);
  for (int i = 0; i < calls; ++i) {
    printf("%d ", i);
    errno = 0;
    one_call();
    putchar('\n');
  }
  for (int slot = 0; slot < most_open; ++slot) close_one(slot);
  for (int file = 0; file < files; ++file) {
    const int fd = open(names[file], O_RDONLY);
    printf("\nat the end %s: ", names[file]);
    say("open", fd >= 0 ? 0 : -1);
    for (ssize_t got; fd >= 0 && (got = read(fd, in, sizeof in)) > 0;) say_read(" read", got);
    if (fd >= 0) close(fd);
  }
  putchar('\n');
  return 0;
}
