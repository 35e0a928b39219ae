// What the outside world says of names, the same in all replicas of a rank: each asks for itself, and the leader's answer is everybody's. One load
// where this process is no replica.
#pragma once
#include <time.h>

#include <cstring>
#include <functional>
#include <string>

#include "base/in_mpi.hpp"
#include "base/quiet_thread.hpp"
#include "frontend/posix/callers.hpp"
#include "intercept/posix/real.hpp"
#include "redundant/twins/replica.hpp"

namespace holdfast::intercept::posix {

// A door of ours asks by other doors, for the program.
inline __thread bool asks_for_program __attribute__((tls_model("initial-exec"))) = false;
class ForProgram {
 public:
  explicit ForProgram(bool yes) : before_(asks_for_program) { asks_for_program |= yes; }
  ~ForProgram() { asks_for_program = before_; }
  ForProgram(const ForProgram&) = delete;
  ForProgram& operator=(const ForProgram&) = delete;

 private:
  const bool before_;
};

// Null: the call passes. What MPI's own libraries ask is each process's own.
inline redundant::Replica* replica_for(const void* caller) {
  redundant::Replica* const replica = redundant::Replica::now();
  if (!replica || inside > 0 || in_mpi_calls > 0 || in_quiet_thread) [[likely]]
    return nullptr;
  return asks_for_program || frontend::posix::is_of_the_program(caller) ? replica : nullptr;
}

// What decisions about a path go by: the path's text, for what lies there may be another thing in each replica. Empty: each replica's own.
std::string name_asked(const redundant::Replica& replica, int directory, const char* path);
// Of a descriptor that the program has got by a name.
void note_name(int fd, const std::string& name);
std::string name_of_number(int fd);
void name_duplicate(int fd, int duplicate);

// The leader's answer about the name: what a call has returned, what it has filled, and errno.
struct Told {
  int64_t result = 0, error = 0;
};
Bytes told(redundant::Replica& replica, const char* kind, const std::string& name, const std::function<Bytes()>& ask);
// `bytes` at `into` become those of the leader, where the call has succeeded there.
int told(redundant::Replica& replica, const char* kind, const std::string& name, int result, void* into, size_t bytes);

// An open of the program's: `open_now` opens, or `open_as_one` where each read of the file is to be one call of all replicas.
int open_as_told(redundant::Replica& replica, int directory, const char* path, int flags, const std::function<int()>& open_now,
                 const std::function<int()>& open_as_one);

// A time that the program has made of what it was told, by this node's own clock.
timespec own_time(clockid_t which, const timespec& told);

// --- descriptors of the system's random numbers
inline std::atomic<bool> random_is_open{false};
bool is_random_number(int fd);
inline bool is_random(int fd) { return random_is_open.load(std::memory_order_relaxed) && inside == 0 && is_random_number(fd); }
ssize_t read_random(void* into, size_t bytes);

}  // namespace holdfast::intercept::posix
