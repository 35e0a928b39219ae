/* A program that writes checkpoints and knows nothing of Holdfast: STEPS files ck/ck.STEP.0 of BYTES, each in pieces of 1 MiB, with a pause of
   PAUSE_MS after each. Prints a line of JSON: of each step the seconds that the writes took, and those that open and close took.

     checkpoint_writer STEPS BYTES PAUSE_MS [remove]

   With "remove" each file is removed after its pause. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { piece = 1 << 20, most = 1000 };

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void print(const char* name, const double* values, long count, const char* end) {
  printf("\"%s\": [", name);
  for (long i = 0; i < count; ++i) printf("%s%.7f", i ? ", " : "", values[i]);
  printf("]%s", end);
}

int main(int count, char** arguments) {
  static double writes[most], doors[most];
  const long steps = count > 1 ? atol(arguments[1]) : 1, bytes = count > 2 ? atol(arguments[2]) : piece,
             pause_ms = count > 3 ? atol(arguments[3]) : 0;
  const int removes = count > 4 && !strcmp(arguments[4], "remove");
  char* data = malloc(piece);
  if (!data || steps > most) return 2;
  for (long i = 0; i < piece; ++i) data[i] = (char)(i * 2654435761u >> 13);
  mkdir("ck", 0777);
  for (long step = 1; step <= steps; ++step) {
    char name[64];
    snprintf(name, sizeof name, "ck/ck.%ld.0", step);
    const double begun = now();
    const int file = open(name, O_CREAT | O_WRONLY | O_TRUNC, 0644);
    const double opened = now();
    if (file < 0) return perror(name), 1;
    for (long at = 0; at < bytes; at += piece)
      if (write(file, data, piece) != piece) return perror(name), 1;
    const double written = now();
    if (close(file) != 0) return perror(name), 1;
    const double closed = now();
    writes[step - 1] = written - opened;
    doors[step - 1] = opened - begun + closed - written;
    if (pause_ms > 0) usleep((useconds_t)pause_ms * 1000);
    if (removes && unlink(name) != 0) return perror(name), 1;
  }
  printf("{");
  print("writes", writes, steps, ", ");
  print("doors", doors, steps, "}\n");
  return 0;
}
