/* Writes letters, each to a file of its own: letters WORD [FIRST [ELSEWHERE]]. It makes letter.N when make.N is there, and writes it when write.N is. With ELSEWHERE it makes
   that file instead of writing its first letter. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void wait_for(const char *what, int number) {
  char name[64];
  snprintf(name, sizeof name, "%s.%d", what, number);
  while (access(name, F_OK) != 0) usleep(5000);
}

int main(int count, char **words) {
  const char *word = count > 1 ? words[1] : "";
  for (int i = count > 2 ? atoi(words[2]) : 0; i < (int)strlen(word); ++i) {
    char name[64];
    snprintf(name, sizeof name, "letter.%d", i);
    wait_for("make", i);
    const int fd = open(name, O_CREAT | O_WRONLY | O_TRUNC, 0666);
    if (fd < 0) return 1;
    wait_for("write", i);
    if (count > 3 && i == atoi(words[2])) close(open(words[3], O_CREAT | O_WRONLY, 0666));
    if (write(fd, word + i, 1) != 1 || close(fd) != 0) return 1;
  }
  return 0;
}
