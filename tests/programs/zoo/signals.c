// Handlers that write to the files that the program is writing, at any moment; and jumps out of them.
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

static int fd;
static volatile sig_atomic_t told, asked;
static sigjmp_buf out;
static void tell(int signal) { told += write(fd, "ALARM---", 8) == 8; }
static void tell_all(int signal, siginfo_t* info, void* context) { told += info->si_pid == getpid() && write(fd, "QUEUED--", 8) == 8; }
static void jump(int signal) { siglongjmp(out, 1); }
static void checkpoint(int signal) { asked = 1; }

int main(void) {
  char block[8] = "........";
  fd = open("a.dat", O_RDWR | O_CREAT | O_TRUNC, 0644);
  struct sigaction alarm = {.sa_handler = tell}, info = {.sa_sigaction = tell_all, .sa_flags = SA_SIGINFO};
  sigaction(SIGALRM, &alarm, NULL);
  struct itimerval often = {{0, 500}, {0, 500}}, never = {{0, 0}, {0, 0}};
  setitimer(ITIMER_REAL, &often, NULL);
  long blocks = 0;
  while (told < 200 && blocks < 2000000) blocks += write(fd, block, 8) == 8;
  setitimer(ITIMER_REAL, &never, NULL);
  const int alarms = told;
  sigaction(SIGUSR1, &info, NULL);
  raise(SIGUSR1);
  printf("%s, size %s\n", told == alarms + 1 ? "queued" : "not queued", lseek(fd, 0, SEEK_END) == (blocks + told) * 8 ? "right" : "wrong");
  long found = 0;
  char back[8];
  lseek(fd, 0, SEEK_SET);
  while (read(fd, back, 8) == 8) found += memcmp(back, "ALARM---", 8) == 0;
  printf("%s\n", found == alarms ? "all alarms are there" : "alarms are missing");
  struct sigaction was;
  sigaction(SIGALRM, NULL, &was);
  printf("%s\n", was.sa_handler == tell ? "the handler is known" : "another handler");
  ftruncate(fd, 0);
  lseek(fd, 0, SEEK_SET);
  signal(SIGALRM, jump);
  for (volatile int jumps = 0; jumps < 50;) {
    if (sigsetjmp(out, 1)) {
      ++jumps;
      continue;
    }
    struct itimerval once = {{0, 0}, {0, 300}};
    setitimer(ITIMER_REAL, &once, NULL);
    for (;;) pwrite(fd, block, 8, 0);
  }
  close(fd);
  signal(SIGUSR2, checkpoint);
  raise(SIGUSR2);
  FILE* f = fopen("b.dat", "w");
  fprintf(f, "checkpoint %d\n", (int)asked);
  fclose(f);
  printf("done\n");
  return 0;
}
