#include "target/lock_owner.hpp"

#include <signal.h>
#include <sys/random.h>
#include <sys/utsname.h>

#include <atomic>
#include <charconv>
#include <cstdio>
#include <ctime>

#include <fmt/format.h>

#include "base/config.hpp"
#include "base/process_facts.hpp"
#include "base/raw_syscalls.hpp"
#include "target/companion.hpp"

namespace holdfast::target {

namespace {

constexpr std::string_view first_line_of_lock = "holdfast-lock 1";
constexpr std::string_view outside_of_containers = "pid:[4026531836]";  // the first process namespace of every kernel

std::string first_word_of(const std::string& path) {
  const std::string text = small_file(path);
  return text.substr(0, text.find_first_of(" \n"));
}

std::string link_at(const std::string& path) {
  char to[256];
  const ssize_t length = raw::readlinkat(AT_FDCWD, path.c_str(), to, sizeof to);
  return length > 0 ? std::string(to, size_t(length)) : std::string();
}

bool runs(const LockOwner& owner) {
  // Asked of the kernel: /proc may be hidden from us. Who may not be signalled is there.
  if (syscall(SYS_kill, owner.process, 0) != 0 && errno == ESRCH) return false;
  const auto facts = proc_is_ours() ? process_facts(owner.process) : std::nullopt;
  return !facts || (!facts->is_over && (owner.start == 0 || facts->began_ticks == owner.start));
}

std::string job_of_environment() {
  for (const char* name : {"SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", "FLUX_JOB_ID", "PJM_JOBID", "COBALT_JOBID", "JOB_ID"})
    if (std::string job = environment_variable(name); !job.empty()) return job;
  return {};
}

const LockOwner& this_process() {
  // Made anew in a forked child. What it had of its parent is left: another thread may be reading it.
  static std::atomic<const LockOwner*> known{nullptr};
  const LockOwner* found = known.load(std::memory_order_acquire);
  const int process = process_id();
  if (found && found->process == process) return *found;
  auto* made = new LockOwner;
  struct utsname name {};
  if (uname(&name) == 0) made->host = name.nodename;
  made->machine = first_word_of("/etc/machine-id");
  made->boot = first_word_of("/proc/sys/kernel/random/boot_id");
  if (proc_is_ours()) made->space = link_at("/proc/self/ns/pid") + link_at("/proc/self/ns/time");
  made->process = process;
  if (const auto facts = proc_is_ours() ? process_facts(process) : std::nullopt) made->start = facts->began_ticks;
  made->job = job_of_environment();
  known.store(made, std::memory_order_release);
  return *made;
}

std::string fresh_number() {
  static std::atomic<uint64_t> count{0};
  uint64_t random[2] = {};
  if (syscall(SYS_getrandom, random, sizeof random, 0) != ssize_t(sizeof random)) {
    timespec now{};
    clock_gettime(CLOCK_REALTIME, &now);
    random[0] = uint64_t(now.tv_sec) * 1'000'000'000u + uint64_t(now.tv_nsec);
    random[1] = uint64_t(getpid()) << 32 | (++count & 0xffffffff);
  }
  return fmt::format("{:016x}{:016x}", random[0], random[1]);
}

std::string time_of_now() {
  const time_t now = time(nullptr);
  struct tm parts {};
  char text[32];
  gmtime_r(&now, &parts);
  return std::string(text, strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S UTC", &parts));
}

}  // namespace

std::string LockOwner::sentence() const {
  if (number.empty()) return "somebody who has left no word who it is";
  return fmt::format("process {} of {} since {}{}", process, host, since, job.empty() ? "" : fmt::format(" (job {})", job));
}

std::string encode(const LockOwner& o) {
  return fmt::format("{}\nhost {}\nmachine {}\nboot {}\nspace {}\nprocess {}\nstart {}\njob {}\nsince {}\nnumber {}\n", first_line_of_lock, o.host,
                     o.machine, o.boot, o.space, o.process, o.start, o.job, o.since, o.number);
}

LockOwner decode_lock_owner(std::string_view text) {
  LockOwner owner;
  if (!text.starts_with(first_line_of_lock) || !text.ends_with('\n')) return owner;
  const auto value = [text](std::string_view key) {
    const size_t at = text.find(fmt::format("\n{} ", key));
    if (at == std::string_view::npos) return std::string_view();
    const size_t begin = at + key.size() + 2;
    return text.substr(begin, text.find('\n', begin) - begin);
  };
  const auto number = [&](std::string_view key, auto& into) {
    const std::string_view digits = value(key);
    std::from_chars(digits.data(), digits.data() + digits.size(), into);
  };
  owner.host = value("host");
  owner.machine = value("machine");
  owner.boot = value("boot");
  owner.space = value("space");
  number("process", owner.process);
  number("start", owner.start);
  owner.job = value("job");
  owner.since = value("since");
  owner.number = value("number");
  return owner;
}

uint32_t umask_of_this_process() {
  unsigned mask = 0777;
  const std::string status = small_file("/proc/self/status");
  const size_t at = status.find("Umask:");
  if (at != std::string::npos) std::sscanf(status.c_str() + at, "Umask: %o", &mask);
  return mask;
}

const std::string& boot_of_this_machine() { return this_process().boot; }

LockOwner new_hold() {
  LockOwner owner = this_process();
  owner.since = time_of_now();
  owner.number = fresh_number();
  return owner;
}

bool is_provably_dead(const LockOwner& owner) {
  const LockOwner& me = this_process();
  if (owner.number.empty() || owner.process <= 0 || owner.host.empty() || owner.host != me.host || owner.boot.empty() || me.boot.empty())
    return false;
  if (owner.boot != me.boot) {
    // That it is the same machine, started anew: names of containers and of copied images are not one machine's alone.
    const bool machines = owner.space.starts_with(outside_of_containers) && me.space.starts_with(outside_of_containers);
    return machines && !owner.machine.empty() && owner.machine == me.machine && !owner.host.starts_with("localhost");
  }
  return !owner.space.empty() && owner.space == me.space && !runs(owner);
}

}  // namespace holdfast::target
