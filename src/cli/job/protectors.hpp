// The protectors of an attempt: a process for each node that lives.
#pragma once
#include <string>
#include <vector>

#include "base/config.hpp"
#include "base/raw_syscalls.hpp"
#include "base/status.hpp"
#include "checkpoint/run.hpp"

namespace holdfast::cli {

class Protectors {
 public:
  // `here`: the nodes are directories of this machine. Others are reached by the command `with`. One sentence for each node that has none.
  std::vector<Status> start(const checkpoint::Run& run, const Settings& settings, const std::string& with);
  // They end when everything that is closed is protected, or cannot be.
  void finish();
  void kill(const std::string& node);  // of that address, as its node's loss would

 private:
  struct One {
    std::string node;
    pid_t process;
    raw::Fd held;  // its standard input
  };
  std::vector<One> all_;
};

}  // namespace holdfast::cli
