#include "intercept/posix/observe_streams.hpp"

#include <mutex>
#include <string>

#include "base/raw_syscalls.hpp"
#include "catalog/user_files.hpp"
#include "intercept/posix/descriptors.hpp"
#include "intercept/posix/open.hpp"
#include "intercept/posix/paths.hpp"
#include "intercept/posix/settings.hpp"
#include "profile/choice.hpp"

namespace holdfast::intercept::posix {

std::array<Stream, most_streams> watched_streams;
std::atomic<bool> any_stream{false};

namespace {

using profile::Counter;
using profile::Record;

std::mutex places_mutex;  // over taking and giving back places

bool is_counted(const std::string& path, bool served) { return profile::counts(path, settings().profile_exclude, served); }

// Of a descriptor; empty where it leads to no regular file that has a name.
std::string path_of(int fd) {
  if (auto ours = find(fd)) return ours->path();
  struct stat state;
  if (raw::fstat(fd, &state) != 0 || !S_ISREG(state.st_mode) || state.st_nlink == 0) return "";
  return path_behind(fd);
}

// Where the first access will be.
uint64_t position_of(FILE* stream, int fd, bool appends) {
  struct stat state;
  if (appends) return fd >= 0 && raw::fstat(fd, &state) == 0 ? uint64_t(state.st_size) : profile::unknown_offset;
  const off_t at = fd >= 0 ? raw::lseek(fd, 0, SEEK_CUR) : ftello64(stream);
  return at >= 0 ? uint64_t(at) : profile::unknown_offset;
}

// Where nobody has said what the accesses should keep to, it is the file system's block.
void look_at_blocks(Record& record, int fd) {
  struct stat state;
  if (record.alignment.load(std::memory_order_relaxed) == 0 && raw::fstat(fd, &state) == 0) profile::describe(record, "", uint64_t(state.st_blksize));
}

Stream* place_for(FILE* file) {
  Stream* place = nullptr;
  for (size_t i = 0, at = place_of(file); i < most_streams; ++i, at = (at + 1) % most_streams) {
    Stream& here = watched_streams[at];
    FILE* const there = here.file.load(std::memory_order_relaxed);
    if (there == file) return &here;
    if (!place && here.record.load(std::memory_order_relaxed) == nullptr) place = &here;
    if (there == nullptr) break;
  }
  return place;
}

void remember(FILE* file, Record* record, int ours, uint64_t position, bool appends) {
  std::lock_guard guard(places_mutex);
  Stream* const place = place_for(file);
  if (!place) return;
  place->fd = ours, place->position = position, place->appends = appends;
  place->record.store(record, std::memory_order_relaxed);
  place->file.store(file, std::memory_order_release);
  any_stream.store(true, std::memory_order_relaxed);
}

// What a process says goes through pipes or a terminal to wherever its launcher's goes: counted under a name that is no path.
std::string name_of_standard(int fd) {
  struct stat state;
  if (fd < 0 || raw::fstat(fd, &state) != 0) return "";
  const bool regular = S_ISREG(state.st_mode), passed_on = S_ISFIFO(state.st_mode) || S_ISSOCK(state.st_mode) || isatty(fd);
  if (regular) return path_of(fd);
  if (fd == STDIN_FILENO || !passed_on || !settings().gather_output.empty()) return "";
  return fd == STDOUT_FILENO ? "<STDOUT>" : fd == STDERR_FILENO ? "<STDERR>" : "";
}

// After --gather-output has put a pipe in the place of standard output.
__attribute__((constructor(103))) void observe_streams_at_load() {
  if (!profile::counts_plain_calls()) return;
  for (FILE* standard : {stdin, stdout, stderr}) remember(standard, record_to_come(), -1, profile::unknown_offset, false);
}

}  // namespace

Stream* look_at_standard(Stream& stream) {
  const KeepErrno keep;
  const OurCode ours_now;
  FILE* const file = stream.file.load(std::memory_order_relaxed);
  const int fd = real().fileno(file);
  const std::string path = name_of_standard(fd);
  Record* const record = is_counted(path, false) ? profile::record_for(profile::Interface::stdio, path) : nullptr;
  if (record) {
    const int flags = raw::fcntl(fd, F_GETFL);
    stream.appends = flags >= 0 && (flags & O_APPEND);
    stream.position = position_of(file, fd, stream.appends);
    look_at_blocks(*record, fd);
  }
  stream.record.store(record, std::memory_order_relaxed);
  return record ? &stream : nullptr;
}

void StreamCall::moved(bool write, uint64_t bytes, bool failed) {
  const uint64_t end = profile::ticks();
  const uint64_t at = stream_.position.load(std::memory_order_relaxed);
  if (at != profile::unknown_offset) stream_.position.store(at + bytes, std::memory_order_relaxed);
  const Counter kind = write ? Counter::writes_independent : Counter::reads_independent;
  profile::count(record_, {.write = write, .kind = kind, .manner = kind, .offset = at, .bytes = bytes}, begin_, end);
  if (failed) profile::count_failure(record_);
}

void StreamCall::other(Counter kind, bool failed) {
  profile::count(record_, kind, begin_, profile::ticks());
  if (failed) profile::count_failure(record_);
}

Record* record_of_opening(const char* path, const char* mode) {
  if (inside > 0 || current_meter || !profile::counts_plain_calls() || !path || !mode) return nullptr;
  const KeepErrno keep;
  const OurCode ours_now;
  struct stat state;
  const bool there = raw::fstatat(AT_FDCWD, path, &state, 0) == 0;
  // A program looks for files in many places: those that it does not find are none of its files.
  if (there ? !S_ISREG(state.st_mode) : *mode == 'r') return nullptr;
  const std::string full = catalog::absolute_path(path);
  // What Holdfast serves is counted wherever it lies.
  const bool counted =
      is_counted(full, false) || (is_counted(full, true) && (is_protected(AT_FDCWD, path) || concerns(AT_FDCWD, path, O_WRONLY | O_CREAT)));
  return counted ? profile::record_for(profile::Interface::stdio, full) : nullptr;
}

Record* record_of_opening(int fd) {
  if (inside > 0 || current_meter || !profile::counts_plain_calls()) return nullptr;
  const KeepErrno keep;
  const bool served = find(fd) != nullptr;
  const std::string path = path_of(fd);
  const OurCode ours_now;
  return is_counted(path, served) ? profile::record_for(profile::Interface::stdio, path) : nullptr;
}

void StreamOpening::opened(FILE* stream, const char* mode) {
  const KeepErrno keep;
  profile::count(*record_, Counter::opens, begin_, profile::ticks());
  if (!stream) return profile::count_failure(*record_);
  const int native = real().fileno(stream);
  const int ours = native < 0 ? fileno(stream) : -1;
  if (native >= 0) look_at_blocks(*record_, native);
  const bool appends = *mode == 'a';
  remember(stream, record_, ours, position_of(stream, native, appends), appends);
}

Record* take_stream(FILE* file) {
  if (!any_stream.load(std::memory_order_relaxed) || !file) return nullptr;
  Stream* const stream = find_stream(file, false);
  return stream ? stream->record.exchange(nullptr, std::memory_order_relaxed) : nullptr;
}

void observe_leaving(FILE* stream) {
  if (inside > 0 || current_meter) return;
  Record* const record = take_stream(stream);
  if (!record) return;
  const KeepErrno keep;
  const MeterScope below(&record->meter);
  const uint64_t begin = profile::ticks();
  if (std::fflush(stream) != 0) profile::count_failure(*record);
  profile::count(*record, Counter::closes, begin, profile::ticks());
}

Meter* meter_behind(int fd) {
  if (!any_stream.load(std::memory_order_relaxed)) return nullptr;
  for (Stream& stream : watched_streams) {
    if (stream.fd.load(std::memory_order_relaxed) != fd) continue;
    Record* const record = stream.record.load(std::memory_order_relaxed);
    if (record && record != record_to_come()) return &record->meter;
  }
  return nullptr;
}

}  // namespace holdfast::intercept::posix
