/* Before every source of glibc's tests and of their support library: what the headers of glibc's own build say there. */
#pragma once
#include <errno.h>
#include <features.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#define TIMEOUTFACTOR 1
#define attribute_hidden
#define libc_hidden_proto(name)
#define libc_hidden_def(name)
#define __set_errno(number) (errno = (number))
#undef __always_inline
#define __always_inline inline __attribute__((always_inline))
