#include "frontend/posix/taking_part.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/config.hpp"
#include "base/raw_syscalls.hpp"
#include "frontend/posix/this_program.hpp"
#include "redundant/membership/output.hpp"
#include "redundant/twins/replica.hpp"
#include "service/helper_process.hpp"

namespace holdfast::frontend::posix {

namespace {

constexpr int refused = 2;

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

// Standard output and error become pipes; what comes through them is delivered once, whichever team is ahead.
Status join_output(const std::string& orders, const std::string& rank) {
  Pipe out, err, told;
  if (!out.make() || !err.make() || !told.make()) return Status::from_errno(errno, "pipe");
  if (raw::write(told.write_end.get(), orders.data(), orders.size()) != ssize_t(orders.size())) return Status::from_errno(errno, "pipe");
  told.write_end.reset();
  const raw::Fd progress = redundant::Replica::now()->progress();
  std::vector<int> given{out.read_end.get(), err.read_end.get(), told.read_end.get()};
  if (progress) given.push_back(progress.get());
  HF_TRY(service::start_helper(service::helper_program("replica-output"), {rank}, given));
  for (const auto& [pipe, fd] : {std::pair{&out, 1}, std::pair{&err, 2}})
    if (syscall(SYS_dup3, pipe->write_end.get(), fd, 0) < 0) return Status::from_errno(errno, "dup3");
  return Status();
}

[[noreturn]] void end(const Status& status) {
  const std::string line = fmt::format("{}{}\n", redundant::cannot_take_part, status.sentence());
  (void)raw::write(STDERR_FILENO, line.data(), line.size());
  syscall(SYS_exit_group, refused);
  __builtin_unreachable();
}

}  // namespace

void take_part() {
  static std::atomic<bool> done{false};
  const std::string text = environment_variable(redundant::orders_variable);
  if (text.empty() || done.exchange(true)) return;
  std::string rank = rank_of_environment();
  if (rank.empty()) rank = environment_variable("HOLDFAST_RANK");  // from `holdfast run`, for a serial program
  if (rank.empty()) {
    done = false;
    return;
  }
  forget_environment_variable(redundant::orders_variable);  // what this process starts is no replica
  const auto orders = redundant::parse_orders(text);
  if (!orders) end(Status(Kind::invalid, "its orders make no sense"));
  const Status joined = redundant::Replica::join(*orders, std::atoi(rank.c_str()), 0, about_this_program(rank == "0"));
  if (!joined.ok()) end(joined);
  if (orders->image > 0) return;  // its output is joined already
  if (const Status output = join_output(text, rank); !output.ok()) end(output);
  if (redundant::Replica::now()->is_joining()) mark_output_where_it_joins();
}

}  // namespace holdfast::frontend::posix
