// stdio's corners.
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <wchar.h>

static void say(const char* what, long value) { printf("%s %ld\n", what, value); }
int main(void) {
  char text[100] = "", big[70000];
  FILE* f = fopen("a.dat", "w+");
  say("setvbuf", setvbuf(f, NULL, _IOFBF, 100000));
  for (int i = 0; i < 5000; ++i) fprintf(f, "%d,", i);
  rewind(f);
  int number = -1;
  say("scanf", fscanf(f, "%d,", &number)), say("number", number);
  say("ungetc", ungetc('Z', f)), say("getc", getc(f)), say("tell", ftell(f));
  say("seek", fseek(f, 1000, SEEK_END)), fputs("beyond", f), say("tell", ftell(f));
  fflush(f), say("truncate", ftruncate(fileno(f), 30000)), say("seek", fseeko(f, -5, SEEK_END)), say("read", fread(text, 1, 10, f));
  say("eof", feof(f) != 0), clearerr(f), say("close", fclose(f));
  f = fopen("b.dat", "a+");
  fputs("one\n", f), rewind(f), fputs("two\n", f), say("tell", ftell(f)), rewind(f);
  while (fgets(text, sizeof text, f)) fputs(text, stdout);
  f = freopen("c.dat", "w", f);
  say("freopen", f != NULL), fputs("in c\n", f), fclose(f);
  f = fopen("d.dat", "w");
  fputs("in d\n", f);
  f = freopen("e.dat", "w", f);
  fputs("in e\n", f);
  f = freopen("/dev/null", "w", f);
  fputs("nowhere\n", f), fclose(f);
  f = fopen("d.dat", "r"), say("gets", fgets(text, 100, f) != NULL), fputs(text, stdout), fclose(f);
  say("wx", fopen("d.dat", "wx") == NULL && errno == EEXIST);
  f = fopen("d.dat", "r+"), fputs("OUT", f), fseek(f, 0, SEEK_CUR), say("getc", getc(f)), fclose(f);
  f = fopen("f.dat", "wb"), setbuf(f, NULL), fwrite("abc", 1, 3, f), fputc('d', f), say("tell", ftell(f)), fclose(f);
  f = fopen("f.dat", "rb"), say("write to r", fputc('x', f)), say("error", ferror(f) != 0), fclose(f);
  f = fdopen(open("g.dat", O_RDWR | O_CREAT, 0600), "w+"), fputs("fdopen", f), fflush(f), say("pread", pread(fileno(f), text, 6, 0)), fclose(f);
  f = fopen("h.dat", "w"), fprintf(f, "%ls", L"wide"), fputwc(L'x', f), fclose(f);
  f = fopen("i.dat", "w"), memset(big, 'b', sizeof big), say("big", fwrite(big, 1, sizeof big, f)),
  say("position", lseek(fileno(f), 0, SEEK_CUR) <= 70000), fclose(f);
  char* line = NULL;
  size_t room = 0;
  f = fopen("a.dat", "r"), say("getdelim", getdelim(&line, &room, 44, f));
  fpos_t at;
  fgetpos(f, &at), getdelim(&line, &room, ',', f), fsetpos(f, &at), say("getline", getline(&line, &room, f)), fclose(f);
  FILE* many[300];
  for (int i = 0; i < 300; ++i) many[i] = fopen("j.dat", i ? "r+" : "w"), fprintf(many[i], "%d", i);
  for (int i = 0; i < 300; ++i) fseek(many[i], i * 4L, SEEK_SET), fprintf(many[i], "%4d", i);
  for (int i = 0; i < 300; ++i) fclose(many[i]);
  fprintf(stdout, "%s\n", freopen("k.dat", "w", stdout) ? "into k" : "not");
  printf("more\n");
  dprintf(1, "unordered?\n");
  fflush(stdout);
  system("echo from a child");
  fprintf(fopen("l.dat", "w"), "never closed");
  f = fopen("m.dat", "w"), fputs("before exit", f);
  exit(0);
}
