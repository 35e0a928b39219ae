#include "service/helper_process.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "base/raw_syscalls.hpp"

namespace holdfast::service {

namespace {

// Descriptors to be handed on lie above those that they get in the helper, so that none covers another.
constexpr int handed_above = 64;

struct Actions {
  posix_spawn_file_actions_t files;
  posix_spawnattr_t attributes;
  Actions() {
    posix_spawn_file_actions_init(&files);
    posix_spawnattr_init(&attributes);
  }
  ~Actions() {
    posix_spawn_file_actions_destroy(&files);
    posix_spawnattr_destroy(&attributes);
  }
  Actions(const Actions&) = delete;
  Actions& operator=(const Actions&) = delete;
};

void set_signals(posix_spawnattr_t& attributes) {
  sigset_t none, all;
  sigemptyset(&none);
  sigfillset(&all);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &all);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSID);
}

}  // namespace

void hold_standard_numbers() {
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; ++fd)
    if (raw::fcntl(fd, F_GETFD, 0) < 0) (void)!raw::openat(AT_FDCWD, "/dev/null", (fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) | O_CLOEXEC, 0);
}

Status start_helper(const std::string& executable, const std::vector<std::string>& arguments, const std::vector<int>& descriptors) {
  Actions actions;
  std::vector<raw::Fd> handed;
  for (int fd = 0; fd < first_helper_descriptor; ++fd) posix_spawn_file_actions_addopen(&actions.files, fd, "/dev/null", O_RDWR, 0);
  for (size_t i = 0; i < descriptors.size(); ++i) {
    handed.emplace_back(raw::fcntl(descriptors[i], F_DUPFD_CLOEXEC, handed_above));
    if (!handed.back()) return Status(Kind::io, executable + ": there may be too few open files; allow more with: ulimit -n 1024", errno);
    posix_spawn_file_actions_adddup2(&actions.files, handed.back().get(), first_helper_descriptor + int(i));
  }
  posix_spawn_file_actions_addclosefrom_np(&actions.files, first_helper_descriptor + int(descriptors.size()));
  set_signals(actions.attributes);
  std::vector<char*> words{const_cast<char*>(executable.c_str())};
  for (const std::string& argument : arguments) words.push_back(const_cast<char*>(argument.c_str()));
  words.push_back(nullptr);
  char* const environment[] = {nullptr};  // no preloaded library, no settings
  pid_t child = -1;
  const int error = posix_spawn(&child, executable.c_str(), &actions.files, &actions.attributes, words.data(), environment);
  if (error != 0) return Status::from_errno(error, executable);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return Status();
}

Result<Begun> start_with_orders(const std::string& executable, const std::string& orders) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return Status::from_errno(errno, "socketpair");
  Begun begun{raw::Fd(ends[0]), ""};
  raw::Fd theirs(ends[1]);
  HF_TRY(start_helper(executable, {}, {theirs.get()}));
  theirs.reset();
  const int fd = begun.control.get();
  if (send(fd, orders.data(), orders.size(), MSG_NOSIGNAL) != ssize_t(orders.size())) return Status(Kind::io, executable + " does not listen");
  shutdown(fd, SHUT_WR);
  for (char byte = 0; recv(fd, &byte, 1, MSG_WAITALL) == 1 && byte != '\n';) begun.said += byte;
  return begun;
}

void live_apart() {
  const pid_t child = fork();
  if (child != 0) _exit(child < 0);
}

void use_all_descriptors() {
  rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

std::string helper_program(const std::string& name) {
  Dl_info here{};
  if (!dladdr(reinterpret_cast<void*>(&helper_program), &here) || !here.dli_fname) return {};
  std::string path = here.dli_fname;
  for (int up = 0; up < 2; ++up) {
    const size_t slash = path.rfind('/');
    if (slash == std::string::npos) return {};
    path.resize(slash);
  }
  return path + "/libexec/holdfast/" + name;
}

bool is_helper(const std::string& path) {
  const std::string folder = helper_program("");
  return !folder.empty() && path.starts_with(folder);
}

}  // namespace holdfast::service
