// aio.h on one file: aio PATH. Prints what each call answers; the same on a file of any kind.
#define _GNU_SOURCE
#include <aio.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static volatile sig_atomic_t heard = 0, heard_value = 0, called = 0;

static void on_signal(int number, siginfo_t* what, void* context) {
  (void)number, (void)context;
  if (what->si_code == SI_ASYNCIO) heard_value = what->si_value.sival_int;
  heard = heard + 1;
}
static void on_end(union sigval value) { called = called + value.sival_int; }

static void await(volatile sig_atomic_t* what, int count) {
  for (int i = 0; i < 5000 && *what < count; ++i) nanosleep(&(struct timespec){0, 1000000}, NULL);
}

static struct aiocb request(int fd, char* bytes, size_t count, off_t offset) {
  struct aiocb made;
  memset(&made, 0, sizeof made);
  made.aio_fildes = fd;
  made.aio_buf = bytes;
  made.aio_nbytes = count;
  made.aio_offset = offset;
  made.aio_sigevent.sigev_notify = SIGEV_NONE;
  return made;
}

static void end(const char* what, int submitted, struct aiocb* of) {
  const struct aiocb* list[] = {of};
  while (submitted == 0 && aio_error(of) == EINPROGRESS) aio_suspend(list, 1, NULL);
  printf("%s: %d, %d, %zd\n", what, submitted, aio_error(of), aio_return(of));
}

int main(int argc, char** argv) {
  static char out[100000], in[100000];
  if (argc != 2) return 2;
  const int fd = open(argv[1], O_RDWR | O_CREAT, 0666);
  memset(out, 'a', sizeof out);
  struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_RESTART};
  sigaction(SIGUSR1, &action, NULL);

  struct aiocb one = request(fd, out, sizeof out, 0);
  end("write", aio_write(&one), &one);
  one = request(fd, in, sizeof in, 50000);
  end("read to the end", aio_read(&one), &one);
  printf("%d, position %ld\n", memcmp(in, out, 50000), (long)lseek(fd, 0, SEEK_CUR));

  one = request(fd, out, 10, 100000);
  one.aio_sigevent = (struct sigevent){.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1, .sigev_value.sival_int = 7};
  int submitted = aio_write(&one);
  await(&heard, 1);
  end("with a signal", submitted, &one);
  printf("%d %d\n", (int)heard, (int)heard_value);

  one = request(fd, in, 10, 0);
  one.aio_sigevent = (struct sigevent){.sigev_notify = SIGEV_THREAD, .sigev_notify_function = on_end, .sigev_value.sival_int = 3};
  submitted = aio_read(&one);
  await(&called, 3);
  end("with a thread", submitted, &one);
  printf("%d\n", (int)called);

  one = request(fd, NULL, 0, 0);
  end("fsync", aio_fsync(O_SYNC, &one), &one);
  const int refused = aio_fsync(12345, &one);
  printf("fsync of another kind: %d %d\n", refused, errno);
  one = request(fd, in, 10, -5);
  end("a negative offset", aio_read(&one), &one);
  printf("cancel: %d\n", aio_cancel(fd, &one) == AIO_ALLDONE);

  const int reads = open(argv[1], O_RDONLY);
  one = request(reads, out, 10, 0);
  end("without the right", aio_write(&one), &one);

  // A list of ours and of a file that nobody names.
  char other_path[4096];
  snprintf(other_path, sizeof other_path, "%s.other", argv[1]);
  const int other = open(other_path, O_RDWR | O_CREAT, 0666);
  struct aiocb first = request(fd, out, 1000, 200000), second = request(other, out, 2000, 0), third = request(fd, in, 100, 0);
  first.aio_lio_opcode = second.aio_lio_opcode = LIO_WRITE;
  third.aio_lio_opcode = LIO_READ;
  struct aiocb* list[] = {&first, NULL, &second, &third};
  printf("list: %d\n", lio_listio(LIO_WAIT, list, 4, NULL));
  printf("%d %zd %d %zd %d %zd\n", aio_error(&first), aio_return(&first), aio_error(&second), aio_return(&second), aio_error(&third),
         aio_return(&third));
  heard = 0;
  struct sigevent how = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1};
  list[2] = &third;
  third = request(fd, in, 100, 0);
  third.aio_lio_opcode = LIO_READ;
  submitted = lio_listio(LIO_NOWAIT, list + 2, 1, &how);
  await(&heard, 1);
  printf("list with a signal: %d %d %zd\n", submitted, (int)heard, aio_return(&third));
  third = request(reads, out, 100, 0);
  third.aio_lio_opcode = LIO_WRITE;
  errno = 0;
  submitted = lio_listio(LIO_WAIT, list + 2, 1, NULL);
  printf("list with a failure: %d %d %d\n", submitted, errno, aio_error(&third));
  third = request(-1, out, 100, 0);
  submitted = aio_read(&third);
  printf("no descriptor: %d\n", submitted == 0 ? (end("of none", 0, &third), 0) : errno);
  printf("%ld\n", (long)lseek(fd, 0, SEEK_END));
  return close(fd);
}
