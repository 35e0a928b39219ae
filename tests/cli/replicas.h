/* What the files of the program `replicas` share. */
#pragma once

enum { is_another = -1 };
/* Where it is none of those about clocks, or about memory, that. */
int run_clocks(const char *what, const char *path);
int run_memory(const char *what, const char *path);
