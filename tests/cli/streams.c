// A known number of calls on streams, of each kind. usage: streams write|read|places|print FILE
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static FILE* open_or_die(const char* path, const char* mode) {
  FILE* file = fopen(path, mode);
  if (!file) perror(path), exit(1);
  return file;
}

// 1000 x 512 + 300 x 1 + 10 x 6 + 5 x 4 bytes
static void write_pieces(const char* path) {
  char piece[512];
  memset(piece, 'x', sizeof piece);
  FILE* file = open_or_die(path, "w");
  for (int i = 0; i < 1000; ++i) fwrite(piece, 1, sizeof piece, file);
  for (int i = 0; i < 300; ++i) fputc('y', file);
  for (int i = 0; i < 10; ++i) fprintf(file, "%05d\n", i);
  for (int i = 0; i < 5; ++i) fputs("abc\n", file);
  fflush(file);
  fclose(file);
}

static void read_pieces(const char* path) {
  char piece[512], line[100];
  int number = 0;
  FILE* file = open_or_die(path, "r");
  for (int i = 0; i < 1000; ++i)
    if (fread(piece, 1, sizeof piece, file) != sizeof piece) exit(1);
  for (int i = 0; i < 300; ++i)
    if (getc(file) != 'y') exit(1);
  for (int i = 0; i < 9; ++i)
    if (fscanf(file, "%d ", &number) != 1 || number != i) exit(1);
  while (fgets(line, sizeof line, file)) {
  }
  fclose(file);
}

// Forward, backward, and to where the file ends; a descriptor as a stream; a stream that goes elsewhere.
static void change_places(const char* path) {
  char piece[100] = "piece";
  FILE* file = fdopen(open(path, O_CREAT | O_RDWR | O_TRUNC, 0666), "w+");
  for (int i = 0; i < 4; ++i) {
    fseek(file, i * 1000L, SEEK_SET);
    fwrite(piece, 1, sizeof piece, file);
  }
  fseek(file, -100, SEEK_END);
  if (fread(piece, 1, sizeof piece, file) != sizeof piece || ftell(file) != 3100) exit(1);
  rewind(file);
  if (fread(piece, 1, sizeof piece, file) != sizeof piece) exit(1);
  char other[4096];
  snprintf(other, sizeof other, "%s.2", path);
  file = freopen(other, "w", file);
  fputs("elsewhere", file);
  fclose(file);
}

int main(int count, char** words) {
  if (count != 3) return 2;
  if (!strcmp(words[1], "write")) write_pieces(words[2]);
  if (!strcmp(words[1], "read")) read_pieces(words[2]);
  if (!strcmp(words[1], "places")) change_places(words[2]);
  if (!strcmp(words[1], "print"))
    for (int i = 0; i < 100; ++i) printf("line %02d\n", i);
  fclose(open_or_die("/dev/null", "w"));
  fclose(open_or_die("/etc/passwd", "r"));
  return fopen("no such file", "r") != NULL;
}
