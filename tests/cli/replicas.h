/* What the files of the program `replicas` share. */
#pragma once

/* As the kernel shows it to each replica for itself: what this process was started with. */
int is_of_team(char team);

enum { is_another = -1 };
/* Where it is none of those about clocks, or about memory, that. */
int run_clocks(const char *what, const char *path);
int run_memory(const char *what, const char *path);
