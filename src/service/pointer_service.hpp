// A running pointer server, as the process that started it holds it. It ends with this object, and with the process.
#pragma once
#include <memory>
#include <string>

#include "base/raw_syscalls.hpp"
#include "base/status.hpp"
#include "service/pointer_protocol.hpp"

namespace holdfast::service {

class PointerService {
 public:
  // `executable`: the server's own program, started apart from the job's process tree. Empty: a thread of this process.
  static Result<std::unique_ptr<PointerService>> start(const std::string& executable);
  ~PointerService() = default;  // closes the control socket: the server ends

  using Reach = transport::Reach;
  Result<std::string> listen(Reach reach);  // the endpoints, where connections are taken until hush()
  void hush();
  const transport::Secret& secret() const { return secret_; }
  bool is_process() const { return process_; }

 private:
  PointerService() = default;
  raw::Fd control_;
  transport::Secret secret_{};
  bool process_ = false;
};

}  // namespace holdfast::service
