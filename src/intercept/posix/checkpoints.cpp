#include "intercept/posix/checkpoints.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <string_view>

#include <fmt/format.h>

#include "base/ending.hpp"
#include "base/in_mpi.hpp"
#include "base/raw_syscalls.hpp"
#include "catalog/user_files.hpp"
#include "intercept/posix/descriptor_names.hpp"
#include "intercept/posix/descriptors.hpp"
#include "intercept/posix/listings.hpp"
#include "intercept/posix/observe.hpp"
#include "intercept/posix/paths.hpp"
#include "intercept/posix/real.hpp"
#include "intercept/posix/settings.hpp"
#include "redundant/twins/replica.hpp"

namespace holdfast::intercept::posix {

namespace {

bool writes(int flags) { return (flags & O_ACCMODE) != O_RDONLY || (flags & O_TRUNC); }

int failed(const std::string& path, const Status& status) {
  if (status.kind() != Kind::not_found && !status.sentence().empty()) complain(path, status.sentence());
  return errno = status.to_errno(), -1;
}

uint64_t device_beside(const std::string& path) {
  struct stat state;
  return raw::fstatat(AT_FDCWD, catalog::parent_of(path).c_str(), &state, 0) == 0 ? state.st_dev : 0;
}

int give_number(const Checkpoints::Shared& shared, const std::string& path, int flags) {
  OpeningServed counted(path);
  const layout::Geometry& geometry = shared.manifest.geometry;
  counted.is(geometry.scheme.name(), geometry.unit_bytes);
  NewNumber number(flags);
  if (number.reserve() < 0) return -1;
  const bool writes_it = (flags & O_ACCMODE) != O_RDONLY;
  auto file = ProcessFile::open_growing(shared, path, {.writes = writes_it}, settings());
  if (!file) return failed(path, file.status());
  const int fd = number.give(*file, device_beside(path));
  if (fd < 0) (void)(*file)->leave(writes_it);
  return fd;
}

// What another rank of this checkpoint has truncated already is not truncated again.
int open_shared_to_write(Checkpoints& all, const Checkpoints::File& file, int flags, mode_t mode) {
  const auto shared = all.open_shared(file, flags, mode);
  if (!shared) return failed(file.path, shared.status());
  const int fd = give_number(*shared, file.path, flags);
  const int error = errno;
  if (fd < 0 || (flags & O_ACCMODE) == O_RDONLY) all.shared_closed(*shared, true, false);
  errno = error;
  return fd;
}

bool makes_new(int flags) { return (flags & (O_CREAT | O_EXCL)) == (O_CREAT | O_EXCL); }

// In the place of a file that is to be new. Replicas look at different times, and do not look.
bool finds_link(int directory, const char* path, int flags) {
  const KeepErrno keep;
  return makes_new(flags) && !redundant::Replica::now() && is_link_of_the_program(directory, path);
}

// A pipe, a device: its name alone is like a checkpoint's, and natively it is opened as what it is. So is a directory where the name is `one_of_many`.
bool is_no_file(int directory, const char* path, int flags, bool one_of_many) {
  struct stat state;
  const KeepErrno keep;
  if (raw::fstatat(directory, path, &state, flags & O_NOFOLLOW ? AT_SYMLINK_NOFOLLOW : 0) != 0) return false;
  return S_ISDIR(state.st_mode) ? one_of_many : !S_ISREG(state.st_mode) && !S_ISLNK(state.st_mode);
}

// Since then this process's files are plain, as any program's beside a job.
std::atomic<bool> job_is_over{false};

// SQLite puts a journal beside its database, and takes one that it finds for the database's own. Of another time it makes a mixture that no check finds.
void say_of_journal(int directory, const char* path) {
  static std::atomic<bool> said{false};
  const std::string_view name = path ? path : "";
  const std::string_view end = name.ends_with("-journal") ? "-journal" : name.ends_with("-wal") ? "-wal" : "";
  if (end.empty() || said.load(std::memory_order_relaxed)) return;
  const auto database = checkpoint_at(directory, std::string(name.substr(0, name.size() - end.size())).c_str());
  if (!database || said.exchange(true)) return;
  complain(database->path,
           fmt::format("it is a checkpoint, and its journal, {}, is none: after a restart they may be of different times; name both by a "
                       "pattern without {{step}} and {{rank}}, as --checkpoint '{}/*'",
                       catalog::name_of(std::string(name)), catalog::parent_of(database->path)));
}

// Nothing where it is not being written.
std::optional<int> open_shared_to_read(int directory, const char* path, int flags, bool follow) {
  const auto file = checkpoint_at(directory, path, follow);
  if (!file) return {};
  const OurCode ours_now;
  Checkpoints& all = *Checkpoints::of_process(settings());
  if (!all.grows(*file)) return {};
  const auto shared = all.find_shared(*file);
  if (!shared) return failed(file->path, shared.status());
  return *shared ? std::optional(give_number(**shared, file->path, flags)) : std::nullopt;
}

}  // namespace

Checkpoints* checkpoints() {
  if (inside > 0 || job_is_over.load(std::memory_order_relaxed)) return nullptr;
  const OurCode ours_now;
  return Checkpoints::of_process(settings());
}

std::optional<Checkpoints::File> checkpoint_at(int directory, const char* path, bool follow) {
  if (!path || !*path || inside > 0 || std::string_view(path).ends_with('/')) return {};  // such a name is a directory's
  Checkpoints* const all = checkpoints();
  const KeepErrno keep;
  const OurCode ours_now;
  if (!all) {
    if (!Checkpoints::is_on_no_node()) return {};
    if (const std::string why = Checkpoints::why_none(full_path(directory, path)); !why.empty()) complain(path, why);
    return {};
  }
  return all->match(full_path(directory, path), follow);
}

std::string checkpoint_read_by(int number) {
  Checkpoints* const all = number < 0 || writes_checkpoint(number) ? nullptr : checkpoints();
  if (!all) return "";
  const KeepErrno keep;
  const OurCode ours_now;
  const auto at = catalog::read_link("/proc/self/fd/" + std::to_string(number));
  return at ? all->path_of(*at) : "";
}

bool is_checkpoint_on_nodes(const char* path) {
  const auto file = checkpoint_at(AT_FDCWD, path);
  const OurCode ours_now;
  return file && Checkpoints::of_process(settings())->grows(*file);
}

bool is_late(const std::string& path) {
  if (holdfast::redundant::Replica::now() || !Checkpoints::of_process(settings())->is_over()) return false;
  if (!job_is_over.exchange(true)) complain(path, "the job has ended: what this process writes from here on is plain, and is not protected");
  return true;
}

std::optional<int> open_checkpoint(int directory, const char* path, int flags, mode_t mode) {
  const bool follow = !(flags & O_NOFOLLOW) && !makes_new(flags);
  if (!writes(flags) && !(flags & O_CREAT)) {
    if (const auto shared = open_shared_to_read(directory, path, flags, follow)) return shared;
    const SeenAt seen = see_checkpoint(directory, path, follow);
    if (seen.natively) return {};
    return call_where_it_is(seen, directory, path, [=](const char* at) { return real().open(at, flags); });
  }
  const auto file = checkpoint_at(directory, path, follow);
  if (!file) {
    if (flags & O_CREAT) say_of_journal(directory, path);
    const std::string read = checkpoint_read_by(number_named(path));
    return read.empty() ? std::nullopt : open_checkpoint(AT_FDCWD, read.c_str(), flags, mode);
  }
  if (finds_link(directory, path, flags)) return errno = EEXIST, -1;
  const OurCode ours_now;
  Checkpoints& all = *Checkpoints::of_process(settings());
  if (is_no_file(directory, path, flags, all.may_be_link(*file))) return {};
  if (is_late(file->path)) return {};
  watch_ending();
  if (all.grows(*file)) return open_shared_to_write(all, *file, flags, mode);
  Status status;
  const int fd = all.open_to_write(*file, flags, mode, status);
  return fd < 0 && !status.ok() ? failed(file->path, status) : fd;
}

namespace {

// What this process has written of it and not closed yet only it knows.
std::string with_own_size(const Checkpoints::File& file, const Checkpoints::Sight& sight) {
  const auto open = ProcessFile::find(frontend::posix::GrowingOrigin::id_of(sight.grows));
  const auto bytes = open ? open->size() : Result<uint64_t>(0);
  if (!bytes || *bytes <= sight.bytes) return sight.path;
  Checkpoints& all = *Checkpoints::of_process(settings());
  const auto shared = all.find_shared(file, sight.grows);
  const auto longer = shared && *shared ? all.stand_in_for(**shared, *bytes) : Result<Checkpoints::Sight>(sight);
  return longer ? longer->path : sight.path;
}

template <class Look>
SeenAt see(int directory, const char* path, bool follow, Look look) {
  const auto file = checkpoint_at(directory, path, follow);
  if (!file && is_unseen_directory(directory, path)) return errno = ENOENT, SeenAt{false, ""};
  if (!file) return {};
  const OurCode ours_now;
  const auto sight = look(*Checkpoints::of_process(settings()), *file);
  if (!sight) return (void)failed(file->path, sight.status()), SeenAt{false, ""};
  if (sight->what == Checkpoints::Sight::as_without) return {};
  if (sight->what == Checkpoints::Sight::absent) errno = ENOENT;
  if (!sight->grows.empty()) return {false, with_own_size(*file, *sight), frontend::posix::GrowingOrigin::id_of(sight->grows)};
  return {false, sight->path};
}

}  // namespace

// What MPI's own code looks at is its own matter.
SeenAt see_checkpoint(int directory, const char* path, bool follow) {
  if (in_mpi_calls > 0) return see_checkpoint_again(directory, path);
  return see(directory, path, follow, [](Checkpoints& all, const Checkpoints::File& file) { return all.look(file); });
}

SeenAt describe_checkpoint(int directory, const char* path, bool follow) {
  return see(directory, path, follow, [](Checkpoints& all, const Checkpoints::File& file) { return all.describe(file); });
}

SeenAt see_checkpoint_again(int directory, const char* path) {
  return see(directory, path, true, [](Checkpoints& all, const Checkpoints::File& file) { return all.look_alone(file); });
}

int why_name_is_taken(int directory, const char* path) {
  const SeenAt seen = in_mpi_calls > 0 ? see_checkpoint_again(directory, path) : describe_checkpoint(directory, path, false);
  if (seen.natively) return 0;
  return !seen.path.empty() ? EEXIST : errno == ENOENT ? 0 : errno;
}

int checkpoint_closing(int fd) {
  const KeepErrno keep;
  const OurCode ours_now;
  Checkpoints* const all = Checkpoints::of_process(settings());
  return all ? all->closing(fd) : 0;
}

void checkpoint_closed(int fd) {
  const KeepErrno keep;
  const OurCode ours_now;
  Checkpoints* const all = Checkpoints::of_process(settings());
  if (!all) return;
  Status late;
  const std::string path = all->closed(fd, false, &late);
  if (!late) return complain(path, late.sentence());
  wait_for_protection(path);
}

void wait_for_protection(const std::string& path) {
  if (const Status late = Checkpoints::of_process(settings())->protected_at_close(path); !late) complain(path, late.sentence());
}

// A signal handler may write to a terminal or a pipe that has gone: nothing is allocated for that.
void checkpoint_write_failed(int fd, int error) {
  const KeepErrno keep;
  struct stat state;
  if (inside > 0 || (fd >= 0 && (raw::fstat(fd, &state) != 0 || !S_ISREG(state.st_mode)))) return;
  const OurCode ours_now;
  if (Checkpoints* const all = Checkpoints::of_process(settings())) all->write_failed(fd, error);
}

void checkpoint_end_failed(int error) {
  const KeepErrno keep;
  const OurCode ours_now;
  if (Checkpoints* const all = Checkpoints::of_process(settings())) all->end_failed(error);
}

int checkpoint_flushed(FILE* stream, int fd) {
  const int error = std::fflush(stream) == 0 ? 0 : errno;
  if (error != 0 || std::ferror(stream)) checkpoint_write_failed(fd, error);
  return error;
}

void checkpoint_truncated(int fd, int64_t length) {
  const KeepErrno keep;
  const OurCode ours_now;
  if (Checkpoints* const all = Checkpoints::of_process(settings())) all->truncated(fd, length);
}

void checkpoint_duplicated(int from, int to) {
  const KeepErrno keep;
  const OurCode ours_now;
  if (Checkpoints* const all = Checkpoints::of_process(settings())) all->duplicated(from, to);
}

ClosingCheckpoints::ClosingCheckpoints(unsigned first, unsigned last) {
  constexpr unsigned most = 1 << 16;
  for (unsigned fd = first; fd <= std::min(last, most - 1); ++fd) {
    const int written = writes_checkpoint(int(fd)) && !raw::is_own(fd) ? checkpoint_closing(int(fd)) : 0;
    if (written != 0) written_.push_back(written);
  }
}

ClosingCheckpoints::~ClosingCheckpoints() {
  for (const int written : written_) checkpoint_closed(written);
}

void shared_checkpoints_closed() {
  const OurCode ours_now;
  if (Checkpoints* const all = Checkpoints::of_process(settings())) all->shared_ended();
}

void all_checkpoints_closed(bool ended_well) {
  const OurCode ours_now;
  Checkpoints* const all = Checkpoints::of_process(settings());
  if (!all) return;
  for (const auto& [path, why] : all->closed_all(ended_well)) complain(path, why.sentence());
}

bool checkpoints_handed_over(bool is_served) {
  if (is_served && !Checkpoints::writes_any()) return false;
  const KeepErrno keep;
  const OurCode ours_now;
  Checkpoints* const all = Checkpoints::of_process(settings());
  if (all) all->handed_over(is_served);
  return all;
}

void checkpoints_not_handed_over() {
  const KeepErrno keep;
  const OurCode ours_now;
  Checkpoints::of_process(settings())->not_handed_over();
}

}  // namespace holdfast::intercept::posix
