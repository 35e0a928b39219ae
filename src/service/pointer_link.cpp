#include "service/pointer_link.hpp"

namespace holdfast::service {

Status PointerLink::connect(const std::string& endpoints, const transport::Secret& secret, uint64_t deadline_ms) {
  std::lock_guard lock(mutex_);
  const Status connected = link_.connect(endpoints, pointer_agreement(secret), deadline_ms);
  if (connected.ok()) return connected;
  return Status(connected.kind(), "the process that keeps the shared file pointer cannot be reached: " + connected.sentence());
}

int64_t PointerLink::ask(Op op, uint64_t file, int64_t operand) {
  std::lock_guard lock(mutex_);
  if (!link_.connected()) return -1;
  Request request;
  request.file = file, request.operand = operand, request.op = op, request.number = ++number_;
  Answer answer;
  const iovec out{&request, sizeof request}, in{&answer, sizeof answer};
  Status status = link_.send({&out, 1});
  if (status.ok()) status = link_.receive({&in, 1});
  if (status.ok() && answer.number == request.number) return answer.before;
  const bool late = status.kind() == Kind::timed_out;
  failure_ = Status(late ? Kind::timed_out : Kind::io,
                    late ? "the process that keeps the shared file pointer did not answer in time; close the file and open it again"
                         : "the process that keeps the shared file pointer has gone; close the file and open it again");
  link_.close();
  return -1;
}

Status PointerLink::failure() const {
  std::lock_guard lock(mutex_);
  return failure_;
}

}  // namespace holdfast::service
