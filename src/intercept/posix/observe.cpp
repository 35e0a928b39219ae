#include "intercept/posix/observe.hpp"

#include <pthread.h>

#include <algorithm>
#include <cerrno>

#include "base/config.hpp"
#include "catalog/user_files.hpp"
#include "intercept/posix/descriptors.hpp"
#include "intercept/posix/paths.hpp"
#include "intercept/posix/settings.hpp"
#include "profile/choice.hpp"

namespace holdfast::intercept::posix {

std::atomic<bool> observing{false};

namespace {

namespace numbers = profile::numbers;
using profile::Interface;
using profile::OpenedFile;
using profile::Record;

__attribute__((constructor(102))) void observe_at_load() {
  const OurCode ours_now;
  if (!profile::counts_plain_calls()) return;
  (void)of_this_process();  // whose numbers these are
  pthread_atfork(nullptr, numbers::forked, numbers::forked);
  observing = true;
}

bool counts(const std::string& path, bool served) { return profile::counts(path, settings().profile_exclude, served); }
// Without a look at anything: most of what a program opens and asks for while it starts.
bool is_left_out(const char* path) { return path[0] == '/' && settings().profile_exclude.empty() && profile::is_of_the_system(path); }

Record* record_of_file(const std::string& path, uint64_t block) {
  Record* const record = profile::record_for(Interface::posix, path);
  if (record && record->alignment.load(std::memory_order_relaxed) == 0) profile::describe(*record, "", block);
  return record;
}

// --- descriptors

// The number is new here, or was not opened by a door: standard output into a file, a descriptor that an exec or a stream has left. Null
// where it is nothing to be counted.
OpenedFile* recognise(int fd, bool fresh) {
  const KeepErrno keep;
  const int flags = raw::fcntl(fd, F_GETFL);
  if (flags < 0 || !of_this_process()) return nullptr;
  if (flags & O_PATH) {
    if (!adopt(fd)) numbers::leave_out(fd);
    OpenedFile* const file = numbers::find(fd);
    return file == &numbers::not_counted ? nullptr : file;
  }
  const OurCode ours_now;
  struct stat state;
  std::string path;
  const bool named = raw::fstat(fd, &state) == 0 && S_ISREG(state.st_mode) && state.st_nlink > 0 && !(path = path_behind(fd)).empty();
  if (!named || !counts(path, false)) return numbers::leave_out(fd), nullptr;
  Record* const record = current_meter ? nullptr : record_of_file(path, uint64_t(state.st_blksize));
  if (!record && !current_meter) return numbers::leave_out(fd), nullptr;
  return numbers::begin(fd, record, fresh ? 0 : raw::lseek(fd, 0, SEEK_CUR), flags & O_APPEND ? int64_t(state.st_size) : -1);
}

void begin_served(int fd, frontend::posix::Description& description, int64_t position) {
  const OurCode ours_now;
  const std::string path = description.path();
  if (!counts(path, true)) return numbers::leave_out(fd);
  Record* const record = current_meter ? nullptr : record_of_file(path, 0);
  auto end = description.flags() & O_APPEND ? description.size() : Result<uint64_t>(0);
  numbers::begin(fd, record, position, description.flags() & O_APPEND && end ? int64_t(*end) : -1);
}

// Where an access at the file's own position began, which has moved `bytes` on.
uint64_t begin_of(OpenedFile& file, int fd, bool write, uint64_t bytes) {
  constexpr auto relaxed = std::memory_order_relaxed;
  const uint32_t now = numbers::generation.load(relaxed);
  if (file.generation.load(relaxed) != now) [[unlikely]] {
    file.generation.store(now, relaxed);
    const KeepErrno keep;
    file.position.store(real().lseek(fd, 0, SEEK_CUR) - int64_t(bytes), relaxed);
  }
  const int64_t end = file.end.load(relaxed);
  const int64_t begin = write && end >= 0 ? end : file.position.load(relaxed);
  file.position.store(begin + int64_t(bytes), relaxed);
  if (write && end >= 0) file.end.store(begin + int64_t(bytes), relaxed);
  return uint64_t(begin);
}

uint64_t nanoseconds(uint64_t ticks) { return uint64_t((unsigned __int128)ticks * profile::live::ns_per_tick_shifted >> 32); }

void add_to_meter(Meter& meter, Counter kind, uint64_t bytes, uint64_t ticks) {
  switch (kind) {
    case Counter::reads_independent:
      Meter::add(meter.read_calls, 1), Meter::add(meter.read_bytes, bytes), Meter::add(meter.read_ns, nanoseconds(ticks));
      break;
    case Counter::writes_independent:
      Meter::add(meter.write_calls, 1), Meter::add(meter.write_bytes, bytes), Meter::add(meter.write_ns, nanoseconds(ticks));
      break;
    case Counter::syncs: Meter::add(meter.sync_calls, 1), Meter::add(meter.sync_ns, nanoseconds(ticks)); break;
    default: Meter::add(meter.other_calls, 1);
  }
}
// A record's own thread need not add atomically.
void add_system_call(Meter& meter, Counter kind, uint64_t bytes, uint64_t ticks) {
  Record* const record = profile::record_of(meter);
  const bool write = kind == Counter::writes_independent;
  if (!record || (!write && kind != Counter::reads_independent)) return add_to_meter(meter, kind, bytes, ticks);
  profile::detail::Tally tally(*record, false);
  if (write) profile::detail::count_system<true>(tally, bytes, ticks);
  else profile::detail::count_system<false>(tally, bytes, ticks);
}

}  // namespace

Watch::Watch(int fd, bool closes) : fd_(fd) {
  OpenedFile* file = numbers::find(fd);
  if (file == &numbers::not_counted && !closes) return;
  if (!file && !closes) [[unlikely]]
    file = recognise(fd, false);
  if (!file || (closes && !of_this_process())) return;
  native_ = !is_watched(fd);
  if (closes) numbers::end(fd);
  if (file == &numbers::not_counted) return;
  Record* const record = file->record.load(std::memory_order_relaxed);
  if (current_meter ? !native_ : !record) return;  // of a served file the targets' calls are the system's
  file_ = file;
  record_ = record;
  outer_ = current_meter;
  if (!native_ && record) current_meter = &record->meter;
  begin_ = profile::ticks();
}

void Watch::ends(Call call, int64_t answer) {
  if (!file_) return;
  const uint64_t end = profile::ticks();
  current_meter = outer_;
  const uint64_t bytes = answer > 0 ? uint64_t(answer) : 0;
  if (outer_) return add_system_call(*outer_, call.kind, bytes, end - begin_);
  const bool write = call.kind == Counter::writes_independent;
  if (write || call.kind == Counter::reads_independent) {
    uint64_t at = uint64_t(call.place);
    if (answer < 0 || call.place == no_place) at = profile::unknown_offset;
    else if (call.place == at_position) at = begin_of(*file_, fd_, write, bytes);
    profile::count(*record_, {write, call.kind, call.kind, at, bytes, native_}, begin_, end);
  } else {
    profile::count(*record_, call.kind, begin_, end, native_);
    if (call.kind == Counter::seeks && answer >= 0) file_->position.store(answer, std::memory_order_relaxed);
  }
  if (answer < 0) [[unlikely]]
    profile::count_failure(*record_);
}

void observe_closing(unsigned first, unsigned last) {
  if (!observes() || !of_this_process()) return;
  for (unsigned fd = first; fd <= std::min(last, unsigned(profile::most_numbers - 1)); ++fd) {
    OpenedFile* const file = numbers::find(int(fd));
    if (!file) continue;
    if (!raw::is_own(fd)) Watch(int(fd), true).ends({Counter::closes}, 0);
  }
}

void observe_duplicate(int from, int to) {
  if (observes() && to >= 0 && of_this_process()) numbers::share(from, to);
}

void observe_flags(int fd, int flags) {
  if (!observes()) return;
  OpenedFile* const file = numbers::find(fd);
  if (!file || file == &numbers::not_counted) return;
  const bool appends = flags & O_APPEND;
  struct stat state;
  if (appends == (file->end.load(std::memory_order_relaxed) >= 0)) return;
  file->end.store(appends && raw::fstat(fd, &state) == 0 ? state.st_size : -1, std::memory_order_relaxed);
}

// --- names

OpenWatch::OpenWatch(int directory, const char* path, int flags) : directory_(directory), flags_(flags), path_(path), begin_(profile::ticks()) {}

void OpenWatch::ends(int fd) {
  const uint64_t end = profile::ticks();
  if (fd >= 0 && !of_this_process()) return;
  const KeepErrno keep;
  if (fd < 0) return failed();
  if (is_watched(fd)) {
    if (const auto description = find_watched(fd)) begin_served(fd, *description, 0);
  } else if (flags_ & O_PATH || is_left_out(path_)) {
    return numbers::leave_out(fd);
  } else {
    recognise(fd, true);
  }
  const OpenedFile* const file = numbers::find(fd);
  if (current_meter) {
    if (!is_watched(fd) && file && file != &numbers::not_counted) Meter::add(current_meter->other_calls, 1);
  } else if (Record* const record = file ? file->record.load(std::memory_order_relaxed) : nullptr) {
    profile::count(*record, Counter::opens, begin_, end, !is_watched(fd));
  }
}

void OpenWatch::failed() {
  if (current_meter) return Meter::add(current_meter->other_calls, 1);
  const OurCode ours_now;
  Record* const record = profile::known_record(Interface::posix, catalog::absolute_path(full_path(directory_, path_)));
  if (!record) return;
  profile::count(*record, Counter::opens, begin_, profile::ticks(), true);
  profile::count_failure(*record);
}

Record* OpeningServed::record_of(const std::string& path) {
  if (!observing.load(std::memory_order_relaxed)) return nullptr;
  const std::string name = catalog::absolute_path(path);
  return !current_meter && counts(name, true) ? profile::record_for(Interface::posix, name) : profile::opening_record;
}

void observe_adopted(int fd, frontend::posix::Description& description) {
  if (!observing.load(std::memory_order_relaxed)) return;
  const auto position = description.seek(0, SEEK_CUR);
  begin_served(fd, description, position ? *position : 0);
}

NameWatch::NameWatch(Counter kind, int directory, const char* path) : kind_(kind), outer_(current_meter) {
  const bool looks = kind == Counter::stats || kind == Counter::others;
  if (outer_ || !path || !*path || is_left_out(path)) return;
  const KeepErrno keep;
  const OurCode ours_now;
  if (looks && !profile::any_record()) return;
  record_ = path[0] == '/' ? profile::known_record(Interface::posix, path) : nullptr;
  std::string name;
  if (!record_) record_ = profile::known_record(Interface::posix, name = catalog::absolute_path(full_path(directory, path)));
  struct stat state;
  if (!record_ && !looks && raw::fstatat(directory, path, &state, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(state.st_mode) && counts(name, false))
    record_ = record_of_file(name, uint64_t(state.st_blksize));
  if (record_) current_meter = &record_->meter;
  begin_ = profile::ticks();
}

void NameWatch::ends(int answer) {
  if (outer_) return Meter::add(outer_->other_calls, 1);
  if (!record_) return;
  current_meter = nullptr;
  profile::count(*record_, kind_, begin_, profile::ticks(), true);
  if (answer < 0) profile::count_failure(*record_);
}

}  // namespace holdfast::intercept::posix
