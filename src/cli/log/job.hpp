// A job as the child of `holdfast run`, where something has to be done once it has ended.
#pragma once
#include <signal.h>

#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

namespace holdfast::cli {

// From here on a pipe that nobody reads any more is an error (EPIPE), and no end of this process. What it becomes or starts has SIGPIPE as before.
void outlive_broken_pipes();

// Of these signals those that are not ignored. One that this process was started to ignore (nohup, a job in the background) stays so: blocked, it would
// be told of all the same.
sigset_t heeded(std::initializer_list<int> signals);

// This process becomes the command; returns only where that fails, errno says why.
void become(const std::vector<std::string>& command);

// Runs the command to its end and returns the code to end with: its own, or 128 + the signal that killed it, as a shell does.
// For the person and the batch system it is as if the command had been started directly. What is typed at the terminal reaches it, signals sent to
// this process are handed on, stopping stops both. It is told to end (SIGTERM) when this process is killed. -1 where it could not be started; errno
// says why.
int run_to_end(const std::vector<std::string>& command);

// Somebody wants the job to end: a signal that this process waits for, and was not started to ignore, says so. Launchers end with any status then.
void hear_of_signal(int number);
bool was_told_to_end();

// Standard input as it is now. A job that is started again is to get the same.
class Input {
 public:
  Input();
  // False where what was read of it does not come again.
  bool begin_again() const;

 private:
  bool is_file_ = false, may_be_read_ = false;
  int64_t begins_ = 0;
};

}  // namespace holdfast::cli
