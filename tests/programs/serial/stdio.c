/* stdio as programs use it: formatted and binary, all modes and kinds of buffering, seeks, renames, and a file that is never closed. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <sys/stat.h>
#include "pause.h"

#define CHECK(what)                                                           \
  do {                                                                        \
    if (!(what)) {                                                            \
      fprintf(stderr, "line %d: %s: %s\n", __LINE__, #what, strerror(errno)); \
      exit(1);                                                                \
    }                                                                         \
  } while (0)

static char prefix[1000], name[2000];
static const char *file(const char *tail) {
  snprintf(name, sizeof name, "%s.%s", prefix, tail);
  return name;
}

static void text(void) {
  FILE *out = fopen(file("text"), "w");
  CHECK(out && fileno(out) >= 0 && fileno_unlocked(out) == fileno(out));
  for (int i = 0; i < 20000; ++i) CHECK(fprintf(out, "%d %.3f %s\n", i, i / 7.0, "some words") > 0);
  half_way(prefix);
  CHECK(fputs("the end\n", out) >= 0 && putc('!', out) == '!');
  const long at = ftell(out);
  CHECK(fclose(out) == 0);
  struct stat state;
  CHECK(stat(file("text"), &state) == 0 && state.st_size == at);
  FILE *in = fopen(file("text"), "r");
  char line[200];
  int lines = 0;
  CHECK(in);
  while (fgets(line, sizeof line, in)) ++lines;
  CHECK(lines == 20002 && feof(in) && !ferror(in));
  rewind(in);
  int number = -1;
  double fraction = -1;
  CHECK(fscanf(in, "%d %lf", &number, &fraction) == 2 && number == 0 && fraction == 0);
  CHECK(fputc('x', in) == EOF && fclose(in) == 0);
}

static void binary(int kind, size_t buffer, const char *tail) {
  static unsigned char block[70000], back[70000];
  FILE *out = fopen(file(tail), "w+b");
  CHECK(out && setvbuf(out, NULL, kind, buffer) == 0);
  for (int i = 0; i < 30; ++i) {
    memset(block, 'a' + i, sizeof block);
    CHECK(fwrite(block, 1, 512 + 1111 * (size_t)i, out) == 512 + 1111 * (size_t)i);
  }
  CHECK(fseeko(out, 1000, SEEK_SET) == 0 && fwrite("in the middle", 1, 13, out) == 13);
  CHECK(fseeko(out, 995, SEEK_SET) == 0 && fread(back, 1, 20, out) == 20 && memcmp(back + 5, "in the middle", 13) == 0);
  CHECK(fseeko(out, (off_t)3 << 30, SEEK_SET) == 0 && ftello(out) == (off_t)3 << 30);
  CHECK(fread(back, 1, 1, out) == 0 && feof(out));
  CHECK(fseeko(out, -4, SEEK_END) == 0 && fwrite("last", 1, 4, out) == 4 && fflush(out) == 0);
  CHECK(fclose(out) == 0);
}

static void modes(void) {
  FILE *f = fopen(file("modes"), "wx");
  CHECK(f && fputs("first ", f) >= 0 && fclose(f) == 0);
  CHECK(fopen(file("modes"), "wx") == NULL && errno == EEXIST);
  f = fopen(file("modes"), "a");
  CHECK(f && fputs("second ", f) >= 0 && ftell(f) == 13 && fclose(f) == 0);
  f = fopen(file("modes"), "a+");
  char back[50] = "";
  CHECK(f && fseek(f, 0, SEEK_SET) == 0 && fread(back, 1, 6, f) == 6 && strcmp(back, "first ") == 0);
  CHECK(fseek(f, 0, SEEK_SET) == 0 && fputs("third ", f) >= 0 && fclose(f) == 0);
  f = fopen(file("modes"), "r+");
  CHECK(f && fgetc(f) == 'f' && ungetc('F', f) == 'F' && fgetc(f) == 'F');
  CHECK(fseek(f, 0, SEEK_SET) == 0 && fputc('F', f) == 'F' && fclose(f) == 0);
  CHECK(fopen(file("absent"), "r") == NULL && errno == ENOENT);
  const int fd = open(file("modes"), O_RDWR);
  f = fdopen(fd, "r+");
  CHECK(f && fseek(f, 0, SEEK_END) == 0 && ftell(f) == 19 && fprintf(f, "%s", "fourth") == 6 && fclose(f) == 0);
  CHECK(write(fd, "x", 1) == -1 && errno == EBADF);
}

static void renamed(void) {
  char to[2000];
  FILE *out = fopen(file("new"), "w");
  CHECK(out && fputs("a whole new one\n", out) >= 0 && fflush(out) == 0 && fsync(fileno(out)) == 0 && fclose(out) == 0);
  strcpy(to, file("kept"));
  out = fopen(to, "w");
  CHECK(out && fputs("an old one\n", out) >= 0 && fclose(out) == 0);
  CHECK(rename(file("new"), to) == 0);
  out = fopen(file("gone"), "w");
  CHECK(out && fputs("x", out) >= 0 && remove(file("gone")) == 0 && fputs("y", out) >= 0 && fclose(out) == 0);
}

int main(int argc, char **argv) {
  if (argc != 2) return 2;
  snprintf(prefix, sizeof prefix, "%s", argv[1]);
  text();
  binary(_IOFBF, 1 << 20, "buffered");
  binary(_IONBF, 0, "unbuffered");
  binary(_IOLBF, 4096, "by_line");
  modes();
  renamed();
  FILE *open_at_exit = fopen(file("open_at_exit"), "w");
  CHECK(open_at_exit && fprintf(open_at_exit, "%0100000d", 7) == 100000);
  return 0;
}
