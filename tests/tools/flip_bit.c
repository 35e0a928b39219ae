/* A soft error: flips one bit in another process's memory. flip_bit PID PATTERN OFFSET BIT
 *
 * PATTERN is what lies there (hexadecimal digits); the bit is BIT (0 to 7) of the byte OFFSET bytes behind the pattern's first, at every place
 * in the process's private writable memory where the pattern begins at a multiple of 8. Prints the number of such places; exit status 1 where
 * there is none. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { most_pattern = 4096, alignment = 8 };
static unsigned char pattern[most_pattern];
static size_t length;

static int read_pattern(const char *text) {
  for (; text[0] && text[1] && length < most_pattern; text += 2, ++length)
    if (sscanf(text, "%2hhx", &pattern[length]) != 1) return 0;
  return length > 0;
}

static long flip_all(int memory, uint64_t from, uint64_t to, long offset, int bit) {
  long found = 0;
  unsigned char *all = malloc(to - from);
  if (!all || pread(memory, all, to - from, (off_t)from) != (ssize_t)(to - from)) {
    free(all);
    return 0;
  }
  for (uint64_t at = 0; at + length <= to - from; at += alignment) {
    if (memcmp(all + at, pattern, length) != 0) continue;
    unsigned char byte = all[at + (uint64_t)offset] ^ (unsigned char)(1 << bit);
    found += pwrite(memory, &byte, 1, (off_t)(from + at) + offset) == 1;
  }
  free(all);
  return found;
}

int main(int argc, char **argv) {
  char name[64], line[512];
  if (argc != 5 || !read_pattern(argv[2]) || atol(argv[3]) < 0 || (size_t)atol(argv[3]) >= length || atoi(argv[4]) < 0 || atoi(argv[4]) > 7) {
    fprintf(stderr, "usage: flip_bit PID PATTERN OFFSET BIT\n");
    return 2;
  }
  snprintf(name, sizeof name, "/proc/%d/maps", atoi(argv[1]));
  FILE *maps = fopen(name, "r");
  snprintf(name, sizeof name, "/proc/%d/mem", atoi(argv[1]));
  int memory = open(name, O_RDWR | O_CLOEXEC);
  if (!maps || memory < 0) {
    perror(name);
    return 2;
  }
  long found = 0;
  unsigned long from, to;
  while (fgets(line, sizeof line, maps)) {
    char rights[8];
    if (sscanf(line, "%lx-%lx %7s", &from, &to, rights) == 3 && strcmp(rights, "rw-p") == 0)
      found += flip_all(memory, from, to, atol(argv[3]), atoi(argv[4]));
  }
  printf("%ld\n", found);
  return found > 0 ? 0 : 1;
}
