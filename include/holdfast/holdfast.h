/* Holdfast, asked by a program that wants to know. Nothing here is needed to be protected.
 *
 * The functions are in the libraries that `holdfast run` preloads. They are weak: a program that uses them needs no
 * library when it is linked, and finds holdfast_present() false if it was started without Holdfast.
 *
 *   if (holdfast_present() && holdfast_file_health("out.dat", text, sizeof text) != HOLDFAST_HEALTHY) puts(text);
 */
#ifndef HOLDFAST_HOLDFAST_H
#define HOLDFAST_HOLDFAST_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

#ifndef HOLDFAST_API
#define HOLDFAST_API __attribute__((weak))
#endif

enum holdfast_health {
  HOLDFAST_UNKNOWN = -1,     /* it cannot be told; the sentence says why */
  HOLDFAST_HEALTHY = 0,      /* as many targets may be lost as the scheme tolerates */
  HOLDFAST_DEGRADED = 1,     /* everything can be read; redundancy is missing */
  HOLDFAST_LOST = 2,         /* something cannot be read */
  HOLDFAST_NOT_PROTECTED = 3 /* an ordinary path, or none */
};

/* "0.1.0". The text lives as long as the program. */
HOLDFAST_API const char *holdfast_version(void);

/* The health of the file at `path`, from manifests, markers and sizes, as `holdfast status` has it. The data is not read. It asks every
 * target, so it takes milliseconds, or a deadline if one hangs. Not collective. A sentence that says what is lost goes to `sentence`:
 * at most `bytes` bytes with a closing zero, empty if all is well. `sentence` may be NULL. Does not touch errno. */
HOLDFAST_API int holdfast_file_health(const char *path, char *sentence, size_t bytes);

/* In a job with checkpoints (holdfast run --checkpoint): this rank has written all its files of checkpoint `step`. They may still be open, and count
 * when they are closed. Each rank calls it for itself, also one that writes no file. It has an effect only if a pattern has wildcards: otherwise the
 * names of the files say how many there are. Not collective. Returns 0, or -1 and errno (ENOENT if the job keeps no checkpoints). */
HOLDFAST_API int holdfast_checkpoint_complete(unsigned long long step);

#define holdfast_present() (&holdfast_version != NULL)

#ifdef __cplusplus
}
#endif

#endif
