#include "intercept/posix/stand_in.hpp"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <mutex>
#include <set>
#include <span>
#include <vector>

#include "base/own_numbers.hpp"
#include "base/raw_syscalls.hpp"
#include "base/without_signals.hpp"
#include "file/coordinated/coordinated.hpp"
#include "intercept/posix/paths.hpp"
#include "intercept/posix/real.hpp"
#include "redundant/twins/replica.hpp"

namespace holdfast::intercept::posix {

using frontend::posix::Description;

namespace {

constexpr size_t piece_bytes = 1 << 18;
constexpr int pipe_bytes = 1 << 20;
constexpr uint64_t most_copied_bytes = 1ull << 30;
constexpr int most_numbers = 1024;

struct Pump {
  std::shared_ptr<Description> file;
  raw::Fd own;     // the file's O_PATH descriptor
  raw::Fd source;  // of the pipe
  raw::Fd wake;
  std::mutex mutex;
  std::set<int> numbers;
  Status failure;
  std::vector<std::byte> piece = std::vector<std::byte>(piece_bytes);
  uint64_t subject = 0, next = 0, come = 0;  // of the piece that is written next: its size, and how much of it has come
  bool ended = false;

  // Under the mutex. Everything that is in the pipe now.
  void move() {
    int bytes = 0;
    while (source && ioctl(source.get(), FIONREAD, &bytes) == 0 && bytes > 0) {
      if (next == 0) next = size_of_next(uint64_t(bytes));
      const ssize_t got = raw::read(source.get(), piece.data() + come, std::min(next - come, uint64_t(bytes)));
      if (got <= 0) return;
      come += uint64_t(got);
      if (come == next) put();
    }
  }
  // What has come of a piece, too.
  void move_all() {
    move();
    if (come > 0) put();
  }

 private:
  // Replicas compare each write. How much has come by now is a matter of time, so they all take as much as their leader has found.
  uint64_t size_of_next(uint64_t bytes) const {
    uint64_t size = std::min<uint64_t>(bytes, piece_bytes);
    if (redundant::Replica* const replica = redundant::Replica::now()) {
      uint64_t told = 0;
      const auto found = [](void* size, ByteSpan into) { std::memcpy(into.data(), size, into.size()); };
      replica->decide(subject, std::as_writable_bytes(std::span(&told, 1)), found, &size);
      size = std::clamp<uint64_t>(told, 1, piece_bytes);
    }
    return size;
  }
  void put() {
    const iovec all{piece.data(), size_t(come)};
    next = come = 0;
    auto put = file->write({&all, 1});
    if (put || !failure.ok()) return;
    failure = put.status();
    if (!failure.sentence().empty()) complain(file->path(), failure.sentence());
  }
};

std::atomic<int> pumps_there{0};

// All replicas stand in for their files in one order.
uint64_t subject_of_next(const std::string& path) {
  redundant::Replica* const replica = redundant::Replica::now();
  if (!replica) return 0;
  const uint64_t name = file::subject_of("stand-in", path);
  return file::subject_of("stand-in " + std::to_string(replica->next_open(name)), path);
}

std::array<std::atomic<Pump*>, most_numbers> by_number;
// Never destroyed, nor is a pump: few there are, and a thread may just be looking at one.
struct Pumps {
  std::mutex mutex;
  std::set<Pump*> all;
};
Pumps& pumps() {
  static auto* one = new Pumps;
  return *one;
}

Pump* pump_of(int fd) { return fd >= 0 && fd < most_numbers ? by_number[size_t(fd)].load(std::memory_order_acquire) : nullptr; }

void* run(void* argument) {
  ++inside;  // for good: this thread is ours
  auto* pump = static_cast<Pump*>(argument);
  const int source = pump->source.get(), wake = pump->wake.get();
  for (;;) {
    pollfd waiting[] = {{source, POLLIN, 0}, {wake, POLLIN, 0}};
    if (poll(waiting, 2, -1) < 0 && errno != EINTR) return nullptr;
    std::lock_guard lock(pump->mutex);
    if (pump->ended || pump->source.get() != source) return nullptr;
    pump->move();
    if ((waiting[0].revents & POLLHUP) && !(waiting[0].revents & POLLIN)) return nullptr;
  }
}

// Under the pump's mutex, or by its only thread: a pipe on all its numbers, and a thread behind it.
bool connect(Pump& pump) {
  int ends[2];
  if (syscall(SYS_pipe2, ends, O_CLOEXEC) != 0) return false;
  raw::fcntl(ends[1], F_SETPIPE_SZ, pipe_bytes);
  pump.source = raw::out_of_the_way(raw::Fd(ends[0]));
  pump.wake = raw::out_of_the_way(raw::Fd(eventfd(0, EFD_CLOEXEC)));
  pump.ended = false;
  for (const int number : pump.numbers) {
    const int flags = raw::fcntl(number, F_GETFD);
    syscall(SYS_dup3, ends[1], number, flags >= 0 && (flags & FD_CLOEXEC) ? O_CLOEXEC : 0);
  }
  raw::close(ends[1]);
  const WithoutSignals none;
  pthread_t thread;
  const bool started = pthread_create(&thread, nullptr, run, &pump) == 0;
  if (started) pthread_detach(thread);
  return started;
}

// Under the pump's mutex.
void disconnect(Pump& pump) {
  pump.move_all();
  pump.ended = true;
  const uint64_t one = 1;
  (void)!raw::write(pump.wake.get(), &one, sizeof one);
  pump.source.reset();
}

void put_own_back(const Pump& pump, int number) {
  const int flags = raw::fcntl(number, F_GETFD);
  syscall(SYS_dup3, pump.own.get(), number, flags >= 0 && (flags & FD_CLOEXEC) ? O_CLOEXEC : 0);
}

void pump_into(int fd, const std::shared_ptr<Description>& file) {
  auto* pump = new Pump;
  pump->file = file;
  pump->own.reset(raw::duplicate_out_of_the_way(fd));
  pump->numbers.insert(fd);
  pump->subject = subject_of_next(file->path());
  if (!pump->own || !connect(*pump)) {
    if (pump->own) put_own_back(*pump, fd);
    complain(file->path(), "standard output cannot be led there; what the C library writes to it is lost");
    delete pump;
    return;
  }
  std::lock_guard lock(pumps().mutex);
  pumps().all.insert(pump);
  ++pumps_there;
  by_number[size_t(fd)].store(pump, std::memory_order_release);
}

// The whole content, with the position where it was, in memory that the kernel reads from.
void copy_under(int fd, Description& file) {
  const auto size = file.size();
  if (!size || *size > most_copied_bytes) return;
  const raw::Fd memory(static_cast<int>(syscall(SYS_memfd_create, "copy of a protected file", 1u /* MFD_CLOEXEC */)));
  std::vector<std::byte> piece(piece_bytes);
  for (uint64_t done = 0; memory && done < *size;) {
    const iovec all{piece.data(), piece.size()};
    const auto got = file.read_at(int64_t(done), {&all, 1});
    if (!got || *got <= 0 || raw::pwrite(memory.get(), piece.data(), size_t(*got), done) != *got) return;
    done += uint64_t(*got);
  }
  if (!memory) return;
  const auto position = file.seek(0, SEEK_CUR);
  raw::lseek(memory.get(), position ? *position : 0, SEEK_SET);
  const int flags = raw::fcntl(fd, F_GETFD);
  syscall(SYS_dup3, memory.get(), fd, flags >= 0 && (flags & FD_CLOEXEC) ? O_CLOEXEC : 0);
}

}  // namespace

void stand_in(int fd, const std::shared_ptr<Description>& file) {
  const OurCode ours_now;
  if (fd < 0 || fd >= most_numbers) return;
  if (file->writes()) pump_into(fd, file);
  else copy_under(fd, *file);
}

bool stands_in(int fd) { return pump_of(fd) != nullptr; }

void share_stand_in(int from, int to) {
  Pump* pump = pump_of(from);
  if (!pump) return;
  std::lock_guard lock(pump->mutex);
  if (to > last_standard_number) return put_own_back(*pump, to);
  pump->numbers.insert(to);
  by_number[size_t(to)].store(pump, std::memory_order_release);
}

Status drain(int fd) {
  Pump* pump = pump_of(fd);
  if (!pump) return Status();
  const OurCode ours_now;
  std::lock_guard lock(pump->mutex);
  pump->move();
  return std::exchange(pump->failure, Status());
}

Status end_stand_in(int fd) {
  Pump* pump = pump_of(fd);
  if (!pump) return Status();
  const OurCode ours_now;
  std::lock_guard all(pumps().mutex);
  std::lock_guard lock(pump->mutex);
  pump->move();
  pump->numbers.erase(fd);
  by_number[size_t(fd)].store(nullptr, std::memory_order_release);
  if (pump->numbers.empty()) {
    disconnect(*pump);
    pump->own.reset();
    pump->file.reset();
    pumps().all.erase(pump);
    --pumps_there;
  }
  return std::exchange(pump->failure, Status());
}

Status drain_all() {
  const OurCode ours_now;
  std::lock_guard all(pumps().mutex);
  Status first;
  for (Pump* pump : pumps().all) {
    std::lock_guard lock(pump->mutex);
    pump->move();
    const Status status = std::exchange(pump->failure, Status());
    if (first.ok()) first = status;
  }
  return first;
}

void meet_stand_ins() {
  if (pumps_there.load(std::memory_order_relaxed) == 0 || inside > 0) return;
  const KeepErrno keep;
  const OurCode ours_now;
  std::lock_guard all(pumps().mutex);
  for (Pump* pump : pumps().all) {
    std::lock_guard lock(pump->mutex);
    pump->move();
  }
}

void hold_stand_ins() {
  const OurCode ours_now;
  pumps().mutex.lock();
  for (Pump* pump : pumps().all) {
    pump->mutex.lock();
    pump->move();
  }
}

void release_stand_ins(bool child) {
  const OurCode ours_now;
  for (Pump* pump : pumps().all) {
    if (child) (void)connect(*pump);  // the other end of the old pipe is the parent's
    pump->mutex.unlock();
  }
  pumps().mutex.unlock();
}

void give_numbers_back() {
  const OurCode ours_now;
  std::lock_guard all(pumps().mutex);
  for (Pump* pump : pumps().all) {
    std::lock_guard lock(pump->mutex);
    disconnect(*pump);
    for (const int number : pump->numbers) put_own_back(*pump, number);
  }
}

void give_numbers_back_after_vfork() {
  constexpr int most_waits = 1000;
  constexpr timespec a_while{0, 1000000};
  std::lock_guard all(pumps().mutex);
  for (Pump* pump : pumps().all) {
    // What the parent has written comes first: its own thread sees to that.
    int bytes = 0;
    for (int i = 0; i < most_waits && ioctl(pump->source.get(), FIONREAD, &bytes) == 0 && bytes > 0; ++i) nanosleep(&a_while, nullptr);
    std::lock_guard lock(pump->mutex);
    struct stat pipe {
    }, there{};
    if (raw::fstat(pump->source.get(), &pipe) != 0) continue;
    for (const int number : pump->numbers)  // the child may have led them elsewhere
      if (raw::fstat(number, &there) == 0 && there.st_ino == pipe.st_ino && there.st_dev == pipe.st_dev) put_own_back(*pump, number);
  }
}

void stand_in_again() {
  const OurCode ours_now;
  std::lock_guard all(pumps().mutex);
  for (Pump* pump : pumps().all) {
    std::lock_guard lock(pump->mutex);
    (void)connect(*pump);
  }
}

}  // namespace holdfast::intercept::posix
