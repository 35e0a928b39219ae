#include "frontend/posix/taking_part.hpp"

#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "base/config.hpp"
#include "base/config_variables.hpp"
#include "base/in_mpi.hpp"
#include "base/launcher_names.hpp"
#include "base/rank_variables.hpp"
#include "base/raw_syscalls.hpp"
#include "base/shell_word.hpp"
#include "frontend/posix/this_program.hpp"
#include "redundant/child.hpp"
#include "redundant/membership/output.hpp"
#include "redundant/twins/replica.hpp"
#include "service/helper_process.hpp"

namespace holdfast::frontend::posix {

namespace {

constexpr int refused = 2;
constexpr uint64_t patience_ms = 2000;  // of a child, for what the job is only told of

struct Pipe {
  raw::Fd read_end, write_end;
  bool make() {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) return false;
    read_end.reset(ends[0]);
    write_end.reset(ends[1]);
    return true;
  }
};

ino_t inode_of(int fd) {
  struct stat state {};
  return raw::fstat(fd, &state) == 0 ? state.st_ino : 0;
}

// What the program has printed until it joins is its own, and not what the others have printed there.
void mark_output_where_it_joins() {
  const std::array<ino_t, 2> pipes{inode_of(STDOUT_FILENO), inode_of(STDERR_FILENO)};
  redundant::Replica::now()->when_joined([pipes] {
    (void)std::fflush(stdout);
    for (const int fd : {STDOUT_FILENO, STDERR_FILENO})  // unless the program has put another file there
      if (inode_of(fd) == pipes[size_t(fd - STDOUT_FILENO)]) (void)raw::write(fd, redundant::joined_mark.data(), redundant::joined_mark.size());
  });
}

// Standard output and error become pipes; what comes through them is delivered once, whichever team is ahead. Open MPI gives ranks a terminal, to which C's
// library writes line by line: what it would keep for a pipe comes late, and goes with a program that is killed.
Status join_output(const std::string& orders, const std::string& rank) {
  Pipe out, err, told;
  if (!out.make() || !err.make() || !told.make()) return Status::from_errno(errno, "pipe");
  if (raw::write(told.write_end.get(), orders.data(), orders.size()) != ssize_t(orders.size())) return Status::from_errno(errno, "pipe");
  told.write_end.reset();
  const raw::Fd progress = redundant::Replica::now()->progress();
  std::vector<int> given{out.read_end.get(), err.read_end.get(), told.read_end.get(), progress ? progress.get() : told.read_end.get()};
  // Open MPI's launcher takes a rank whose output and errors are closed for one that has ended, and gives it no more input.
  for (const int launchers : {STDOUT_FILENO, STDERR_FILENO})
    if (raw::fcntl(launchers, F_GETFD, 0) >= 0) given.push_back(launchers);
  HF_TRY(service::start_helper(service::helper_program("replica-output"), {rank}, given));
  const bool is_terminal = ::isatty(STDOUT_FILENO) != 0;
  for (const auto& [pipe, fd] : {std::pair{&out, 1}, std::pair{&err, 2}})
    if (syscall(SYS_dup3, pipe->write_end.get(), fd, 0) < 0) return Status::from_errno(errno, "dup3");
  if (is_terminal) (void)std::setvbuf(stdout, nullptr, _IOLBF, 0);
  return Status();
}

// Of the program's first thread, which stays.
void look_at_calls_of_mpi() {
  if (syscall(SYS_gettid) != getpid()) return;
  redundant::Replica::now()->looks_at_other_calls([&call = call_of_mpi, thread = int(syscall(SYS_gettid))] {
    if (others_may_come.load(std::memory_order_relaxed)) return redundant::Replica::OtherCall{};
    return redundant::Replica::OtherCall{call.name.load(std::memory_order_relaxed), call.begun.load(std::memory_order_relaxed), thread};
  });
}

[[noreturn]] void end(const Status& status) {
  const std::string line = fmt::format("{}{}\n", redundant::cannot_take_part, status.sentence());
  (void)raw::write(STDERR_FILENO, line.data(), line.size());
  syscall(SYS_exit_group, refused);
  __builtin_unreachable();
}

// Programs that open no file to write it. What is written to their output somebody else has opened.
bool only_looks(std::string_view name) {
  constexpr std::string_view all[] = {"test", "[",     "true", "false",    "echo",    "printf",   "cat",      "ls",
                                      "stat", "head",  "tail", "wc",       "grep",    "expr",     "seq",      "id",
                                      "pwd",  "uname", "date", "basename", "dirname", "readlink", "realpath", "sleep"};
  return std::count(std::begin(all), std::end(all), name) > 0;
}

// Of when it was loaded: a program may empty its environment before it starts another one.
struct Beginnings {
  std::string orders, rank;
};
bool are_remembered = false;
Beginnings& beginnings() {
  static auto* const all = new Beginnings;
  return *all;
}
std::string rank_for_person() {
  std::string rank = own_rank();
  if (rank.empty()) rank = beginnings().rank;
  return rank.empty() ? "0" : rank;
}

// What this process is in the place of, or a child of. Nothing: of no replica, or a launcher that `holdfast run` has started.
std::optional<redundant::TeamOrders> orders_of_another() {
  const std::string now = environment_variable(redundant::child_variable);
  const auto orders = redundant::parse_orders(now.empty() ? beginnings().orders : now);
  if (orders) return orders;
  const auto own = redundant::parse_orders(environment_variable(redundant::orders_variable));
  return own && own->image > 0 ? own : std::nullopt;
}

// Only asks: nothing is started.
bool only_asks(char* const* words) {
  constexpr std::string_view questions[] = {"--version", "-version", "-V", "--help", "-help", "-h", "--usage", "-info", "--info"};
  return !words[0] || !words[1] || std::count(std::begin(questions), std::end(questions), std::string_view(words[1])) > 0;
}

// As a person types it.
std::string text_of(char* const* words) {
  constexpr size_t most = 200;
  std::string text;
  for (; *words; ++words) text += (text.empty() ? "" : " ") + shell_word(*words);
  return text.size() > most ? text.substr(0, text.rfind(' ', most)) + " ..." : text;
}

[[noreturn]] void refuse(const redundant::TeamOrders& orders, const std::string& line) {
  const Status told = redundant::tell_of_child(orders, redundant::ChildDoes::starts_ranks, line, orders.deadline_ms);
  if (!told.ok()) end(Status(told.kind(), line));
  syscall(SYS_exit_group, refused);
  __builtin_unreachable();
}

[[noreturn]] void refuse_launcher(const redundant::TeamOrders& orders, char* const* words) {
  refuse(orders,
         fmt::format(
             "rank {} starts a launcher of its own ({}): its ranks would be no replicas, and write their files once in each team; name the launcher "
             "in the command, as holdfast run --replicas {} {}",
             rank_for_person(), words[0], orders.teams, text_of(words)));
}

}  // namespace

void remember_of_whom() {
  beginnings() = {environment_variable(redundant::child_variable), own_rank()};
  are_remembered = true;
}

bool may_be_of_a_replica() {
  const auto is_set = [](const char* name) { return !environment_variable(name).empty(); };
  return are_remembered || is_set(redundant::child_variable) || is_set(redundant::orders_variable);
}

bool is_spawned() {
  return !rank_of_environment().empty() && (environment_variable("PMI_SPAWNED") == "1" || !environment_variable("OMPI_PARENT_PORT").empty());
}

void refuse_to_start_ranks(char* const* words) {
  const auto orders = orders_of_another();
  if (orders && starts_ranks(name_of_this_program()) && !only_asks(words)) refuse_launcher(*orders, words);
}

void refuse_to_be_another_rank() {
  const auto orders = redundant::parse_orders(environment_variable(redundant::child_variable));
  if (!orders || environment_variable("HOLDFAST_RANK").empty() || !redundant::is_rank_since()) return;
  refuse(*orders,
         fmt::format("rank 0 has started {} by a launcher that --replicas does not know: these ranks would be no replicas, and write their files "
                     "once in each team; name a launcher that it knows in the command, as holdfast run --replicas {} mpirun -n 4 ./{}",
                     name_of_this_program(), orders->teams, name_of_this_program()));
}

void tell_of_unseen(const char* path, char* const* words, const char* why) {
  const auto orders = orders_of_another();
  if (!orders) return;
  const std::string_view name = std::string_view(path).substr(std::string_view(path).rfind('/') + 1);
  if (starts_ranks(name)) return only_asks(words) ? void() : refuse_launcher(*orders, words);
  if (only_looks(name)) return;
  const std::string line = fmt::format("rank {} starts {}, which {}: nobody sees what it does, and what it writes is written once in each team",
                                       rank_for_person(), path, why);
  (void)redundant::tell_of_child(*orders, redundant::ChildDoes::goes_unseen, line, patience_ms);
}

bool is_of_teams_apart() {
  static const auto orders = redundant::parse_orders(environment_variable(redundant::child_variable));
  return orders && orders->apart;
}

bool tell_of_write(const std::string& path, bool nodes_share_it) {
  const auto orders = redundant::parse_orders(environment_variable(redundant::child_variable));
  if (!orders) return true;
  if (orders->apart && !nodes_share_it) return false;
  const std::string rank = own_rank();
  const std::string line = fmt::format(
      "rank {} has started {}, which is no replica: it writes {} once in each team, and so does all that is started; let the rank write it, or "
      "name the program in the command of holdfast run --replicas",
      rank.empty() ? "0" : rank, name_of_this_program(), path);
  (void)redundant::tell_of_child(*orders, redundant::ChildDoes::writes, line, patience_ms);
  return true;
}

void take_part() {
  static std::atomic<bool> done{false};
  const std::string text = environment_variable(redundant::orders_variable);
  if (text.empty() || done.exchange(true)) return;
  const std::string rank = own_rank();
  if (rank.empty()) {
    done = false;
    return;
  }
  rename_environment_variable(redundant::orders_variable, redundant::child_variable);  // what this process starts is no replica
  remember_of_whom();
  const auto orders = redundant::parse_orders(text);
  if (!orders) end(Status(Kind::invalid, "its orders make no sense"));
  const Status joined = redundant::Replica::join(*orders, std::atoi(rank.c_str()), is_only_rank() ? 1 : 0, about_this_program(rank == "0"));
  if (!joined.ok()) end(joined);
  look_at_calls_of_mpi();
  if (orders->image > 0) return;  // its output is joined already
  if (const Status output = join_output(text, rank); !output.ok()) end(output);
  if (redundant::Replica::now()->is_joining()) mark_output_where_it_joins();
}

}  // namespace holdfast::frontend::posix
