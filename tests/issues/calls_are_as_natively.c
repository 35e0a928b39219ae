/* What calls on descriptors say and leave, for as_natively.py. Each case makes the file and prints what the calls answer. */
#define _GNU_SOURCE
#include <aio.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *path;

#define SAY(call)                                                                        \
  do {                                                                                   \
    errno = 0;                                                                           \
    const long said = (long)(call);                                                      \
    printf("%s: %ld %s\n", #call, said, said < 0 ? strerror(errno) : "");                \
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

int main(int argc, char **argv) {
  static const struct {
    const char *name;
    void (*run)(void);
  } cases[] = {{"a_mapping_made_before_the_bytes", a_mapping_made_before_the_bytes},
               {"a_sync_request_with_any_priority", a_sync_request_with_any_priority}};
  path = argv[2];
  setvbuf(stdout, NULL, _IOLBF, 0);
  for (size_t i = 0; argc == 3 && i < sizeof cases / sizeof *cases; i++)
    if (strcmp(cases[i].name, argv[1]) == 0) return cases[i].run(), 0;
  return 2;
}
