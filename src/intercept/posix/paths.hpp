// Paths as the program's calls name them.
#pragma once
#include <sys/types.h>

#include <string>
#include <vector>

#include "tree/look.hpp"
#include "tree/tree.hpp"

namespace holdfast::intercept::posix {

using tree::is_link_of_ours;
using tree::is_protected;
using tree::is_protected_after;
using tree::is_stub;
using tree::is_stub_at;
using tree::stub_sized;

// Wherever it leads. O_NOFOLLOW refuses it.
bool is_link_of_the_program(int directory, const char* path);

// What access(2) says of a stub, which nobody may write to, is no answer for the file: this is the file's, -1 and errno. `identity`: 0, or
// AT_EACCESS.
int access_of_file(int directory, const char* path, int wanted, int identity);
// False and EACCES where the permissions of the file for which a stub stands say no. What is no stub is asked for them where it lies.
bool is_allowed(int directory, const char* path, int wanted);

// For the catalog: absolute, or relative to the working directory.
std::string full_path(int directory, const char* path);

// What an open descriptor leads to; empty for what has no name.
std::string path_behind(int fd);

// One line on standard error, which begins with the path where the sentence does not begin with it itself. One that comes
// again and again is said the first, second, fourth, eighth time, with their number.
void complain(const std::string& path, const std::string& sentence);
// While it lives, what this thread would say is held back: a call that one replica makes for all is told of by all.
class HeldComplaints {
 public:
  HeldComplaints();
  ~HeldComplaints();
  HeldComplaints(const HeldComplaints&) = delete;
  HeldComplaints& operator=(const HeldComplaints&) = delete;
  std::vector<tree::Line> lines;

 private:
  HeldComplaints* const before_;
};

}  // namespace holdfast::intercept::posix
