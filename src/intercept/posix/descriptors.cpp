#include "intercept/posix/descriptors.hpp"

#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <mutex>

#include <fmt/format.h>

#include "base/coarse_clock.hpp"
#include "base/ending.hpp"
#include "catalog/probe.hpp"
#include "intercept/posix/children.hpp"
#include "intercept/posix/locks_as_one.hpp"
#include "intercept/posix/observe.hpp"
#include "intercept/posix/paths.hpp"
#include "intercept/posix/settings.hpp"
#include "intercept/posix/signals.hpp"
#include "intercept/posix/stand_in.hpp"

namespace holdfast::intercept::posix {

using frontend::posix::open_state_bytes;
using frontend::posix::open_state_line;
using frontend::posix::OpenState;
using frontend::posix::StatePtr;

std::array<std::atomic<bool>, most_descriptors> watched_numbers;

namespace {

// Never destroyed: other libraries' destructors may still read.
struct Table {
  std::mutex mutex;
  std::map<int, std::shared_ptr<Description>> descriptions;
  // After vfork the child runs in our memory: what it closes must not be closed for us.
  std::atomic<pid_t> owner{getpid()};
};

void before_fork();
void in_parent();
void in_child();

Table& table() {
  static Table* one = [] {
    auto* made = new Table;
    catalog::watch_forks();
    pthread_atfork(before_fork, in_parent, in_child);
    return made;
  }();
  return *one;
}

void before_fork() {
  share_locks();
  hold_stand_ins();
  {
    const OurCode ours_now;
    ProcessFile::before_fork();
  }
  table().mutex.lock();
  for (auto& [fd, description] : table().descriptions) description->let_go();
}
void in_parent() {
  table().mutex.unlock();
  ProcessFile::after_fork(false);
  release_stand_ins(false);
}
void in_child() {
  table().owner = getpid();
  table().mutex.unlock();
  ProcessFile::after_fork(true);
  release_stand_ins(true);
  watch_signals_in_child();
}

bool in_range(int fd) { return fd >= 0 && fd < most_descriptors; }

std::string kernel_name(int fd) { return fmt::format("/proc/self/fd/{}", fd); }

// Through another descriptor of the same memory.
StatePtr map_state(int fd) {
  void* at = real().mmap(nullptr, open_state_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (at == MAP_FAILED) return nullptr;
  return StatePtr(static_cast<OpenState*>(at), [](OpenState* state) { munmap(state, open_state_bytes); });
}

// What stands behind an O_PATH descriptor, where it is one of ours.
StatePtr inherited_state(int fd) {
  const int flags = raw::fcntl(fd, F_GETFL);
  if (flags < 0 || !(flags & O_PATH)) return nullptr;
  char name[64];
  const ssize_t length = raw::readlinkat(AT_FDCWD, kernel_name(fd).c_str(), name, sizeof name);
  constexpr std::string_view ours = "/memfd:holdfast";
  if (length < ssize_t(ours.size()) || std::string_view(name, ours.size()) != ours) return nullptr;
  const raw::Fd memory(raw::openat(AT_FDCWD, kernel_name(fd).c_str(), O_RDWR | O_CLOEXEC));
  struct stat state;
  if (!memory || raw::fstat(memory.get(), &state) != 0 || state.st_size != off_t(open_state_bytes)) return nullptr;
  StatePtr mapped = map_state(memory.get());
  return mapped && mapped->valid() ? mapped : nullptr;
}

// A number that was closed behind our back, by a system call that is no call of libc, and may be another file's by now.
// Asking costs a call of the system, so it is asked once in a tick of the kernel's coarse clock (4 ms or less). Small writes one after another go by
// without.
bool still_ours(int fd) {
  static std::array<std::atomic<uint32_t>, most_descriptors> asked;  // in which tick, by number
  constexpr int64_t ns_of_us = 1000;
  const uint32_t tick = uint32_t(coarse_now_ns() / ns_of_us) | 1;
  if (asked[size_t(fd)].load(std::memory_order_relaxed) == tick) return true;
  const int flags = raw::fcntl(fd, F_GETFL);
  const bool ours = flags >= 0 && (flags & O_PATH);
  if (ours) asked[size_t(fd)].store(tick, std::memory_order_relaxed);
  return ours;
}

}  // namespace

namespace {

// Whether the next image has this number.
bool inherits(int fd) {
  const int flags = raw::fcntl(fd, F_GETFD);
  return flags >= 0 && !(flags & FD_CLOEXEC);
}

}  // namespace

bool any_watched() {
  const OurCode ours_now;
  std::lock_guard lock(table().mutex);
  return !table().descriptions.empty();
}

bool inherits_any() {
  const OurCode ours_now;
  std::lock_guard lock(table().mutex);
  return std::any_of(table().descriptions.begin(), table().descriptions.end(), [](const auto& entry) { return inherits(entry.first); });
}

// To an image that nobody serves: what it appends is there then, though once for each team.
void give_natives_to_append() {
  const OurCode ours_now;
  std::map<int, std::shared_ptr<Description>> all;
  {
    std::lock_guard lock(table().mutex);
    all = table().descriptions;
  }
  for (const auto& [fd, description] : all) {
    if (!inherits(fd) || !description->is_plain() || !(description->flags() & O_APPEND)) continue;
    const auto native = description->native_descriptor(true);
    const raw::Fd own(native ? raw::openat(AT_FDCWD, kernel_name(*native).c_str(), O_WRONLY | O_APPEND | O_CLOEXEC) : -1);
    if (own) syscall(SYS_dup3, own.get(), fd, 0);
  }
}

void share_locks() {
  if (!of_this_process()) return;
  const OurCode ours_now;
  std::map<std::shared_ptr<Description>, bool> inherited;
  {
    std::lock_guard lock(table().mutex);
    // What a program's standard output leads to is not what it locks.
    for (const auto& [fd, description] : table().descriptions)
      if (fd > last_standard_number) inherited[description] |= inherits(fd);
  }
  for (const auto& [description, by_any] : inherited) description->share_locks(by_any);
}

bool of_this_process() { return table().owner == getpid(); }

namespace {

std::shared_ptr<Description> known(int fd) {
  std::lock_guard lock(table().mutex);
  const auto found = table().descriptions.find(fd);
  return found == table().descriptions.end() ? nullptr : found->second;
}

}  // namespace

std::shared_ptr<Description> find_watched(int fd) {
  const OurCode ours_now;
  std::shared_ptr<Description> description = known(fd);
  if (stands_in(fd)) {
    (void)drain(fd);  // a failure has been said, and is close's answer
    return description;
  }
  if (!description || still_ours(fd)) return description;
  description.reset();
  (void)forget(fd);
  return nullptr;
}

std::shared_ptr<Description> adopt(int fd) {
  if (inside > 0 || !in_range(fd)) return nullptr;
  const int before = errno;
  const OurCode ours_now;
  std::shared_ptr<Description> description;
  if (StatePtr state = inherited_state(fd)) {
    const bool writes = state->access != O_RDONLY;
    auto file = ProcessFile::inherit(state->file_id, state->path, {.writes = writes, .inherited = state->locks - 1}, settings());
    description = std::make_shared<Description>(std::move(file), std::move(state));
    set(fd, description);
    stand_in_where_needed(fd, description);
    observe_adopted(fd, *description);
    const bool appends = (description->flags() & O_APPEND) && appends_for_all(description->path());
    if (writes && is_child_of_replica.load(std::memory_order_relaxed) && !appends) [[unlikely]]
      tell_of_write(AT_FDCWD, description->path().c_str());
  }
  errno = before;
  return description;
}

std::string path_of_another(const char* proc_path) {
  const OurCode ours_now;
  const raw::Fd there(raw::openat(AT_FDCWD, proc_path, O_PATH | O_CLOEXEC));
  const StatePtr state = there ? inherited_state(there.get()) : nullptr;
  return state ? std::string(state->path, strnlen(state->path, sizeof state->path)) : "";
}

std::shared_ptr<Description> find_after_failure(int fd) { return errno == EBADF ? adopt(fd) : nullptr; }

std::shared_ptr<Description> find_or_adopt(int fd) {
  if (auto description = find(fd)) return description;
  return adopt(fd);
}

NewNumber::~NewNumber() {
  const int before = errno;
  if (memory_ >= 0 && memory_ != fd_) raw::close(memory_);
  if (fd_ >= 0) raw::close(fd_);
  errno = before;
}

int NewNumber::reserve() {
  memory_ = static_cast<int>(syscall(SYS_memfd_create, "holdfast", 1u /* MFD_CLOEXEC */));
  if (memory_ < 0) return -1;
  (void)forget(memory_);  // closed behind our back, where it was one
  if (fd_ < 0) fd_ = memory_;
  if (fd_ >= most_descriptors) return errno = EMFILE, -1;
  return raw::ftruncate(memory_, open_state_bytes);
}

int NewNumber::give(std::shared_ptr<ProcessFile> file, uint64_t device) {
  StatePtr state = map_state(memory_);
  if (!state) return -1;
  if ((flags_ & O_ACCMODE) != O_RDONLY) watch_ending();  // if bytes do not arrive at its end, it does not end with 0
  if (!state->fill(uint32_t(flags_), file->file_id(), file->path())) return errno = ENAMETOOLONG, -1;
  state->entry_device = device;
  const int path_only = raw::openat(AT_FDCWD, kernel_name(memory_).c_str(), O_PATH | O_CLOEXEC);
  if (path_only < 0) return -1;
  const long placed = syscall(SYS_dup3, path_only, fd_, flags_ & O_CLOEXEC);
  raw::close(path_only);
  if (placed < 0) return -1;
  if (memory_ != fd_) raw::close(memory_);
  memory_ = -1;
  auto description = std::make_shared<Description>(std::move(file), std::move(state));
  set(fd_, description);
  stand_in_where_needed(fd_, description);
  return std::exchange(fd_, -1);
}

namespace {

// The description that has lost its last number in this process, to be closed by the caller outside the lock.
std::shared_ptr<Description> replace(int fd, std::shared_ptr<Description> description) {
  Table& all = table();
  std::lock_guard lock(all.mutex);
  std::shared_ptr<Description> before;
  const bool there = description != nullptr;
  if (auto found = all.descriptions.find(fd); found != all.descriptions.end()) {
    before = std::move(found->second);
    all.descriptions.erase(found);
  }
  if (there) all.descriptions.emplace(fd, std::move(description));
  watched_numbers[size_t(fd)].store(there, std::memory_order_release);
  const bool last =
      before && std::none_of(all.descriptions.begin(), all.descriptions.end(), [&](const auto& entry) { return entry.second == before; });
  return last ? before : nullptr;
}

}  // namespace

// A copy to be read is the kernel's alone.
void stand_in_where_needed(int fd, const std::shared_ptr<Description>& description, bool always) {
  if ((fd > last_standard_number && !always) || !of_this_process()) return;
  stand_in(fd, description);
  if (!stands_in(fd) && !still_ours(fd)) (void)forget(fd);
}

void set(int fd, std::shared_ptr<Description> description) {
  if (!in_range(fd) || !of_this_process()) return;
  const OurCode ours_now;
  if (description && description->writes()) watch_signals();
  if (auto last = replace(fd, std::move(description))) (void)last->close();
}

Status forget(int fd) {
  if (!in_range(fd) || !watched_numbers[size_t(fd)].load(std::memory_order_acquire) || !of_this_process()) return Status();
  const OurCode ours_now;
  const Status drained = end_stand_in(fd);
  if (const auto description = known(fd); description && description->is_locked_by_process()) {
    (void)description->give_up_process_locks();
    forget_record_locks(description->path());
  }
  auto last = replace(fd, nullptr);
  if (!last) return drained;
  const Status status = last->close();
  if (!status.ok()) complain(last->path(), status.sentence());
  last.reset();
  forget_locks_of_closed();
  return drained.ok() ? status : drained;
}

void forget_range(unsigned first, unsigned last) {
  for (unsigned fd = first; fd < unsigned(most_descriptors) && fd <= last; ++fd) (void)forget(int(fd));
}

Status let_go_of_all() {
  if (!of_this_process()) return Status();
  const OurCode ours_now;
  (void)drain_all();
  const Status status = ProcessFile::let_go_all();
  {
    std::lock_guard lock(table().mutex);
    for (auto& [fd, description] : table().descriptions) description->let_go();
  }
  if (!status.ok()) complain("a file", status.sentence());
  return status;
}

}  // namespace holdfast::intercept::posix
