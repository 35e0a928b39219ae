// How a process ends: what it wrote goes into the files first.
#include <atomic>
#include <cstdio>
#include <cstdlib>

#include "base/ending.hpp"
#include "base/quiet_thread.hpp"
#include "catalog/probe.hpp"
#include "frontend/posix/losses.hpp"
#include "intercept/posix/checkpoints.hpp"
#include "intercept/posix/descriptors.hpp"
#include "intercept/posix/own_failures.hpp"
#include "intercept/posix/paths.hpp"
#include "intercept/posix/stand_in.hpp"
#include "profile/piece.hpp"
#include "redundant/twins/replica.hpp"

namespace {

using namespace holdfast::intercept::posix;
using holdfast::frontend::posix::ProcessFile;

constexpr int lost_writes = 74;  // EX_IOERR: of a program that says all is well while bytes that it wrote did not arrive

// False: a close had to give up what was written.
bool nothing_was_lost() {
  const OurCode ours_now;
  const auto losses = holdfast::frontend::posix::take_losses();
  for (const auto& loss : losses) complain(loss.path, "not everything that was written has arrived: " + loss.sentence);
  return losses.empty();
}

// A redundant job loses no replica that ends by itself. With an error it takes its team with it: launchers end the other ranks then.
void leave_twins(int code) {
  auto* const replica = holdfast::redundant::Replica::now();
  if (replica && of_this_process()) replica->leaves(code != 0, code & 0xff);
}

// By a thread of MPI's own, whose launcher has gone: the twins go on, and would wait for the calls of an end. What this process holds they write.
bool is_ended_by_mpi() { return holdfast::in_quiet_thread && holdfast::redundant::Replica::now(); }

// False: something that was written is not in its file.
bool finish() {
  if (is_ended_by_mpi()) return true;
  if ((!ProcessFile::any_written() && !holdfast::frontend::posix::any_loss()) || !of_this_process()) return true;
  const bool written = let_go_of_all().ok();
  const OurCode ours_now;
  ProcessFile::remove_unlinked();
  return nothing_was_lost() && written;
}

// What the kernel frees at a process's end (locks, the ends of pipes) is free when somebody who waited for the end looks.
void leave_nobody_behind() {
  if (of_this_process()) holdfast::catalog::end_idle_lanes();
}

int code_after(int code) {
  all_checkpoints_closed(code == 0);
  const bool written = finish();
  if (code == 0 && written) shared_checkpoints_closed();
  leave_twins(code);
  holdfast::profile::process_ends();
  leave_nobody_behind();
  return code == 0 && !written ? lost_writes : code;
}

std::atomic<int> quick_code{0};

// After the program's own handlers, which may write. No stream is flushed.
void at_quick_end() {
  const int code = code_after(quick_code);
  if (code != quick_code) real()._exit(code);
}

// Standard input, output and error that came through exec as protected files.
__attribute__((constructor)) void at_start() {
  for (int number = 0; number <= last_standard_number; ++number) (void)adopt(number);
  (void)checkpoints();                // now: programs such as env clear their environment before they become another
  (void)at_quick_exit(at_quick_end);  // the first to be registered is the last to be called
}

// After the program's own handlers and destructors. Streams are flushed by the C library only later, so it is done here.
__attribute__((destructor(101))) void at_exit() {
  const bool flushes = (ProcessFile::any_written() && of_this_process()) || checkpoints();
  for (FILE* const stream : {stdout, stderr})  // into a terminal or a pipe that has gone: that is no checkpoint's failure
    if (flushes && fflush(stream) != 0 && may_be_alone(errno)) checkpoint_write_failed(fileno(stream), errno);
  if (flushes && fflush(nullptr) != 0 && may_be_alone(errno)) checkpoint_end_failed(errno);
  all_checkpoints_closed(holdfast::ending_with() == 0);
  const bool written = finish();
  if (written && holdfast::ending_with() == 0) shared_checkpoints_closed();
  leave_twins(holdfast::ending_with());
  leave_nobody_behind();
  if (written || holdfast::ending_with() != 0) return;
  fflush(nullptr);  // all that the C library would still have done
  real()._exit(lost_writes);
}

}  // namespace

HF_DOOR void quick_exit(int code) noexcept {
  quick_code = code;
  real().quick_exit(code);
  __builtin_unreachable();
}
HF_DOOR void _exit(int code) {
  real()._exit(code_after(code));
  __builtin_unreachable();
}
HF_DOOR void _Exit(int code) noexcept {
  real()._Exit(code_after(code));
  __builtin_unreachable();
}
