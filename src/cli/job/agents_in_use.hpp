// While a job runs: agents that end when nobody has been connected for a while are asked now and then, so that they are there for a program that
// opens its first file late, or its next one.
#pragma once
#include <condition_variable>
#include <deque>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/config.hpp"

namespace holdfast::cli {

class AgentsInUse {
 public:
  explicit AgentsInUse(const Settings& settings);
  ~AgentsInUse();
  AgentsInUse(const AgentsInUse&) = delete;

 private:
  void work();
  void ask_all();
  bool ask(const std::string& node);

  const std::string registry_;
  std::deque<std::string> up_, silent_;  // nodes; of the thread
  uint64_t linger_s_ = 0;                // the shortest that an agent has told
  std::mutex mutex_;
  std::condition_variable wake_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace holdfast::cli
