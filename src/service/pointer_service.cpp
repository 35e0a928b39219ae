#include "service/pointer_service.hpp"

#include <sys/socket.h>

#include "base/quiet_thread.hpp"
#include "service/helper_process.hpp"
#include "service/pointer_server.hpp"

namespace holdfast::service {

namespace {

Status started_thread(int control) {
  return start_quiet_thread([control] { serve_pointers(control); }) ? Status() : Status(Kind::io, "no thread can be started");
}

}  // namespace

Result<std::unique_ptr<PointerService>> PointerService::start(const std::string& executable) {
  std::unique_ptr<PointerService> service(new PointerService);
  if (!transport::draw(service->secret_)) return Status(Kind::io, "the kernel gives no random numbers");
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return Status::from_errno(errno, "socketpair");
  service->control_.reset(ends[0]);
  service->process_ = !executable.empty();
  raw::Fd theirs(ends[1]);
  const Status started = executable.empty() ? started_thread(theirs.get()) : start_helper(executable, {}, {theirs.get()});
  if (!started.ok()) return started;
  if (executable.empty()) theirs.release();
  return service;
}

Result<std::string> PointerService::listen(Reach reach) {
  Command command;
  command.what = Command::listen;
  command.reach = reach;
  command.secret = secret_;
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
