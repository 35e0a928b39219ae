#include "service/pointer_service.hpp"

#include <signal.h>
#include <spawn.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <system_error>
#include <thread>

#include "service/pointer_server.hpp"

namespace holdfast::service {

namespace {

constexpr int kControl = 3;  // in the server's process

// The program hands itself on to a child of its own and ends at once, so that the job has no child it does not know.
Status spawn(const std::string& executable, int control) {
  posix_spawn_file_actions_t files;
  posix_spawnattr_t attributes;
  posix_spawn_file_actions_init(&files);
  posix_spawnattr_init(&attributes);
  for (int fd = 0; fd < kControl; ++fd) posix_spawn_file_actions_addopen(&files, fd, "/dev/null", O_RDWR, 0);
  posix_spawn_file_actions_adddup2(&files, control, kControl);
  posix_spawn_file_actions_addclosefrom_np(&files, kControl + 1);
  sigset_t none, all;
  sigemptyset(&none);
  sigfillset(&all);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &all);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSID);
  char* const arguments[] = {const_cast<char*>(executable.c_str()), nullptr};
  char* const environment[] = {nullptr};  // no preloaded library, no settings
  pid_t child = -1;
  const int error = posix_spawn(&child, executable.c_str(), &files, &attributes, arguments, environment);
  posix_spawn_file_actions_destroy(&files);
  posix_spawnattr_destroy(&attributes);
  if (error != 0) return Status::from_errno(error, executable);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return Status();
}

// Signals are the program's: its handlers run in its own threads.
Status start_thread(int control) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  Status status;
  try {
    std::thread(serve_pointers, control).detach();
  } catch (const std::system_error&) {
    status = Status(Kind::io, "no thread can be started");
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return status;
}

}  // namespace

Result<std::unique_ptr<PointerService>> PointerService::start(const std::string& executable) {
  std::unique_ptr<PointerService> service(new PointerService);
  if (getrandom(service->token_.data(), service->token_.size(), 0) != static_cast<ssize_t>(service->token_.size()))
    return Status(Kind::io, "the kernel gives no random numbers");
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return Status::from_errno(errno, "socketpair");
  service->control_.reset(ends[0]);
  service->process_ = !executable.empty();
  raw::Fd theirs(ends[1]);
  const Status started = executable.empty() ? start_thread(theirs.get()) : spawn(executable, theirs.get());
  if (!started.ok()) return started;
  if (executable.empty()) theirs.release();
  return service;
}

Result<std::string> PointerService::listen(Reach reach) {
  Command command;
  command.what = reach == Reach::node ? Command::listen_near : reach == Reach::network ? Command::listen_far : Command::listen_loopback;
  command.token = token_;
  std::string endpoints(kEndpointsBytes, '\0');
  const bool asked = send(control_.get(), &command, sizeof command, MSG_NOSIGNAL) == sizeof command;
  if (!asked || recv(control_.get(), endpoints.data(), endpoints.size(), MSG_WAITALL) != static_cast<ssize_t>(endpoints.size()))
    return Status(Kind::io, "the pointer server has not come up");
  endpoints.resize(endpoints.find('\0'));
  return endpoints;
}

void PointerService::hush() {
  Command command;
  command.what = Command::hush;
  (void)send(control_.get(), &command, sizeof command, MSG_NOSIGNAL);
}

}  // namespace holdfast::service
