// A protected file that is executed. The kernel sees the note at its path and says ENOEXEC; what a script's first line asks for is done here.
#pragma once
#include <string>
#include <vector>

namespace holdfast::intercept::posix {

// After an exec of `path` has failed with ENOEXEC. Back with errno as it was where that is no script that is served by us, else with the
// interpreter's own.
void become_interpreter(const char* path, char* const* words, char* const* environment);

// What is to be started in the place of such a script: the words of its interpreter, empty where `path` is none of that.
class InterpreterWords {
 public:
  InterpreterWords(const char* path, char* const* words);
  explicit operator bool() const { return !interpreter_.empty(); }
  char* const* words() const { return all_.data(); }
  const char* path() const { return all_[0]; }

 private:
  std::vector<std::string> interpreter_;
  std::vector<char*> all_;
};

}  // namespace holdfast::intercept::posix
