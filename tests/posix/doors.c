// A program that reads a file by every door that it knows: posix_doors PROTECTED PLAIN. Both hold the same bytes;
// every answer must be the same. Prints the doors that differ.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

static int failures = 0;
#define CHECK(what)                                                                \
  do {                                                                             \
    if (!(what)) {                                                                 \
      printf("line %d: %s (errno %s)\n", __LINE__, #what, strerrorname_np(errno)); \
      ++failures;                                                                  \
    }                                                                              \
  } while (0)

static char* content;
static size_t size;

static void load(const char* plain) {
  struct stat state;
  int fd = open(plain, O_RDONLY);
  if (fd < 0 || fstat(fd, &state) != 0) exit(3);
  size = (size_t)state.st_size;
  content = malloc(size);
  if (read(fd, content, size) != (ssize_t)size) exit(3);
  close(fd);
}

static void descriptions(const char* path) {
  struct stat state;
  struct stat64 state64;
  struct statx statex;
  CHECK(stat(path, &state) == 0 && (size_t)state.st_size == size && S_ISREG(state.st_mode));
  CHECK(stat64(path, &state64) == 0 && (size_t)state64.st_size == size);
  CHECK(fstatat(AT_FDCWD, path, &state, 0) == 0 && (size_t)state.st_size == size);
  CHECK(statx(AT_FDCWD, path, 0, STATX_SIZE, &statex) == 0 && statex.stx_size == size);
  CHECK(access(path, R_OK) == 0);
  int fd = open(path, O_RDONLY);
  CHECK(fd >= 0);
  CHECK(fstat(fd, &state) == 0 && (size_t)state.st_size == size && S_ISREG(state.st_mode));
  CHECK(fstatat(fd, "", &state, AT_EMPTY_PATH) == 0 && (size_t)state.st_size == size);
  CHECK(statx(fd, "", AT_EMPTY_PATH, STATX_SIZE, &statex) == 0 && statex.stx_size == size);
  CHECK((fcntl(fd, F_GETFL) & O_ACCMODE) == O_RDONLY);
  CHECK(flock(fd, LOCK_SH) == 0);
  CHECK(close(fd) == 0);
  CHECK(read(fd, &state, 1) == -1 && errno == EBADF);
}

static void reads(const char* path) {
  char* into = malloc(size + 100);
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  CHECK(fd >= 0);
  CHECK(read(fd, into, 10) == 10 && memcmp(into, content, 10) == 0);
  CHECK(lseek(fd, 0, SEEK_CUR) == 10);
  CHECK(pread(fd, into, 100, (off_t)size - 50) == 50 && memcmp(into, content + size - 50, 50) == 0);
  CHECK(pread(fd, into, 100, (off_t)size + 50) == 0);
  CHECK(pread(fd, into, 100, -1) == -1 && errno == EINVAL);
  CHECK(lseek64(fd, -20, SEEK_END) == (off64_t)size - 20);
  CHECK(read(fd, into, 100) == 20 && memcmp(into, content + size - 20, 20) == 0);
  CHECK(read(fd, into, 100) == 0);
  CHECK(lseek(fd, -1, SEEK_SET) == -1 && errno == EINVAL);
  CHECK(lseek(fd, 0, SEEK_SET) == 0);
  struct iovec parts[2] = {{into, 1000}, {into + 1000, size + 100 - 1000}};
  CHECK(readv(fd, parts, 2) == (ssize_t)size && memcmp(into, content, size) == 0);
  CHECK(preadv(fd, parts, 1, 5) == 1000 && memcmp(into, content + 5, 1000) == 0);
  CHECK(write(fd, "x", 1) == -1 && errno == EBADF);
  CHECK(ftruncate(fd, 0) == -1 && errno == EINVAL);
  close(fd);
  free(into);
}

static void numbers(const char* path) {
  char into[10];
  int fd = open(path, O_RDONLY);
  int other = dup(fd);
  CHECK(other >= 0 && other != fd);
  CHECK(lseek(fd, 100, SEEK_SET) == 100);
  CHECK(read(other, into, 10) == 10 && memcmp(into, content + 100, 10) == 0);  // they share the position
  CHECK(close(fd) == 0);
  CHECK(read(other, into, 10) == 10 && memcmp(into, content + 110, 10) == 0);
  CHECK(dup2(other, 77) == 77 && close(other) == 0);
  CHECK(read(77, into, 10) == 10 && memcmp(into, content + 120, 10) == 0);
  int plain = open("/dev/zero", O_RDONLY);
  CHECK(dup2(plain, 77) == 77);
  CHECK(read(77, into, 1) == 1 && into[0] == 0);  // no longer the file
  close(77);
  close(plain);
  fd = open(path, O_RDONLY);
  int high = fcntl(fd, F_DUPFD, 50);
  CHECK(high >= 50 && read(high, into, 10) == 10 && memcmp(into, content, 10) == 0);
  pid_t child = fork();
  if (child == 0) _exit(pread(fd, into, 10, 30) == 10 && memcmp(into, content + 30, 10) == 0 ? 0 : 1);
  int status = -1;
  CHECK(waitpid(child, &status, 0) == child && status == 0);
  child = vfork();
  if (child == 0) {
    close(fd);
    _exit(0);
  }
  waitpid(child, &status, 0);
  CHECK(pread(fd, into, 10, 30) == 10);  // the child's close was the child's
  close(fd);
  close(high);
}

static void streams(const char* path) {
  char* into = malloc(size + 1);
  FILE* stream = fopen(path, "r");
  CHECK(stream != NULL);
  if (!stream) return;
  CHECK(fread(into, 1, size + 1, stream) == size && memcmp(into, content, size) == 0);
  CHECK(feof(stream));
  CHECK(fseek(stream, 1234, SEEK_SET) == 0 && fgetc(stream) == (unsigned char)content[1234]);
  CHECK(ftell(stream) == 1235);
  CHECK(fclose(stream) == 0);
  stream = fdopen(open(path, O_RDONLY), "rb");
  CHECK(stream && fread(into, 1, 100, stream) == 100 && memcmp(into, content, 100) == 0);
  if (stream) fclose(stream);
  free(into);
}

static void maps(const char* path) {
  int fd = open(path, O_RDONLY);
  char* pages = mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0);
  CHECK(pages != MAP_FAILED && memcmp(pages, content, size) == 0);
  if (pages != MAP_FAILED) munmap(pages, size);
  pages = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 4096);
  CHECK(pages != MAP_FAILED && memcmp(pages, content + 4096, 4096) == 0);
  CHECK(mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) == MAP_FAILED && errno == EACCES);
  close(fd);
}

// Each door writes what is there already.
static void writing(const char* path) {
  CHECK(open(path, O_WRONLY | O_CREAT | O_EXCL, 0644) == -1 && errno == EEXIST);
  CHECK(fopen(path, "wx") == NULL && errno == EEXIST);
  char into[10];
  int fd = open(path, O_WRONLY | O_CREAT, 0644);
  CHECK(fd >= 0 && (fcntl(fd, F_GETFL) & O_ACCMODE) == O_WRONLY);
  CHECK(read(fd, into, 1) == -1 && errno == EBADF);
  CHECK(write(fd, content, 1000) == 1000 && lseek(fd, 0, SEEK_CUR) == 1000);
  struct iovec parts[2] = {{content + 1000, 5}, {content + 1005, 70000}};
  CHECK(writev(fd, parts, 2) == 70005);
  CHECK(pwrite(fd, content + size - 10, 10, (off_t)size - 10) == 10);
  CHECK(pwrite(fd, content, 10, -1) == -1 && errno == EINVAL);
  CHECK(pwritev(fd, parts, 2, 1000) == 70005 && pwritev2(fd, parts, 2, -1, 0) == 70005);
  CHECK(lseek(fd, 0, SEEK_CUR) == 141010 && pwritev(fd, parts, 2, 1000) == 70005);
  CHECK(pwrite(fd, content + 71005, 70005, 71005) == 70005);
  CHECK(fsync(fd) == 0 && fdatasync(fd) == 0 && ftruncate(fd, (off_t)size) == 0);
  CHECK(posix_fallocate(fd, 0, (off_t)size) == 0 && flock(fd, LOCK_EX) == 0);
  CHECK(lseek(fd, 0, SEEK_END) == (off_t)size && dprintf(fd, "%s", "") == 0);
  CHECK(close(fd) == 0);
  fd = open(path, O_RDWR | O_SYNC);
  CHECK(fd >= 0 && write(fd, content, 10) == 10 && read(fd, into, 10) == 10 && memcmp(into, content + 10, 10) == 0);
  if (getenv("STUB")) CHECK(mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) == MAP_FAILED && errno == EACCES);
  FILE* stream = fdopen(fd, "r+");
  CHECK(stream && fileno(stream) == fd && fseeko(stream, 30, SEEK_SET) == 0);
  if (stream) CHECK(fwrite(content + 30, 1, 5000, stream) == 5000 && fclose(stream) == 0);
  stream = fopen(path, "r+");
  CHECK(stream && fileno(stream) >= 0 && fseeko(stream, -5, SEEK_END) == 0);
  if (stream) CHECK(fprintf(stream, "%.5s", content + size - 5) >= 0 && fflush(stream) == 0 && fclose(stream) == 0);
}

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  load(argv[2]);
  descriptions(argv[1]);
  reads(argv[1]);
  numbers(argv[1]);
  streams(argv[1]);
  if (getenv("STUB")) maps(argv[1]);
  writing(argv[1]);
  reads(argv[1]);  // and nothing of it did anything
  return failures ? 1 : 0;
}
