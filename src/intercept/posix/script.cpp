#include "intercept/posix/script.hpp"

#include <alloca.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "base/raw_syscalls.hpp"
#include "catalog/catalog.hpp"
#include "intercept/posix/descriptors.hpp"
#include "intercept/posix/paths.hpp"
#include "intercept/posix/settings.hpp"
#include "service/helper_process.hpp"

extern char** environ;

namespace holdfast::intercept::posix {

namespace {

constexpr size_t first_line_bytes = 255;  // as the kernel
constexpr std::string_view blanks = " \t";

// The file's first bytes.
std::string beginning_of(const char* path) {
  auto located = catalog::locate(full_path(AT_FDCWD, path), settings());
  auto file = located ? ProcessFile::open({std::move(*located)}, {}, settings()) : Result<std::shared_ptr<ProcessFile>>(located.status());
  if (!file) return {};
  std::string bytes(first_line_bytes, '\0');
  const iovec all{bytes.data(), bytes.size()};
  const auto got = (*file)->read(0, {&all, 1});
  (void)(*file)->leave(false);
  bytes.resize(got ? *got : 0);
  return bytes;
}

std::string_view trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(blanks);
  return begin == text.npos ? std::string_view() : text.substr(begin, text.find_last_not_of(blanks) - begin + 1);
}

// The interpreter and, where the line has any, its one argument. Nothing where it is no script.
struct Interpreter {
  std::string_view path, argument;
};
Interpreter interpreter_of(std::string_view beginning) {
  if (!beginning.starts_with("#!")) return {};
  const std::string_view line = trimmed(beginning.substr(2, beginning.find('\n') - 2));
  const size_t end = line.find_first_of(blanks);
  return {line.substr(0, end), end == line.npos ? std::string_view() : trimmed(line.substr(end))};
}

// ---- in a child of vfork, which runs in its parent's memory, on its stack, while the parent's other threads go on. It must leave nothing
// changed there, so it allocates nothing and opens no file of ours. A process with a memory of its own reads the line for it. To make of
// every vfork a fork would be simpler, but programs let such children write into their variables, why an exec has failed for one.

char reader[PATH_MAX];  // known from the start: to look for it takes locks of the linker's
__attribute__((constructor)) void find_reader() {
  const OurCode ours_now;
  const std::string found = service::helper_program("read-beginning");
  if (found.size() < sizeof reader) std::memcpy(reader, found.c_str(), found.size() + 1);
}

// As the kernel has it (sigaction(2)); C library structures differ.
struct KernelAction {
  void (*handler)(int) = SIG_DFL;
  unsigned long flags = 0;
  void (*restorer)() = nullptr;
  uint64_t mask = 0;
};
constexpr size_t mask_bytes = sizeof(uint64_t);
constexpr int last_signal = 64;

// None but those that tell of a fault, which kill who blocks them.
uint64_t block_signals() {
  const uint64_t all = ~uint64_t(0);
  uint64_t before = 0;
  syscall(SYS_rt_sigprocmask, SIG_SETMASK, &all, &before, mask_bytes);
  return before;
}
void set_signals(const uint64_t& blocked) { syscall(SYS_rt_sigprocmask, SIG_SETMASK, &blocked, nullptr, mask_bytes); }

void forget_handlers() {
  for (int signal = 1; signal <= last_signal; ++signal) {
    KernelAction now;
    const KernelAction none;
    if (syscall(SYS_rt_sigaction, signal, nullptr, &now, mask_bytes) == 0 && now.handler != SIG_IGN)
      syscall(SYS_rt_sigaction, signal, &none, nullptr, mask_bytes);
  }
}

// In the place of standard input, output and error, whichever of those are closed.
int above_standard(int fd) { return raw::fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1); }

// In the reader's process, which shares nothing with the others: it has a copy of their memory, and no handler of theirs runs. Not back.
[[noreturn]] void become_reader(const char* path, int pipe_end, char* const* variables, uint64_t blocked) {
  forget_handlers();
  set_signals(blocked);
  const int to = above_standard(pipe_end);
  const int nothing = above_standard(raw::openat(AT_FDCWD, "/dev/null", O_RDWR | O_CLOEXEC));
  syscall(SYS_dup3, to, STDOUT_FILENO, 0);
  syscall(SYS_dup3, nothing, STDIN_FILENO, 0);
  syscall(SYS_dup3, nothing, STDERR_FILENO, 0);
  syscall(SYS_close_range, unsigned(STDERR_FILENO) + 1, ~0u, 0u);
  char bytes[] = "255";
  static_assert(first_line_bytes == 255);
  char* const words[] = {reader, const_cast<char*>(path), bytes, nullptr};
  size_t count = 0;
  while (variables && variables[count]) ++count;
  auto** environment = static_cast<char**>(alloca((count + 1) * sizeof(char*)));
  char** next = environment;
  constexpr std::string_view counts = "HOLDFAST_PROFILE";  // it is no process of the job's
  for (size_t i = 0; i < count; ++i)
    if (std::strncmp(variables[i], counts.data(), counts.size()) != 0) *next++ = variables[i];
  *next = nullptr;
  syscall(SYS_execve, reader, words, environment);
  for (;;) syscall(SYS_exit_group, 127);
}

// `environment`: of the program to be, which lends the reader its own where this one has none any more.
size_t read_by_another(const char* path, char* const* environment, char* into, size_t bytes) {
  int ends[2];
  if (!*reader || syscall(SYS_pipe2, ends, O_CLOEXEC) != 0) return 0;
  const uint64_t blocked = block_signals();
  // Without a signal at its end, which a handler of the parent's would hear of in the parent's memory.
  const long child = syscall(SYS_clone, 0L, nullptr, nullptr, nullptr, nullptr);
  if (child == 0) become_reader(path, ends[1], environ && *environ ? environ : environment, blocked);
  set_signals(blocked);
  raw::close(ends[1]);
  size_t have = 0;
  while (child > 0 && have < bytes) {
    const ssize_t got = raw::read(ends[0], into + have, bytes - have);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    have += size_t(got);
  }
  raw::close(ends[0]);
  while (child > 0 && syscall(SYS_wait4, child, nullptr, __WALL, nullptr) < 0 && errno == EINTR) {
  }
  return have;
}

// False where it is no script that is served by us; true with the errno of the interpreter's own exec.
bool become_interpreter_after_vfork(const char* path, char* const* words, char* const* environment) {
  constexpr size_t most_words = 16384;  // on the stack
  size_t count = 0;
  while (words && words[count]) ++count;
  char beginning[first_line_bytes + 1], interpreter[first_line_bytes + 1], argument[first_line_bytes + 1];
  if (count > most_words || !is_protected(AT_FDCWD, path)) return false;
  const Interpreter found = interpreter_of({beginning, read_by_another(path, environment, beginning, first_line_bytes)});
  if (found.path.empty()) return false;
  *static_cast<char*>(mempcpy(interpreter, found.path.data(), found.path.size())) = '\0';
  *static_cast<char*>(mempcpy(argument, found.argument.data(), found.argument.size())) = '\0';
  auto** all = static_cast<char**>(alloca((count + 4) * sizeof(char*)));
  char** next = all;
  *next++ = interpreter;
  if (*argument) *next++ = argument;
  *next++ = const_cast<char*>(path);
  for (size_t i = 1; i < count; ++i) *next++ = words[i];
  *next = nullptr;
  (void)real().execve(interpreter, all, environment);
  return true;
}

}  // namespace

InterpreterWords::InterpreterWords(const char* path, char* const* words) {
  if (inside > 0 || !of_this_process() || !path || !is_protected(AT_FDCWD, path)) return;
  {
    const KeepErrno keep;
    const OurCode ours_now;
    const std::string beginning = beginning_of(path);
    const Interpreter found = interpreter_of(beginning);
    if (!found.path.empty()) interpreter_.emplace_back(found.path);
    if (!found.argument.empty()) interpreter_.emplace_back(found.argument);
  }
  for (std::string& word : interpreter_) all_.push_back(word.data());
  all_.push_back(const_cast<char*>(path));
  for (char* const* word = words && *words ? words + 1 : words; word && *word; ++word) all_.push_back(*word);
  all_.push_back(nullptr);
}

void become_interpreter(const char* path, char* const* words, char* const* environment) {
  if (inside == 0 && path && !of_this_process()) {
    const int before = errno;
    if (!become_interpreter_after_vfork(path, words, environment)) errno = before;
    return;
  }
  if (const InterpreterWords in_its_place(path, words); in_its_place) (void)real().execve(in_its_place.path(), in_its_place.words(), environment);
}

}  // namespace holdfast::intercept::posix
