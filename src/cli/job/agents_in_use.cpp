#include "cli/job/agents_in_use.hpp"

#include <signal.h>

#include <algorithm>
#include <chrono>
#include <set>

#include "agent/start.hpp"
#include "base/node_path.hpp"
#include "target/agent_registry.hpp"

namespace holdfast::cli {

namespace {

constexpr auto seldom = std::chrono::seconds(20);
constexpr int times_in_a_linger = 3;

}  // namespace

AgentsInUse::AgentsInUse(const Settings& settings) : registry_(agents_directory()) {
  std::set<std::string> nodes;
  for (const auto* directories : {&settings.local, &settings.targets})
    for (const std::string& directory : *directories)
      if (names_a_node(directory)) nodes.insert(parse_node_path(directory).node);
  if (nodes.empty()) return;
  up_.assign(nodes.begin(), nodes.end());
  sigset_t all, before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_BLOCK, &all, &before);  // signals are the job's
  thread_ = std::thread([this] { work(); });
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

AgentsInUse::~AgentsInUse() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void AgentsInUse::work() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    lock.unlock();
    ask_all();
    lock.lock();
    const auto own = std::chrono::milliseconds(linger_s_ * 1000 / times_in_a_linger);
    wake_.wait_for(lock, linger_s_ ? std::min<std::chrono::milliseconds>(own, seldom) : seldom, [this] { return stopping_; });
  }
}

// One that does not answer takes its time: of these only one is asked at a time, in turn.
void AgentsInUse::ask_all() {
  if (!silent_.empty()) {
    up_.push_back(std::move(silent_.front()));
    silent_.pop_front();
  }
  for (size_t left = up_.size(); left > 0; --left) {
    std::string node = std::move(up_.front());
    up_.pop_front();
    {
      std::lock_guard lock(mutex_);
      if (stopping_) return;
    }
    (ask(node) ? up_ : silent_).push_back(std::move(node));
  }
}

bool AgentsInUse::ask(const std::string& node) {
  const auto note = target::read_note(registry_, node);
  const auto about = note.ok() ? agent::ask(registry_, *note) : Result<agent::About>(note.status());
  if (!about.ok()) return false;
  if (about->linger_s) linger_s_ = linger_s_ ? std::min(linger_s_, about->linger_s) : about->linger_s;
  return true;
}

}  // namespace holdfast::cli
