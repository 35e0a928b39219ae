// The process that protects what one node's programs have closed: one for each node of an attempt, beside the node's agent. Its standard input
// begins with its orders: the node's address, then the settings and the run as variables. Each is ended by a zero, and an empty one is the last. It
// is held by `holdfast run`, which says a word when the attempt is over. What is closed by then is protected before this process ends. So it is at
// the end of the input without a word. Then the way from `run` has broken, or `run` was killed, and programs may go on.
#include <poll.h>
#include <signal.h>
#include <sys/inotify.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <string>
#include <thread>

#include "base/config.hpp"
#include "base/say.hpp"
#include "checkpoint/ahead.hpp"
#include "checkpoint/protector.hpp"
#include "service/helper_process.hpp"
#include "transport/link.hpp"

namespace {

using namespace holdfast;
using namespace holdfast::checkpoint;

constexpr int background = 10;       // nice(2)
constexpr int look_every_ms = 200;   // for files whose last writer has gone, of which nothing tells
constexpr int patience_at_end = 25;  // looks
constexpr int cut_off_code = 3;      // `run` takes it for a protector that has died

void say_sentence(const std::string& sentence) { say("holdfast: {}\n", sentence); }

enum class Heard { nothing, attempt_is_over, cut_off };

// Waits until something may be to do, where nothing is.
Heard hear(int watch, bool busy) {
  pollfd waits[] = {{STDIN_FILENO, POLLIN, 0}, {watch, POLLIN, 0}};
  if (poll(waits, 2, busy ? 0 : look_every_ms) <= 0) return Heard::nothing;
  char said[4096];
  if (waits[1].revents) (void)!read(watch, said, sizeof said);
  if (!waits[0].revents) return Heard::nothing;
  char word = 0;
  if (read(STDIN_FILENO, &word, 1) <= 0) return Heard::cut_off;
  return word == attempt_is_over ? Heard::attempt_is_over : Heard::nothing;
}

// A newer checkpoint does not wait for an older one, or for what is made anew: then there are two threads at work.
class SecondHand {
 public:
  explicit SecondHand(Protector& protector) : thread_([this, &protector] { work(protector); }) {}
  ~SecondHand() {
    {
      const std::lock_guard lock(mutex_);
      is_over_ = true;
    }
    wake_.notify_all();
    thread_.join();
  }

 private:
  void work(Protector& protector) {
    std::unique_lock lock(mutex_);
    while (!wake_.wait_for(lock, std::chrono::milliseconds(look_every_ms), [this] { return is_over_; })) {
      lock.unlock();
      while (protector.protect_newer()) {
      }
      lock.lock();
    }
  }

  std::mutex mutex_;
  std::condition_variable wake_;
  bool is_over_ = false;
  std::thread thread_;
};

int serve(Protector protector, const std::string& own) {
  if (Status made = protector.begin(); !made) {
    say("holdfast: node {} cannot keep checkpoints: {}\n", own, made.sentence());
    return 1;
  }
  const int watch = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
  (void)inotify_add_watch(watch, (protector.files().directory() + "/" + state_name(State::closed)).c_str(), IN_MOVED_TO | IN_CREATE);
  Heard heard = Heard::nothing;
  {
    const SecondHand second(protector);
    for (bool busy = false; (heard = hear(watch, busy)) == Heard::nothing;) busy = protector.work();
    // What the second one has in hands may be the last of a checkpoint, and its list of files is to be protected too.
    for (int looks = 0; looks < patience_at_end && !protector.finish_closed(); looks += !protector.is_second_at_work())
      (void)poll(nullptr, 0, look_every_ms);
  }
  // What programs still have open is whole when they close it: another protector sees to that.
  if (heard == Heard::cut_off) return cut_off_code;
  return protector.end() ? 0 : 1;
}

// Fetches what the ranks are about to open, at their own priority: they may wait for it. It ends with this process.
class FetchesAhead {
 public:
  FetchesAhead(const Settings& settings, const Run& run, const std::string& own) {
    if (!run.from || run.from->drained || run.teams > 1) return;
    const pid_t above = getpid();
    process_ = fork();
    if (process_ != 0) return;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != above) _exit(0);
    Ahead ahead(settings, run, own);
    for (int look = 0; look < most_looks && ahead.work(); ++look) (void)poll(nullptr, 0, between_looks_ms);
    _exit(0);
  }
  ~FetchesAhead() {
    if (process_ <= 0) return;
    kill(process_, SIGKILL);
    while (waitpid(process_, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
  FetchesAhead(const FetchesAhead&) = delete;

 private:
  static constexpr int between_looks_ms = 50, most_looks = 1200;  // for ranks that begin late: a minute
  pid_t process_ = 0;
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
  holdfast::service::hold_standard_numbers();
  const std::string address = count == 1 && !isatty(STDIN_FILENO) ? take_orders() : "";
  const auto run = decode_run(environment_variable(run_variable));
  if (address.empty() || !run) {
    std::fputs("protector: is started by holdfast run, not by hand; see: holdfast run --help\n", stderr);
    return 2;
  }
  auto settings = Settings::load();
  if (!settings) {
    say("holdfast: {}\n", settings.status().sentence());
    return 2;
  }
  int code = 0;
  {
    const FetchesAhead ahead(*settings, *run, address);
    (void)setpriority(PRIO_PROCESS, 0, background);
    transport::give_way();
    code = serve(Protector(std::move(*settings), *run, address, say_sentence), address);
  }
  fflush(nullptr);
  _exit(code);  // lanes whose calls hang are left where they are
}
