#include "profile/piece.hpp"

#include <fmt/format.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/utsname.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <string>

#include "base/config.hpp"
#include "base/own_numbers.hpp"
#include "base/raw_syscalls.hpp"
#include "coding/xxh3.hpp"
#include "profile/record.hpp"

namespace holdfast::profile {

std::atomic<State> state{State::unknown};

namespace live {
PieceHeader* header = nullptr;
TimeStep* times = nullptr;
Record* records = nullptr;
Traced* trace = nullptr;
uint64_t start_ticks = 0;
uint64_t ns_per_tick_shifted = 0;
std::atomic<CountedMpiCalls*> mpi_calls{nullptr};
}  // namespace live

namespace {

int number_of(const std::string& text) {
  return !text.empty() && text.size() < 10 && text.find_first_not_of("0123456789") == std::string::npos ? std::stoi(text) : -1;
}
// In MPI's and batch systems' words: who this process is before MPI itself can say so. -1 for a serial program.
int rank_in_environment() { return number_of(rank_of_environment()); }
int ranks_in_environment() {
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS"})
    if (const int ranks = number_of(environment_variable(name)); ranks >= 0) return ranks;
  return -1;
}

std::string program_name() {
  char path[1024];
  const ssize_t length = raw::readlinkat(AT_FDCWD, "/proc/self/exe", path, sizeof path);
  return length > 0 ? std::string(path, size_t(length)) : std::string();
}

bool is_yes(const std::string& word) { return word == "1" || word == "true" || word == "yes" || word == "on"; }

std::string pieces_directory() {
  if (std::string named = environment_variable("HOLDFAST_PROFILE_PIECES"); !named.empty()) return named;
  if (!is_yes(environment_variable("HOLDFAST_PROFILE"))) return "";
  // Preloaded by hand, with no `holdfast run` that would join the pieces: all children of one launcher meet in one directory.
  std::string where = environment_variable("HOLDFAST_LOG_DIRECTORY");
  const std::string program = program_name();
  where += where.empty() ? "" : "/";
  return fmt::format("{}holdfast-{}-{}.pieces", where, program.substr(program.rfind('/') + 1), ::getppid());
}

void set_text(char* into, size_t room, std::string_view text) {
  const size_t length = std::min(text.size(), room - 1);
  std::memcpy(into, text.data() + (text.size() - length), length);  // of a long path the end says more
  into[length] = 0;
}

std::string job_of_environment() {
  for (const char* name : {"SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", "FLUX_JOB_ID", "PJM_JOBID", "COBALT_JOBID"})
    if (std::string id = environment_variable(name); !id.empty()) return id;
  return "";
}

std::string node_name() {
  utsname name{};
  return ::uname(&name) == 0 ? name.nodename : "";
}

uint64_t wall_clock_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  return uint64_t(now.tv_sec) * 1'000'000'000u + uint64_t(now.tv_nsec);
}

// A hole in a mapped file that the file system has no room for would kill the program at the first write into it. So every page is written before it
// is used.
bool write_zeros(int fd, uint64_t offset, uint64_t bytes) {
  static const char zeros[4096] = {};
  for (uint64_t done = 0; done < bytes;) {
    const ssize_t written = raw::pwrite(fd, zeros, std::min<uint64_t>(sizeof zeros, bytes - done), offset + done);
    if (written <= 0) return false;
    done += uint64_t(written);
  }
  return true;
}

constexpr uint64_t rest_key = 1, no_room = 2;  // keys of files are odd and hashes

class LogPiece {
 public:
  bool make(const std::string& directory, bool traced) {
    raw::mkdirat(AT_FDCWD, directory.c_str(), 0777);
    const std::string node = node_name();
    path_ = fmt::format("{}/{}-{}-{:x}{}", directory, node, ::getpid(), wall_clock_ns(), piece_suffix);
    fd_ = raw::out_of_the_way(raw::Fd(raw::openat(AT_FDCWD, path_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666)));
    if (!fd_) return false;
    const PieceOffsets at = piece_offsets(traced ? trace_slots : 0);
    if (raw::ftruncate(fd_.get(), at.end) != 0 || !write_zeros(fd_.get(), 0, at.records) || !write_zeros(fd_.get(), at.trace, at.end - at.trace))
      return false;
    void* memory = raw::mmap(at.end, PROT_READ | PROT_WRITE, MAP_SHARED, fd_.get(), 0);
    if (memory == MAP_FAILED) return false;
    base_ = static_cast<char*>(memory);
    bytes_ = at.end;
    keys_ = reinterpret_cast<Value*>(base_ + at.keys);
    live::times = reinterpret_cast<TimeStep*>(base_ + at.times);
    live::records = reinterpret_cast<Record*>(base_ + at.records);
    live::trace = traced ? reinterpret_cast<Traced*>(base_ + at.trace) : nullptr;
    fill_header(node, traced);
    return true;
  }

  // Left behind by a failed make(); a piece without a header says nothing to anybody.
  void discard() {
    if (fd_) raw::unlinkat(AT_FDCWD, path_.c_str(), 0);
    fd_.reset();
  }

  void unmap() {
    if (base_) ::munmap(base_, bytes_);
    *this = LogPiece();
  }

  // With `make`, a file that is new here gets a record.
  Record* find(Interface interface, std::string_view path, bool make) {
    const uint64_t key = coding::xxh3(path.data(), path.size(), uint64_t(interface) + 1) | 1;  // 0: an empty slot
    for (uint32_t i = 0; i < record_slots - interface_count; ++i) {
      const uint32_t slot = uint32_t(interface_count + (key + i) % (record_slots - interface_count));
      uint64_t there = keys_[slot].load(std::memory_order_acquire);
      if (there == 0) {
        if (!make) return nullptr;
        if (live::header->used.load(std::memory_order_relaxed) >= most_records) break;
        if (keys_[slot].compare_exchange_strong(there, key, std::memory_order_acq_rel)) return begin(slot, interface, key, path);
      }
      if (there == key) return wait_for(slot);
    }
    return make ? rest(interface) : nullptr;
  }

 private:
  void fill_header(const std::string& node, bool traced) {
    auto* h = reinterpret_cast<PieceHeader*>(base_);
    h->version = piece_version;
    h->header_bytes = sizeof(PieceHeader), h->record_bytes = record_bytes, h->slots = record_slots, h->steps = time_steps;
    h->counters = counter_count, h->trace = traced ? trace_slots : 0, h->pid = uint32_t(::getpid());
    h->start_realtime_ns = wall_clock_ns(), h->start_ns = meter_now_ns(), h->start_ticks = ticks();
    h->rank = rank_in_environment(), h->ranks = ranks_in_environment();
    set_text(h->node, sizeof h->node, node);
    set_text(h->program, sizeof h->program, program_name());
    set_text(h->job, sizeof h->job, job_of_environment());
    // Long enough for a measure that is right to a thousandth.
    while (meter_now_ns() - h->start_ns < 100'000) {
    }
    live::start_ticks = h->start_ticks;
    live::header = h;
    read_both_clocks();
    h->ns_per_tick = double(h->last_ns - h->start_ns) / double(h->last_ticks - h->start_ticks);
    live::ns_per_tick_shifted = uint64_t(h->ns_per_tick * 4294967296.0);
    h->counts_mpi_calls = is_yes(environment_variable("HOLDFAST_PROFILE_MPI"));
    std::memcpy(h->magic, piece_magic, sizeof piece_magic);  // last: from here on it is a piece
    if (h->counts_mpi_calls) live::mpi_calls.store(&h->mpi_calls, std::memory_order_release);
  }

  Record* begin(uint32_t slot, Interface interface, uint64_t key, std::string_view path) {
    Record& record = live::records[slot];
    live::header->used.fetch_add(1, std::memory_order_relaxed);
    if (!write_zeros(fd_.get(), uint64_t(reinterpret_cast<char*>(&record) - base_), record_bytes)) {
      keys_[slot].store(no_room, std::memory_order_release);
      return nullptr;
    }
    record.interface = uint32_t(interface);
    record.key = key;
    set_text(record.path, sizeof record.path, path);
    record.ready.store(1, std::memory_order_release);
    return &record;
  }

  // Another thread may be making it at this moment, and may have been put aside in the middle of it. That is for ever only where a signal's handler
  // opens the very file that the call below it is opening. (Reading a page that was never written is no danger: the file is long enough.)
  Record* wait_for(uint32_t slot) {
    constexpr int quick_turns = 1000, turns = quick_turns + 10'000;
    constexpr timespec while_others_work{0, 100'000};
    Record& record = live::records[slot];
    for (int turn = 0; turn < turns; ++turn) {
      if (record.ready.load(std::memory_order_acquire)) return &record;
      if (keys_[slot].load(std::memory_order_acquire) == no_room) return nullptr;
      if (turn < quick_turns) ::sched_yield();
      else ::nanosleep(&while_others_work, nullptr);
    }
    return nullptr;
  }

  Record* rest(Interface interface) {
    const uint32_t slot = uint32_t(interface);
    uint64_t there = 0;
    if (keys_[slot].compare_exchange_strong(there, rest_key)) return begin(slot, interface, rest_key, "(other files)");
    return wait_for(slot);
  }

  raw::Fd fd_;
  std::string path_;
  char* base_ = nullptr;
  uint64_t bytes_ = 0;
  Value* keys_ = nullptr;
};

LogPiece& piece() {
  static auto* made = new LogPiece;  // counted in until the last exit handler
  return *made;
}

std::mutex making;
std::atomic<bool> made{false};

void warn(const std::string& directory) {
  if (rank_in_environment() > 0) return;  // one of the job is enough
  std::fprintf(stderr, "holdfast: %s: the profile cannot be written (%s); the job goes on without it, choose another directory with --log\n",
               directory.c_str(), std::strerror(errno));
}

bool make_piece() {
  std::lock_guard guard(making);
  if (made.load()) return true;
  if (state.load() != State::on) return false;
  const std::string directory = pieces_directory();
  if (piece().make(directory, is_yes(environment_variable("HOLDFAST_TRACE")))) {
    made.store(true, std::memory_order_release);
    return true;
  }
  warn(directory);
  piece().discard();
  state = State::off;
  return false;
}

}  // namespace

// The end of programs without MPI.
__attribute__((destructor)) static void at_exit() { process_ends(); }

bool decide() {
  const bool wanted = !pieces_directory().empty();
  State unknown = State::unknown;
  state.compare_exchange_strong(unknown, wanted ? State::on : State::off);
  return state == State::on;
}

Record* record_for(Interface interface, std::string_view path) {
  if (!on()) return nullptr;
  if (!made.load(std::memory_order_acquire) && !make_piece()) return nullptr;
  return piece().find(interface, path, true);
}

Record* known_record(Interface interface, std::string_view path) {
  return made.load(std::memory_order_acquire) ? piece().find(interface, path, false) : nullptr;
}

bool any_record() { return made.load(std::memory_order_acquire); }

uint32_t ask_thread_number() {
  static const int watched = ::pthread_atfork(nullptr, nullptr, [] { thread_number = 0; });
  (void)watched;
  return thread_number = uint32_t(::syscall(SYS_gettid));
}

void read_both_clocks() {
  live::header->last_ns.store(meter_now_ns(), std::memory_order_relaxed);
  live::header->last_ticks.store(ticks(), std::memory_order_relaxed);
}

void set_rank(int rank, int ranks) {
  if (!on() || (!made.load(std::memory_order_acquire) && !make_piece())) return;
  live::header->rank = rank;
  live::header->ranks = ranks;
}

void set_mpi(std::string_view version) {
  if (!made.load(std::memory_order_acquire)) return;
  version = version.substr(0, version.find_first_of(",\n"));
  std::string text;
  for (size_t at = 0; at < version.size();) {
    const size_t end = std::min(version.find_first_of(" \t", at), version.size());
    const std::string_view word = version.substr(at, end - at);
    if (!word.empty() && word != "Version:") text += (text.empty() ? "" : " ") + std::string(word);
    at = end + 1;
  }
  set_text(live::header->mpi, sizeof live::header->mpi, text);
}

void process_ends() {
  if (!made.load(std::memory_order_acquire) || live::header->pid != uint32_t(::getpid())) return;  // a forked child is not its parent's end
  read_both_clocks();
  live::header->ended = 1;
}

void process_goes_on() {
  if (made.load(std::memory_order_acquire) && live::header->pid == uint32_t(::getpid())) live::header->ended = 0;
}

void forget_piece() {
  std::lock_guard guard(making);
  made = false;
  piece().unmap();
  live::header = nullptr;
  live::trace = nullptr;
  live::mpi_calls = nullptr;
  state = State::unknown;
}

void describe(Record& record, std::string_view scheme, uint64_t alignment) {
  set_text(record.scheme, sizeof record.scheme, scheme);
  record.alignment.store(alignment, std::memory_order_relaxed);
}

void describe_pointer(Record& record, std::string_view algorithm) {
  uint64_t calls = 0;
  for (Counter c : {Counter::reads_shared, Counter::writes_shared, Counter::reads_ordered, Counter::writes_ordered}) calls += counted(record, c);
  if (record.by_pointer.exchange(calls, std::memory_order_relaxed) == calls) return;
  const std::string_view known(record.pointer, strnlen(record.pointer, sizeof record.pointer));
  if (names_one(known, algorithm)) return;
  const std::string_view comma = known.empty() ? "" : name_separator;
  if (known.size() + comma.size() + algorithm.size() >= sizeof record.pointer) return;
  char* end = std::copy(comma.begin(), comma.end(), record.pointer + known.size());
  *std::copy(algorithm.begin(), algorithm.end(), end) = 0;
}

}  // namespace holdfast::profile
