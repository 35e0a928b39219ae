// The process that protects what one node's programs have closed: one for each node of an attempt, beside the node's agent. Its standard
// input begins with its orders: the node's address, then the settings and the run as variables, each ended by a zero; an empty one is the last.
// It is held by `holdfast run`: at its end the attempt is over, and what is closed by then is protected before this process ends.
#include <poll.h>
#include <sys/inotify.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <set>
#include <string>

#include <fmt/format.h>

#include "base/config.hpp"
#include "base/node_path.hpp"
#include "checkpoint/protect.hpp"

namespace {

using namespace holdfast;
using namespace holdfast::checkpoint;

constexpr int background = 10;       // nice(2)
constexpr int look_every_ms = 200;   // for files whose last writer has gone, of which nothing tells
constexpr int patience_at_end = 25;  // looks

class Protector {
 public:
  Protector(Settings settings, Run run, const std::string& own)
      : settings_(std::move(settings)), run_(std::move(run)), own_(own), files_(parse_node_path(own).path, run_.id, run_.attempt) {}

  int serve() {
    if (Status made = files_.make(); !made) {
      fmt::print(stderr, "holdfast: node {} cannot keep checkpoints: {}\n", own_, made.sentence());
      return 1;
    }
    // Of one that was killed here before.
    for (const LocalName& name : files_.list(State::protecting)) (void)files_.move(name, State::protecting, State::closed);
    watch_ = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    (void)inotify_add_watch(watch_, (files_.directory() + "/" + state_name(State::closed)).c_str(), IN_MOVED_TO);
    while (!is_over()) {
      protect_all();
      renew_next();
    }
    for (int look = 0; look < patience_at_end; ++look) {
      protect_all();
      if (files_.list(State::closed).empty()) break;
      (void)poll(nullptr, 0, look_every_ms);
    }
    for (const LocalName& name : files_.list(State::closed)) fail(name, Status(Kind::busy, "a program still has it open to write"));
    for (const LocalName& name : files_.list(State::writing))
      if (!has_writers(files_.path(State::writing, name))) (void)files_.move(name, State::writing, State::torn);
    for (const LocalName& name : files_.list(State::together)) (void)files_.move(name, State::together, State::torn);
    return failed_ ? 1 : 0;
  }

 private:
  // Waits until something may be to do. True at the end of standard input.
  bool is_over() const {
    pollfd waits[] = {{STDIN_FILENO, POLLIN, 0}, {watch_, POLLIN, 0}};
    if (poll(waits, 2, look_every_ms) <= 0) return false;
    char said[4096];
    if (waits[1].revents) (void)!read(watch_, said, sizeof said);
    return waits[0].revents && read(STDIN_FILENO, said, sizeof said) <= 0;
  }

  void protect_all() {
    for (const LocalName& name : files_.list(State::closed))
      if (!has_writers(files_.path(State::closed, name))) protect_one(name);
  }

  // What the checkpoint that this attempt began with has lost with its nodes: each node makes its share of the files anew, one at a time, and what the
  // program writes comes first. What cannot be made anew now is left to the next attempt.
  void renew_next() {
    if (!run_.from || run_.from->drained || renewed_ || !files_.list(State::closed).empty()) return;
    const auto found = versions_.look(run_.nodes, settings_.deadline_ms);
    const catalog::FoundVersion* const next = found ? next_to_renew(*found) : nullptr;
    if (!next) {
      renewed_ = true;
      return;
    }
    asked_.insert(next->manifest.file_id);
    const Status done = renew(next->manifest, run_.nodes, settings_);
    if (!done) fmt::print(stderr, "holdfast: what was lost of {} is not made anew: {}\n", next->manifest.path, done.sentence());
  }

  const catalog::FoundVersion* next_to_renew(const std::vector<catalog::FoundVersion>& found) const {
    for (const catalog::FoundVersion& one : found) {
      const layout::Version& version = *one.manifest.version;
      const bool ours = version.run == run_.id && version.attempt == run_.from->attempt && version.step == run_.from->step &&
                        run_.nodes[version.rank % run_.nodes.size()] == own_;
      const bool possible = one.readable() && run_.nodes.size() >= size_t(one.manifest.geometry.scheme.width());
      if (ours && possible && one.missing_members > 0 && !asked_.count(one.manifest.file_id)) return &one;
    }
    return nullptr;
  }

  void protect_one(const LocalName& name) {
    if (!files_.move(name, State::closed, State::protecting)) return;  // written anew meanwhile, or gone with its node
    const auto now = protect(files_.path(State::protecting, name), name.version_in(run_), own_, settings_);
    if (!now) return fail(name, now.status(), State::protecting);
    if (now->lost_members) fmt::print(stderr, "holdfast: {}: protected, but {} of its targets are lost\n", name.file, now->lost_members);
    (void)files_.move(name, State::protecting, State::kept);
  }

  void fail(const LocalName& name, const Status& status, State from = State::closed) {
    ++failed_;
    fmt::print(stderr, "holdfast: {} is not protected: {}\n", name.file, status.sentence());
    (void)files_.say_why(name, status.sentence());
    (void)files_.move(name, from, State::failed);
  }

  const Settings settings_;
  const Run run_;
  const std::string own_;
  const LocalFiles files_;
  catalog::VersionList versions_;
  std::set<std::string> asked_;  // ids of what was to be made anew
  bool renewed_ = false;
  int watch_ = -1;
  int failed_ = 0;
};

// The address; empty where this is nobody's orders. The variables become this process's own.
std::string take_orders() {
  std::string line, address;
  for (char c; read(STDIN_FILENO, &c, 1) == 1;) {
    if (c != '\0') {
      line += c;
      continue;
    }
    if (line.empty()) return address;
    const size_t equals = line.find('=');
    if (address.empty()) address = line;
    else if (equals != std::string::npos) setenv(line.substr(0, equals).c_str(), line.substr(equals + 1).c_str(), 1);
    line.clear();
  }
  return "";
}

}  // namespace

int main(int count, char**) {
  const std::string address = count == 1 && !isatty(STDIN_FILENO) ? take_orders() : "";
  const auto run = decode_run(environment_variable(run_variable));
  if (address.empty() || !run) {
    std::fputs("protector: is started by holdfast run, not by hand; see: holdfast run --help\n", stderr);
    return 2;
  }
  auto settings = Settings::load();
  if (!settings) {
    fmt::print(stderr, "holdfast: {}\n", settings.status().sentence());
    return 2;
  }
  (void)setpriority(PRIO_PROCESS, 0, background);
  const int code = Protector(std::move(*settings), *run, address).serve();
  fflush(nullptr);
  _exit(code);  // lanes whose calls hang are left where they are
}
