/* What stdio says and leaves, for as_natively.py. Each case writes the file anew and prints what the calls answer. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <wchar.h>

static const char *path;

static FILE *must_open(const char *mode) {
  FILE *file = fopen(path, mode);
  if (!file) {
    printf("fopen %s: %s\n", mode, strerror(errno));
    exit(1);
  }
  return file;
}

static void print_line(const wchar_t *line) {
  if (!line) printf("(null)\n");
  for (; line && *line; line++) printf("%lx ", (unsigned long)*line);
  printf("\n");
}

/* Text of one, two, three and four bytes a character. */
static const wchar_t text[] = L"gr\u00fc\u00df \u20ac \U0001f600 end\n";

static void wide_text(void) {
  setlocale(LC_ALL, "C.UTF-8");
  FILE *file = must_open("w");
  printf("fwide %d\n", fwide(file, 0));
  printf("fwprintf %d\n", fwprintf(file, L"gr\u00fc\u00df %d %ls %s\n", 42, L"\u20ac", "bytes"));
  printf("fwide %d %d\n", fwide(file, 0), fwide(file, -1));
  printf("fputws %d\n", fputws(text, file) >= 0);
  for (int i = 0; i < 10000; i++) fputwc((wchar_t)(0x100 + i), file);
  printf("fputwc %lx putwc %lx\n", (unsigned long)fputwc(L'\u00e4', file), (unsigned long)putwc(L'\n', file));
  printf("ftell %ld\n", ftell(file));
  printf("fclose %d\n", fclose(file));
  wchar_t line[20000];
  file = must_open("r");
  printf("fwide %d\n", fwide(file, 1));
  print_line(fgetws(line, 20000, file));
  print_line(fgetws(line, 5, file));
  printf("ftell %ld\n", ftell(file));
  printf("getwc %lx\n", (unsigned long)getwc(file));
  printf("ungetwc %lx\n", (unsigned long)ungetwc(0x20ac, file));
  printf("getwc %lx\n", (unsigned long)fgetwc(file));
  print_line(fgetws(line, 20000, file));
  print_line(fgetws(line, 20000, file));
  printf("at the end %d %d %d\n", fgetwc(file) == WEOF, feof(file) != 0, ferror(file) != 0);
  rewind(file);
  printf("getwc %lx\n", (unsigned long)fgetwc(file));
  printf("fclose %d\n", fclose(file));
}

static void bytes_that_are_no_text(void) {
  setlocale(LC_ALL, "C.UTF-8");
  FILE *file = must_open("w");
  fwrite(
      "ab\xff"
      "cd\n\xe2\x82",
      1, 8, file);
  fclose(file);
  file = must_open("r");
  for (int i = 0; i < 3; i++) {
    errno = 0;
    const wint_t got = fgetwc(file);
    printf("%lx %s %d %d\n", (unsigned long)got, strerror(errno), ferror(file) != 0, feof(file) != 0);
  }
  fclose(file);
  setlocale(LC_ALL, "C");
  file = must_open("w");
  printf("fputwc %d\n", fputwc(L'a', file) == L'a');
  fclose(file);
}

/* The set's name in the mode, whatever the locale. */
static void character_sets(void) {
  static const char *const sets[] = {"UTF-8", "UTF-16LE", "ISO-8859-15"};
  for (int i = 0; i < 3; i++) {
    char mode[40];
    snprintf(mode, sizeof mode, "w,ccs=%s", sets[i]);
    FILE *file = must_open(mode);
    printf("fwide %d\n", fwide(file, 0));
    printf("fwprintf %d\n", fwprintf(file, L"a\u00fc\u20ac %05d\n", i));
    printf("fputws %d\n", fputws(L"second\n", file) >= 0);
    printf("fclose %d\n", fclose(file));
    snprintf(mode, sizeof mode, "r,ccs=%s", sets[i]);
    file = must_open(mode);
    wchar_t line[100];
    print_line(fgetws(line, 100, file));
    print_line(fgetws(line, 100, file));
    printf("end %d\n", fgetwc(file) == WEOF && feof(file));
    printf("fclose %d\n", fclose(file));
  }
  errno = 0;
  FILE *file = fopen(path, "r,ccs=NO-SUCH-SET");
  printf("no such set: %d %s\n", file != NULL, strerror(errno));
}

static void wide_scan(void) {
  setlocale(LC_ALL, "C.UTF-8");
  FILE *file = must_open("w");
  for (int i = 0; i < 30000; i++) fwprintf(file, L"%d w\u00f6rt%d %f;", i, i * 7, i / 4.0);
  fclose(file);
  file = must_open("r");
  long sum = 0;
  double fractions = 0;
  int got = 0, number = 0, times = 0;
  wchar_t word[100];
  double fraction = 0;
  while (times < 300 && (got = fwscanf(file, L"%d %99ls %lf;", &number, word, &fraction)) == 3) {
    sum += number + (long)wcslen(word);
    fractions += fraction;
    times++;
  }
  printf("%d %d %ld %g, then %lx at %ld\n", times, got, sum, fractions, (unsigned long)fgetwc(file), ftell(file));
  printf("mismatch %d\n", fwscanf(file, L"xyz%d", &number));
  printf("then %lx\n", (unsigned long)fgetwc(file));
  fseek(file, -3, SEEK_END);
  got = fwscanf(file, L"%d;%d", &number, &number);
  printf("last %d %d\n", got, number);
  printf("end %d\n", fwscanf(file, L"%d", &number));
  printf("feof %d\n", feof(file) != 0);
  fclose(file);
}

static void place_of_an_appending_stream(void) {
  FILE *file = must_open("w");
  fputs("0123456789", file);
  fclose(file);
  file = must_open("a");
  printf("ftell %ld\n", ftell(file));
  fputs("x", file);
  printf("ftell %ld\n", ftell(file));
  fclose(file);
  file = must_open("a+");
  printf("a+: ftell %ld\n", ftell(file));
  printf("a+: reads %c\n", fgetc(file));
  fclose(file);
  int fd = open(path, O_WRONLY);
  file = fdopen(fd, "a");
  printf("fdopen: ftell %ld\n", ftell(file));
  fclose(file);
  fd = open(path, O_WRONLY | O_APPEND);
  file = fdopen(fd, "a");
  printf("fdopen of an appending one: ftell %ld\n", ftell(file));
  fclose(file);
}

/* What the C library writes to and reads from without being told is what the program has put there. */
static void standard_streams_of_ones_own(void) {
  setlocale(LC_ALL, "C.UTF-8");
  FILE *const output = stdout, *const input = stdin;
  stdout = must_open("w");
  int wrote[6] = {wprintf(L"%d gr\u00fc\u00df\n", 42), putwchar(L'\u20ac') == L'\u20ac', putwchar_unlocked(L'\n') == L'\n'};
  wrote[3] = fclose(stdout);
  stdout = output;
  wchar_t word[20] = L"";
  int number = 0;
  stdin = must_open("r");
  wrote[4] = wscanf(L"%d %ls", &number, word);
  const wint_t end = getwchar(), euro = getwchar_unlocked(), last = getwchar();
  wrote[5] = getwchar() == WEOF;
  fclose(stdin);
  stdin = input;
  for (int i = 0; i < 6; i++) printf("%d ", wrote[i]);
  printf("%d %lx %lx %lx\n", number, (unsigned long)end, (unsigned long)euro, (unsigned long)last);
  print_line(word);
}

/* What another stream has written and flushed is there for a stream that is opened anew to read it. */
static void input_opened_anew(void) {
  FILE *file = must_open("w+");
  fputs("12 words\n", file);
  fflush(file);
  int number = 0;
  char word[20] = "";
  printf("freopen %d\n", freopen(path, "r", stdin) != NULL);
  printf("scanf %d", scanf("%d %19s", &number, word));
  printf(" %d %s\n", number, word);
  FILE *other = fopen("/dev/null", "r");
  other = freopen(path, "r", other);
  printf("fgets %s", fgets(word, sizeof word, other));
  fclose(other);
  fclose(file);
}

/* The number that standard output had is free, and the file gets it on its way to standard input. */
static void input_opened_anew_where_output_is_closed(void) {
  FILE *file = must_open("w");
  fputs("12 words\n", file);
  fclose(file);
  const int said = dup(1);
  dprintf(said, "fclose %d\n", fclose(stdout));
  dprintf(said, "freopen %d\n", freopen(path, "r", stdin) == stdin);
  int number = 0;
  char word[20] = "";
  dprintf(said, "scanf %d", scanf("%d %19s", &number, word));
  dprintf(said, " %d %s fileno %d\n", number, word, fileno(stdin));
  dprintf(said, "the next number is %d\n", open("/dev/null", O_RDONLY));
}

/* A stream whose number has been closed behind its back is opened anew on the lowest number that is free: its own. */
static void streams_opened_anew_on_closed_numbers(void) {
  FILE *file = must_open("w");
  fputs("12 words\n", file);
  fclose(file);
  const int said = dup(1);
  int number = 0;
  char word[20] = "";
  dprintf(said, "close %d\n", close(0));
  dprintf(said, "freopen %d\n", freopen(path, "r", stdin) == stdin);
  dprintf(said, "scanf %d", scanf("%d %19s", &number, word));
  dprintf(said, " %d %s fileno %d\n", number, word, fileno(stdin));
  dprintf(said, "close %d\n", close(1));
  dprintf(said, "freopen %d\n", freopen(path, "w", stdout) == stdout);
  dprintf(said, "printf %d\n", printf("by printf, "));
  dprintf(said, "fflush %d fileno %d\n", fflush(stdout), fileno(stdout));
  dprintf(said, "write %d\n", (int)write(1, "by write", 8));
  dprintf(said, "fclose %d\n", fclose(stdout));
}

int main(int argc, char **argv) {
  static const struct {
    const char *name;
    void (*run)(void);
  } cases[] = {{"wide_text", wide_text},
               {"bytes_that_are_no_text", bytes_that_are_no_text},
               {"character_sets", character_sets},
               {"wide_scan", wide_scan},
               {"place_of_an_appending_stream", place_of_an_appending_stream},
               {"standard_streams_of_ones_own", standard_streams_of_ones_own},
               {"input_opened_anew", input_opened_anew},
               {"input_opened_anew_where_output_is_closed", input_opened_anew_where_output_is_closed},
               {"streams_opened_anew_on_closed_numbers", streams_opened_anew_on_closed_numbers}};
  path = argv[2];
  for (size_t i = 0; argc == 3 && i < sizeof cases / sizeof *cases; i++)
    if (strcmp(cases[i].name, argv[1]) == 0) return cases[i].run(), 0;
  return 2;
}
