// Whether a protected file stands at a name. It is asked on the program's every call, so it costs a system call or two and allocates nothing (but for
// links of the user's own). Names are relative to a directory, as those of openat(2). errno stays as it is.
#pragma once
#include <sys/types.h>

namespace holdfast::tree {

// An open descriptor of a regular file that holds a stub. At most one fstat, and one small read for small files.
bool is_stub(int fd);
// The size that a stub can have; files of other sizes are not looked into.
bool stub_sized(mode_t mode, off_t size);
// A regular file of a stub's size, opened and looked into. `mode`: the permission bits of the file for which it stands.
bool is_stub_at(int directory, const char* path, mode_t* mode = nullptr);
// A stub, a link into a target, or whatever stands beside a sidecar (which says that the path is ours).
// A link of the user's own to a stub counts where the call would `follow` it.
bool is_protected(int directory, const char* path, bool follow = true);
// A link that Holdfast made to a whole copy: to programs it is the file.
bool is_link_of_ours(int directory, const char* path);
// The native call failed with `error`. Whether it is one of those that a lost target or a missing entry would cause, and the path is a protected
// file's all the same.
bool is_protected_after(int error, int directory, const char* path);

}  // namespace holdfast::tree
