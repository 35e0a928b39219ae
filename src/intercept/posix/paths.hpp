// Whether a protected file stands at a path: asked on the program's every call, so it costs a system call or two and
// allocates nothing.
#pragma once
#include <sys/types.h>

#include <string>

namespace holdfast::intercept::posix {

// An open descriptor of a regular file that holds a stub. At most one fstat, and one small read for small files.
bool is_stub(int fd);
// The size that a stub can have; files of other sizes are not looked into.
bool stub_sized(mode_t mode, off_t size);
// A regular file of a stub's size, opened and looked into. `mode`: the permission bits of the file for which it stands.
bool is_stub_at(int directory, const char* path, mode_t* mode = nullptr);
// What access(2) says of a stub, which nobody may write to, is no answer for the file: this is the file's, -1 and errno. `identity`: 0, or
// AT_EACCESS.
int access_of_file(int directory, const char* path, int wanted, int identity);
// False and EACCES where the permissions of the file for which a stub stands say no. What is no stub is asked for them where it lies.
bool is_allowed(int directory, const char* path, int wanted);
// A stub, a link into a target, or whatever stands beside a sidecar (which says that the path is ours).
// A link of the user's own to a stub counts where the call would `follow` it.
bool is_protected(int directory, const char* path, bool follow = true);
// A link that Holdfast made to a whole copy: to programs it is the file. Leaves errno as it is.
bool is_link_of_ours(int directory, const char* path);
// The native call failed with `error`: whether it is one of those that a lost target or a missing entry would cause
// and the path is a protected file's all the same. Leaves errno as it is.
bool is_protected_after(int error, int directory, const char* path);

// For the catalog: absolute, or relative to the working directory.
std::string full_path(int directory, const char* path);

// What an open descriptor leads to; empty for what has no name.
std::string path_behind(int fd);

// One line on standard error, which begins with the path where the sentence does not begin with it itself.
void complain(const std::string& path, const std::string& sentence);

}  // namespace holdfast::intercept::posix
