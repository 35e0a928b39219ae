/* loads LIBRARY FILE: loads a library that asks for the time while it is being loaded, after a while, as modules of Python ask for random numbers.
 * Compiled with -DLIBRARY it is that library. */
#include <dlfcn.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#ifdef LIBRARY
long answer;
__attribute__((constructor)) static void begin(void) {
  struct timespec now;
  sleep(3);
  clock_gettime(CLOCK_REALTIME, &now);
  answer = now.tv_sec * 1000000000 + now.tv_nsec;
}
#else
int main(int count, char **words) {
  (void)count;
  FILE *file = fopen(words[2], "w");
  void *library = dlopen(words[1], RTLD_NOW);
  fprintf(file, "%ld\n", library ? *(long *)dlsym(library, "answer") : 0);
  return fclose(file);
}
#endif
