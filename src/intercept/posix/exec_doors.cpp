// Doors to another image, and to other processes: what was written is on storage before they look. A protected file's descriptor crosses
// an exec by itself (descriptors.hpp).
#include <spawn.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstring>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "base/config.hpp"
#include "base/in_mpi.hpp"
#include "base/rank_variables.hpp"
#include "base/raw_syscalls.hpp"
#include "catalog/executable.hpp"
#include "catalog/probe.hpp"
#include "frontend/posix/taking_part.hpp"
#include "intercept/posix/as_one.hpp"
#include "intercept/posix/checkpoints.hpp"
#include "intercept/posix/children.hpp"
#include "intercept/posix/descriptors.hpp"
#include "intercept/posix/paths.hpp"
#include "intercept/posix/script.hpp"
#include "intercept/posix/settings.hpp"
#include "intercept/posix/spawn_actions.hpp"
#include "intercept/posix/stand_in.hpp"
#include "profile/piece.hpp"
#include "redundant/child.hpp"
#include "redundant/orders.hpp"
#include "redundant/twins/replica.hpp"
#include "service/helper_process.hpp"

extern char** environ;

namespace {

using namespace holdfast::intercept::posix;
using holdfast::catalog::takes_no_library;
namespace redundant = holdfast::redundant;

// The files that a glob names, of a program that will not be served. In a job, rank 0 speaks for all.
bool is_under_a_policy(char* const* environment) {
  if (settings().path_globs.empty() && !settings().protects()) return false;
  for (const char* name : holdfast::rank_variables)
    for (char* const* at = environment; at && *at; ++at)
      if (const size_t length = std::strlen(name); std::strncmp(*at, name, length) == 0 && (*at)[length] == '=')
        return std::strcmp(*at + length, "=0") == 0;
  return true;
}

bool names_the_library(char* const* environment) {
  for (char* const* at = environment; at && *at; ++at)
    if (std::strncmp(*at, "LD_PRELOAD=", 11) == 0) return std::strstr(*at, "libholdfast") != nullptr;
  return false;
}
// Whether this process has come by its library so. What a program does to its own environment later on does not count.
bool loaded_by_environment = false;
__attribute__((constructor)) void look_at_environment(int, char**, char** environment) { loaded_by_environment = names_the_library(environment); }

// The image that an exec leads to. A name that is searched for leads to what is linked dynamically, as almost all is.
bool takes_the_library(const char* path, char* const* environment) {
  const bool takes_none = path && std::strchr(path, '/') && takes_no_library(path);
  return !takes_none && (!loaded_by_environment || names_the_library(environment));
}

// `given`: protected files are open for it that this process's own table does not show as inherited.
void warn_of(const char* path, char* const* environment, bool given = false) {
  const OurCode ours_now;
  if (!path) return;
  const bool searched = !std::strchr(path, '/');
  const bool takes_none = !searched && takes_no_library(path);
  struct stat state;
  if (!takes_none && (!loaded_by_environment || names_the_library(environment))) return;
  if (!takes_none && !searched && holdfast::raw::fstatat(AT_FDCWD, path, &state, 0) != 0) return;  // will not be started
  // Asked last: a child of a program with threads calls exec, and must not allocate where there is nothing to say.
  if (holdfast::service::is_helper(path)) return;  // which has no files of the program's
  const std::string why = takes_none ? "is linked statically or runs with other rights, so Holdfast cannot serve it: "
                                     : "is started with an environment that lacks LD_PRELOAD, so Holdfast cannot serve it: ";
  if (given || inherits_any()) complain(path, why + "the descriptors of protected files that it inherits are closed to it");
  else if (is_under_a_policy(takes_none ? environment : environ))
    complain(path, why + (takes_none ? "its files stay plain; link it dynamically" : "its files stay plain; keep LD_PRELOAD and HOLDFAST_* in it"));
}

// Where the kernel is about to start something. Empty where it will refuse.
std::string program_at(const std::string& path) {
  struct stat state;
  char begin[4] = {};
  const holdfast::raw::Fd file(holdfast::raw::openat(AT_FDCWD, path.c_str(), O_RDONLY | O_CLOEXEC));
  const bool is_one = file && holdfast::raw::fstat(file.get(), &state) == 0 && S_ISREG(state.st_mode) &&
                      faccessat(AT_FDCWD, path.c_str(), X_OK, AT_EACCESS) == 0 && holdfast::raw::pread(file.get(), begin, sizeof begin, 0) > 0;
  const bool has_a_form = std::memcmp(begin, "#!", 2) == 0 || std::memcmp(begin, "\177ELF", 4) == 0;
  return is_one && has_a_form ? path : "";
}
// By the kernel's own search; empty where `look` finds nothing in any folder.
template <class Look>
std::string look_for(const char* path, Look look) {
  const OurCode ours_now;
  if (!path || !*path) return "";
  if (std::strchr(path, '/')) return look(path);
  const std::string all = holdfast::environment_variable("PATH");
  std::istringstream folders(all.empty() ? "/bin:/usr/bin" : all);
  for (std::string folder; std::getline(folders, folder, ':');)
    if (std::string program = look((folder.empty() ? "." : folder) + "/" + path); !program.empty()) return program;
  return "";
}
std::string program_of(const char* path) { return look_for(path, program_at); }

// In a redundant job. Of what is not there nobody is told.
void tell_of_unseen(const char* path, char* const* words, char* const* environment) {
  if (!path || inside > 0 || holdfast::in_mpi_calls > 0 || !holdfast::frontend::posix::may_be_of_a_replica()) return;
  if (takes_the_library(path, environment)) return;
  const auto is_there = [](const std::string& name) { return faccessat(AT_FDCWD, name.c_str(), X_OK, AT_EACCESS) == 0 ? name : ""; };
  if (look_for(path, is_there).empty()) return;
  const OurCode ours_now;
  if (holdfast::service::is_helper(path)) return;
  holdfast::frontend::posix::tell_of_unseen(path, words,
                                            std::strchr(path, '/') && takes_no_library(path) ? "is linked statically, or runs with other rights"
                                                                                             : "is started without LD_PRELOAD");
}

// The program's environment, with what makes the next image the same rank's replica.
class Environment {
 public:
  Environment(char* const* given, const std::string& orders) : added_{std::string(redundant::orders_variable) + "=" + orders} {
    for (const char* name : {"HOLDFAST_RANK", redundant::ranks_before_variable})
      if (const std::string own = holdfast::environment_variable(name); !own.empty()) added_.push_back(std::string(name) + "=" + own);
    for (char* const* at = given; at && *at; ++at)
      if (!is_added(*at)) all_.push_back(*at);
    for (std::string& one : added_) all_.push_back(one.data());
    all_.push_back(nullptr);
  }
  char* const* get() const { return all_.data(); }

 private:
  bool is_added(std::string_view word) const {
    return std::any_of(added_.begin(), added_.end(), [&](const std::string& one) { return word.starts_with(one.substr(0, one.find('=') + 1)); });
  }
  std::vector<std::string> added_;
  std::vector<char*> all_;
};

// Of a rank of a redundant job: with all its twins. There is no way back.
template <class Native>
int become_as_replica(redundant::Replica& replica, const std::string& program, char* const* environment, Native native_with) {
  const OurCode ours_now;
  if (!takes_the_library(program.c_str(), environment))
    replica.cannot_catch_up(program + " takes its place, which is linked statically, or is started without LD_PRELOAD: it would be no replica");
  if (any_watched())
    replica.cannot_catch_up(program + " takes its place while files are open that replicas write as one; close them before, or start it at once");
  const Environment changed(environment, replica.becomes(program));
  (void)checkpoints_handed_over(true);
  holdfast::profile::process_ends();
  holdfast::target::end_idle_companions();
  (void)native_with(changed.get());
  replica.cannot_catch_up(program + " cannot be started: " + std::strerror(errno));
  return -1;
}

// The exec itself; back only where it failed.
template <class Native>
int become(const char* path, char* const* words, char* const* environment, Native native_with) {
  const auto native = [=] { return native_with(environment); };
  if (inside > 0) return native();
  tell_of_unseen(path, words, environment);
  warn_of(path, environment);
  if (!of_this_process()) {
    give_numbers_back_after_vfork();
    ProcessFile::hand_over(true);  // its descriptors are its own
    return native();
  }
  if (auto* const replica = redundant::Replica::now(); replica && holdfast::in_mpi_calls == 0) [[unlikely]]
    if (const std::string program = program_of(path); !program.empty()) return become_as_replica(*replica, program, environment, native_with);
  const bool served = any_watched();
  if (served) {
    share_locks();
    give_numbers_back();
    (void)let_go_of_all();
    ProcessFile::hand_over(true);
    if (asks_before_appends() && path && !takes_the_library(path, environment)) give_natives_to_append();
  }
  const bool handed = checkpoints_handed_over(takes_the_library(path, environment));
  holdfast::profile::process_ends();  // the image that comes has a piece of its own
  holdfast::catalog::end_idle_lanes();
  const int result = native();
  const int error = errno;
  holdfast::profile::process_goes_on();
  if (handed) checkpoints_not_handed_over();
  if (served) {
    ProcessFile::hand_over(false);
    stand_in_again();
  }
  return errno = error, result;
}

// Another process that may look at files by name, or through what it inherits.
template <class Native>
auto start(const char* path, char* const* environment, Native native, bool given = false) -> decltype(native()) {
  if (inside == 0) warn_of(path, environment, given);
  if (inside == 0 && of_this_process() && any_watched()) {
    share_locks();
    give_numbers_back();  // the other process may outlive this one, and the pipes end with it
    (void)let_go_of_all();
    ProcessFile::hand_over(true);
    const auto result = native();
    const int error = errno;
    ProcessFile::hand_over(false);
    stand_in_again();
    return errno = error, result;
  }
  return native();
}

template <class Native>
int spawn(const char* path, const posix_spawn_file_actions_t* given, char* const* words, char* const* environment, Native native) {
  refuse_a_process_while_behind(path);
  tell_of_unseen(path, words, environment);
  const SpawnActions actions(given);
  if (actions.error() != 0) return actions.error();
  return start(
      path, environment, [&] { return native(actions.get()); }, actions.gives_any());
}

// A name without a slash is searched for, and the kernel's own search does not come to the note of a script.
template <class Spawn>
int spawn_or_interpret(const char* path, char* const* words, Spawn spawn) {
  const int error = spawn(path, words);
  if (error != ENOEXEC || !path || !std::strchr(path, '/')) return error;
  const InterpreterWords in_its_place(path, words);
  return in_its_place ? spawn(in_its_place.path(), in_its_place.words()) : error;
}

// system(3): as the C library does it, but that ours are its numbers only until the shell has begun.
int run_shell(const char* command) {
  struct sigaction ignored {
  }, on_interrupt, on_quit;
  ignored.sa_handler = SIG_IGN;
  sigset_t child_ends, mask, defaults;
  sigemptyset(&child_ends);
  sigaddset(&child_ends, SIGCHLD);
  sigemptyset(&defaults);
  real().sigaction(SIGINT, &ignored, &on_interrupt);
  real().sigaction(SIGQUIT, &ignored, &on_quit);
  pthread_sigmask(SIG_BLOCK, &child_ends, &mask);
  if (on_interrupt.sa_handler != SIG_IGN) sigaddset(&defaults, SIGINT);
  if (on_quit.sa_handler != SIG_IGN) sigaddset(&defaults, SIGQUIT);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setsigmask(&attributes, &mask);
  posix_spawnattr_setsigdefault(&attributes, &defaults);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
  char shell[] = "sh", option[] = "-c";
  char* const words[] = {shell, option, const_cast<char*>(command), nullptr};
  pid_t child = -1;
  constexpr int cannot_start = 127 << 8;  // as a shell that could not be started
  int status = cannot_start, error = posix_spawn(&child, "/bin/sh", nullptr, &attributes, words, environ);
  posix_spawnattr_destroy(&attributes);
  if (error == 0)
    while (waitpid(child, &status, 0) < 0) {
      if (errno == EINTR) continue;
      status = -1;
      break;
    }
  const int reason = errno;
  real().sigaction(SIGINT, &on_interrupt, nullptr);
  real().sigaction(SIGQUIT, &on_quit, nullptr);
  pthread_sigmask(SIG_SETMASK, &mask, nullptr);
  return errno = reason, status;
}

int execute(const char* path, char* const* words, char* const* environment) {
  const int result = real().execve(path, words, environment);
  if (errno == ENOEXEC) become_interpreter(path, words, environment);
  return result;
}

// The words of execl and its kin, the closing null included.
std::vector<char*> words_of(const char* first, va_list arguments) {
  std::vector<char*> words{const_cast<char*>(first)};
  while (words.back()) words.push_back(va_arg(arguments, char*));
  return words;
}

}  // namespace

HF_DOOR int execve(const char* path, char* const* words, char* const* environment) noexcept {
  return become(path, words, environment, [=](char* const* its) { return execute(path, words, its); });
}
HF_DOOR int execv(const char* path, char* const* words) noexcept {
  return become(path, words, environ, [=](char* const* its) { return execute(path, words, its); });
}
HF_DOOR int execvp(const char* path, char* const* words) noexcept {
  return become(path, words, environ, [=](char* const* its) { return real().execvpe(path, words, its); });
}
HF_DOOR int execvpe(const char* path, char* const* words, char* const* environment) noexcept {
  return become(path, words, environment, [=](char* const* its) { return real().execvpe(path, words, its); });
}
HF_DOOR int fexecve(int fd, char* const* words, char* const* environment) noexcept {
  return become(nullptr, words, environment, [=](char* const* its) { return real().fexecve(fd, words, its); });
}
HF_DOOR int execl(const char* path, const char* first, ...) noexcept {
  va_list arguments;
  va_start(arguments, first);
  const std::vector<char*> words = words_of(first, arguments);
  va_end(arguments);
  return execv(path, words.data());
}
HF_DOOR int execlp(const char* path, const char* first, ...) noexcept {
  va_list arguments;
  va_start(arguments, first);
  const std::vector<char*> words = words_of(first, arguments);
  va_end(arguments);
  return execvp(path, words.data());
}
HF_DOOR int execle(const char* path, const char* first, ...) noexcept {
  va_list arguments;
  va_start(arguments, first);
  const std::vector<char*> words = words_of(first, arguments);
  char* const* environment = va_arg(arguments, char* const*);
  va_end(arguments);
  return execve(path, words.data(), environment);
}
HF_DOOR int posix_spawn(pid_t* child, const char* path, const posix_spawn_file_actions_t* actions, const posix_spawnattr_t* attributes,
                        char* const* words, char* const* environment) {
  return spawn(path, actions, words, environment, [=](const auto* all) {
    return spawn_or_interpret(path, words,
                              [=](const char* what, char* const* its) { return real().posix_spawn(child, what, all, attributes, its, environment); });
  });
}
HF_DOOR int posix_spawnp(pid_t* child, const char* path, const posix_spawn_file_actions_t* actions, const posix_spawnattr_t* attributes,
                         char* const* words, char* const* environment) {
  return spawn(path, actions, words, environment, [=](const auto* all) {
    return spawn_or_interpret(path, words, [=](const char* what, char* const* its) {
      return real().posix_spawnp(child, what, all, attributes, its, environment);
    });
  });
}
// A child of vfork that becomes another image shares what its parent has written so far. The door returns twice, so it can be no function
// of this language: what comes before, and then the C library's own with the caller's return address.
extern "C" __attribute__((visibility("hidden"), used)) void* holdfast_before_vfork() {
  refuse_a_process_while_behind(nullptr);
  if (inside == 0 && of_this_process() && any_watched()) {
    share_locks();
    (void)let_go_of_all();
  }
  return reinterpret_cast<void*>(real().vfork);
}
#if defined(__x86_64__)
asm(R"(
  .text
  .globl vfork
  .type vfork, @function
vfork:
  endbr64
  subq $8, %rsp
  call holdfast_before_vfork
  addq $8, %rsp
  jmp *%rax
  .size vfork, .-vfork
)");
#elif defined(__aarch64__)
asm(R"(
  .text
  .globl vfork
  .type vfork, %function
vfork:
  hint 34
  stp x29, x30, [sp, -16]!
  bl holdfast_before_vfork
  ldp x29, x30, [sp], 16
  br x0
  .size vfork, .-vfork
)");
#else
HF_DOOR pid_t vfork() noexcept { return fork(); }
#endif

HF_DOOR int system(const char* command) {
  refuse_a_process_while_behind(command);
  if (inside > 0 || !command || !of_this_process() || !any_watched()) return real().system(command);
  return run_shell(command);
}
HF_DOOR FILE* popen(const char* command, const char* mode) {
  refuse_a_process_while_behind(command);
  return start(nullptr, environ, [=] { return real().popen(command, mode); });
}
