#include "cli/job/agents_in_use.hpp"

#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <cerrno>
#include <set>

#include "agent/start.hpp"
#include "base/host_name.hpp"
#include "base/node_path.hpp"
#include "base/say.hpp"
#include "base/without_signals.hpp"
#include "cli/job/agents.hpp"
#include "cli/job/hosts.hpp"
#include "target/agent_registry.hpp"

namespace holdfast::cli {

namespace {

constexpr auto seldom = std::chrono::seconds(20), often = std::chrono::seconds(1);
constexpr int times_in_a_linger = 3;

bool has_ended(int process) { return process > 0 && ::kill(process, 0) != 0 && errno == ESRCH; }

}  // namespace

AgentsInUse::AgentsInUse(const Settings& settings, JobAgents job) : registry_(agents_directory()), job_(std::move(job)) {
  std::set<std::string> addresses;
  for (const auto* directories : {&settings.local, &settings.targets})
    for (const std::string& directory : *directories)
      if (names_a_node(directory)) addresses.insert(directory);
  if (addresses.empty()) return;
  for (const std::string& address : addresses) {
    const NodePath parsed = parse_node_path(address);
    up_.push_back(Node{parsed.node, parsed.path, 0, false, {}, false});
  }
  const WithoutSignals none;  // they are the job's
  thread_ = std::thread([this] { work(); });
}

AgentsInUse::~AgentsInUse() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
}

bool AgentsInUse::stopping() {
  std::lock_guard lock(mutex_);
  return stopping_;
}

void AgentsInUse::work() {
  for (auto next = Clock::now(); !stopping();) {
    if (Clock::now() >= next) {
      ask_all();
      const auto own = std::chrono::milliseconds(linger_s_ * 1000 / times_in_a_linger);
      next = Clock::now() + (linger_s_ ? std::min<std::chrono::milliseconds>(own, seldom) : seldom);
    } else {
      look_here();
    }
    std::unique_lock lock(mutex_);
    wake_.wait_until(lock, std::min(next, Clock::now() + often), [this] { return stopping_; });
  }
}

// One that does not answer takes its time: of these only one is asked at a time, in turn.
void AgentsInUse::ask_all() {
  if (!silent_.empty()) {
    Node node = std::move(silent_.front());
    silent_.pop_front();
    attend(std::move(node));
  }
  for (size_t left = up_.size(); left > 0 && !stopping(); --left) {
    Node node = std::move(up_.front());
    up_.pop_front();
    attend(std::move(node));
  }
}

// Between these times: whose process on this host is there no more is known without asking.
void AgentsInUse::look_here() {
  std::deque<Node> ended;
  for (auto* nodes : {&up_, &silent_})
    for (size_t left = nodes->size(); left > 0; --left) {
      Node node = std::move(nodes->front());
      nodes->pop_front();
      if (node.was_silent && node.process == 0) (void)note_of(node);  // it was killed before it was asked for the first time
      (has_ended(node.process) && !node.left ? ended : *nodes).push_back(std::move(node));
    }
  for (Node& node : ended) attend(std::move(node));
}

void AgentsInUse::attend(Node node) {
  const bool answers = ask(node);
  if (answers) node.left = false;
  else if (node.was_silent && !node.left) start(node);  // else its own watcher may be at it
  node.was_silent = !answers;
  (answers ? up_ : silent_).push_back(std::move(node));
}

Result<target::AgentNote> AgentsInUse::note_of(Node& node) const {
  auto note = target::read_note(registry_, node.name, node.directory);
  if (note.ok()) node.process = note->host == host_name() ? note->process : 0;
  return note;
}

bool AgentsInUse::ask(Node& node) {
  const auto note = note_of(node);
  const auto about = note.ok() ? agent::ask(registry_, *note) : Result<agent::About>(note.status());
  if (!about.ok()) return false;
  if (about->linger_s) linger_s_ = linger_s_ ? std::min(linger_s_, about->linger_s) : about->linger_s;
  return true;
}

// One that was stopped has no note any more.
void AgentsInUse::start(Node& node) {
  const auto found = std::find_if(job_.nodes.begin(), job_.nodes.end(), [&](const NodeDirectories& one) { return one.node == node.name; });
  const auto note = target::read_note(registry_, node.name, node.directory);
  if (found == job_.nodes.end() || !note.ok()) return;
  if (note->left_dead) {
    node.left = true;
    say("holdfast: {}\n", why_left_dead(*note));
    return;
  }
  if (!node.restarts.may_start()) {
    node.left = true;
    say("holdfast: the agent of node {} was started three times within a minute and does not stay; it is left so\n", node.name);
    return;
  }
  if (!start_again(job_, *found)) node.left = true;  // the user has started it
}

}  // namespace holdfast::cli
