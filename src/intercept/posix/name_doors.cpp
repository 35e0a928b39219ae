// Doors that change what a name leads to: rename, unlink, truncate. They act on the whole protected file.
#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include <fmt/format.h>

#include "base/ending.hpp"
#include "base/in_mpi.hpp"
#include "base/raw_syscalls.hpp"
#include "catalog/catalog.hpp"
#include "catalog/user_files.hpp"
#include "intercept/posix/alike.hpp"
#include "intercept/posix/as_one.hpp"
#include "intercept/posix/checkpoints.hpp"
#include "intercept/posix/descriptor_names.hpp"
#include "intercept/posix/descriptors.hpp"
#include "intercept/posix/listings.hpp"
#include "intercept/posix/observe.hpp"
#include "intercept/posix/open.hpp"
#include "intercept/posix/paths.hpp"
#include "intercept/posix/real.hpp"
#include "intercept/posix/settings.hpp"
#include "intercept/posix/tree_of_process.hpp"

namespace {

using namespace holdfast::intercept::posix;
using holdfast::Status;
using holdfast::file::Call;
using holdfast::frontend::posix::ProcessFile;
namespace tree = holdfast::tree;

// The protected file that stands there, where this process has it open.
std::shared_ptr<ProcessFile> open_here(int directory, const char* path) {
  if (!is_protected(directory, path, false)) return nullptr;
  const auto located = holdfast::catalog::locate(full_path(directory, path), settings(), {.ignore_edits = true});
  return located ? ProcessFile::find(located->manifest.file_id) : nullptr;
}

// What a call has come to: its lines are said later, by all replicas alike.
int answer_with(const tree::Answer& answer, std::vector<tree::Line>& lines) {
  lines.insert(lines.end(), answer.lines.begin(), answer.lines.end());
  return answer.status.ok() ? 0 : (errno = answer.status.to_errno(), -1);
}

// MPI's own code may act in one team alone, and what each replica has for itself it moves by itself: no other one is met.
bool acts_alone(const holdfast::redundant::Replica& replica, const std::string& full) {
  return holdfast::in_mpi_calls > 0 || is_each_replicas_own(replica, full);
}

// A call that moves or removes files, by one replica for all. Protected ones that are open lose their ways to storage before, and the other replicas
// follow what it has done. `to`: null for a removal. `act` answers 0, or -1 and errno. It answers its lines, too.
template <class Act>
int change_as_one(Call call, int from_directory, const char* from, int to_directory, const char* to, Act act) {
  holdfast::redundant::Replica* const replica = holdfast::redundant::Replica::now();
  const std::string full = replica ? holdfast::catalog::absolute_path(full_path(from_directory, from)) : "";
  std::vector<tree::Line> lines;
  if (!replica || acts_alone(*replica, full)) [[likely]] {
    const int result = act(lines);
    for (const tree::Line& line : lines) complain(line.path, line.sentence);
    return replica ? failure_of_all(from_directory, from, int(call), result) : result;
  }
  const std::string other = to ? holdfast::catalog::absolute_path(full_path(to_directory, to)) : "";
  const auto source = open_here(from_directory, from), goal = to ? open_here(to_directory, to) : nullptr;
  if (source) source->put_down();
  if (goal && goal != source) goal->put_down();
  bool acted = false;
  const auto outcome = holdfast::file::once(*replica, call, full, other, [&](bool again) {
    acted = true;
    const int failed = act(lines) == 0 ? 0 : errno;
    const bool moved = again && failed == ENOENT && !holdfast::file::seen_at(full) && (!to || holdfast::file::seen_at(other));
    const bool done = failed == 0 || moved;
    return holdfast::file::Outcome{{}, done ? 0 : uint64_t(failed), packed(lines)};
  });
  say_packed(outcome.payload);
  if (outcome.value != 0) return errno = int(outcome.value), -1;
  if (acted) return 0;
  if (goal && goal != source) goal->follow_removal();
  if (source && to) source->follow_rename(other);
  if (source && !to) source->follow_removal();
  return 0;
}

// -1 and errno, with one line on standard error where there is a sentence.
int answer_for(const std::string& path, const Status& status) { return give(tree::answer_of(path, status)); }

template <class Native>
int unlink_this(int directory, const char* path, Native native) {
  if (const auto file = checkpoint_at(directory, path, false)) {
    const OurCode ours_now;
    Checkpoints& all = *Checkpoints::of_process(settings());
    const Status removed = all.remove(*file);
    if (removed.kind() != holdfast::Kind::not_found) return answer_for(file->path, removed);
    if (!all.shows_plain(*file)) return errno = ENOENT, -1;
  }
  if (inside > 0 || !path || !is_protected(directory, path, false)) return native();
  const OurCode ours_now;
  return change_as_one(Call::unlink, directory, path, AT_FDCWD, nullptr, [&](std::vector<tree::Line>& lines) {
    const tree::Answer answer = tree_of_process().unlink(full_path(directory, path));
    return answer.natively ? native() : answer_with(answer, lines);
  });
}

// A directory goes where nothing is left in it to be seen.
template <class Native>
int remove_directory(int directory, const char* path, Native native) {
  if (holds_checkpoints(directory, path)) return errno = ENOTEMPTY, -1;
  const int result = native();
  if (result == 0 || inside > 0 || (errno != ENOTEMPTY && errno != EEXIST)) return result;
  const int error = errno;
  const OurCode ours_now;
  if (!tree_of_process().clear_directory(full_path(directory, path)).ok()) return errno = error, -1;
  return native();
}

// What the program does not see belongs to its user and stays, and so does the directory. To the program it was empty: it goes on as if it were gone.
template <class Native>
int remove_directory_as_seen(int directory, const char* path, Native native) {
  if (is_unseen_directory(directory, path)) return errno = ENOENT, -1;
  const int result = remove_directory(directory, path, native);
  if (result == 0 || inside > 0 || (errno != ENOTEMPTY && errno != EEXIST)) return result;
  if (cleared_of_marks(directory, path)) return native();
  return shows_nothing(directory, path) ? remove_unseen_directory(directory, path) : result;
}

bool is_there(int directory, const char* path) {
  const SeenAt seen = see_checkpoint(directory, path, false);
  struct stat state;
  return seen.natively ? holdfast::raw::fstatat(directory, path, &state, AT_SYMLINK_NOFOLLOW) == 0 : !seen.path.empty();
}

// A directory, a pipe: nothing that could be a checkpoint's content.
bool is_no_file(int directory, const char* path) {
  struct stat state;
  return holdfast::raw::fstatat(directory, path, &state, AT_SYMLINK_NOFOLLOW) == 0 && !S_ISREG(state.st_mode) && !S_ISLNK(state.st_mode);
}

bool is_directory(int directory, const char* path) {
  struct stat state;
  return holdfast::raw::fstatat(directory, path, &state, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(state.st_mode);
}

// Of a symbolic link itself to a checkpoint's name. Replicas look at different times, and do not look.
bool renames_link(int from_directory, const char* from, int to_directory, const char* to, unsigned flags) {
  if (!checkpoint_at(to_directory, to, false) || holdfast::redundant::Replica::now() || (flags & ~unsigned(RENAME_NOREPLACE))) return false;
  if (!is_link_of_the_program(from_directory, from)) return false;
  const SeenAt seen = see_checkpoint(from_directory, from, false);
  return seen.natively || seen.path.empty();
}

// What was written under the name that a link gets. 0, or -1 and errno.
int make_way_for_link(int directory, const char* path, unsigned flags) {
  const SeenAt seen = see_checkpoint(directory, path, false);
  if (seen.natively || seen.path.empty()) return 0;
  if (flags & RENAME_NOREPLACE) return errno = EEXIST, -1;
  const auto file = checkpoint_at(directory, path, false);
  const OurCode ours_now;
  const Status removed = Checkpoints::of_process(settings())->remove(*file);
  return removed.kind() == holdfast::Kind::not_found ? 0 : answer_for(file->path, removed);
}

// Natively what is renamed takes the place of a link. 0, or -1 and errno.
int replace_link(const Checkpoints::File& file) {
  if (!Checkpoints::of_process(settings())->may_be_link(file)) return 0;
  return as_one(Call::unlink, AT_FDCWD, file.path.c_str(), "link", ENOENT,
                [&] { return is_link_of_the_program(AT_FDCWD, file.path.c_str()) ? real().unlinkat(AT_FDCWD, file.path.c_str(), 0) : 0; });
}

uint64_t device_of(const std::string& path) {
  struct stat state;
  return holdfast::raw::fstatat(AT_FDCWD, path.c_str(), &state, 0) == 0 ? uint64_t(state.st_dev) : 0;
}

// To a name that is no checkpoint's: it is a plain file from then on, with its times. EXDEV where who renames has to copy it, as from any other file system.
int become_plain(const Checkpoints::File& source, const SeenAt& seen, int from_directory, const char* from, int to_directory, const char* to,
                 unsigned flags) {
  const std::string full = holdfast::catalog::absolute_path(full_path(to_directory, to));
  const std::string parent = holdfast::catalog::parent_of(full);
  if (device_of(holdfast::catalog::parent_of(source.path)) != device_of(parent)) return errno = EXDEV, -1;
  if (holdfast::redundant::Replica::now() || flags || is_protected(to_directory, to, false) || is_named(full)) {
    complain(source.path, fmt::format("it is a checkpoint, and {} is none: it gets that name by a copy, as mv makes", full));
    return errno = EXDEV, -1;
  }
  Checkpoints& all = *Checkpoints::of_process(settings());
  const std::string half = fmt::format("{}/.holdfast-renamed-{}-{}", parent, getpid(), gettid());
  Status copied;
  // Where it has gone on to its next state it is looked for as by the program.
  const int result = call_where_it_is(seen, from_directory, from, [&](const char* at) {
    const OurCode ours_now;
    struct stat state;
    if (holdfast::raw::fstatat(AT_FDCWD, at, &state, 0) != 0) return -1;
    (void)real().unlink(half.c_str());  // of the time before
    copied = all.copy_out(source, at, half);
    const timespec times[] = {state.st_atim, state.st_mtim};
    if (copied.ok()) (void)real().utimensat(AT_FDCWD, half.c_str(), times, 0);
    return copied.ok() ? 0 : (errno = copied.to_errno(), -1);
  });
  const OurCode ours_now;
  if (result != 0 || real().rename(half.c_str(), full.c_str()) != 0) {
    const KeepErrno keep;
    (void)real().unlink(half.c_str());
    if (!copied.ok() && copied.kind() != holdfast::Kind::not_found) complain(source.path, copied.sentence());
    return -1;
  }
  return answer_for(source.path, all.remove(source));
}

// What stands at its path belongs to its user: it is of another drain than what the attempt has begun with.
bool hides_plain(const Checkpoints& all, const Checkpoints::File& file) {
  return !all.shows_plain(file) && holdfast::catalog::look(file.path, false).ok();
}

// Between a checkpoint's name and others, or another checkpoint's: the content gets the new name, as a version of its own.
std::optional<int> rename_checkpoint(int from_directory, const char* from, int to_directory, const char* to, unsigned flags) {
  const auto source = checkpoint_at(from_directory, from, false), goal = checkpoint_at(to_directory, to, false);
  if (!source && !goal) return {};
  if (const OurCode ours_now; goal && is_late(goal->path)) return {};
  SeenAt seen = see_checkpoint(from_directory, from, false);
  if (source && seen.natively && !goal) return {};
  if (seen.natively && !holdfast::redundant::Replica::now() && is_no_file(from_directory, from)) {  // replicas look at different times
    const SeenAt there = goal && is_directory(from_directory, from) ? describe_checkpoint(to_directory, to, false) : SeenAt{.natively = true};
    return there.natively || there.path.empty() ? std::nullopt : std::optional((errno = ENOTDIR, -1));
  }
  if (!seen.natively && seen.path.empty()) return -1;
  if (source && goal && source->path == goal->path) {  // nothing is to be done, and nothing to be removed
    if (seen.natively) return {};
    return flags & RENAME_NOREPLACE ? (errno = EEXIST, -1) : flags ? (errno = EINVAL, -1) : 0;
  }
  if (!seen.grows.empty() && !goal) {
    complain(source->path, "is being written by all ranks, and gets no name that is no checkpoint's until its own checkpoint is complete");
    return errno = EBUSY, -1;
  }
  if (!goal) return become_plain(*source, seen, from_directory, from, to_directory, to, flags);
  if (flags & ~unsigned(RENAME_NOREPLACE)) return errno = EINVAL, -1;
  if ((flags & RENAME_NOREPLACE) && is_there(to_directory, to)) return errno = EEXIST, -1;
  const OurCode ours_now;
  Checkpoints& all = *Checkpoints::of_process(settings());
  if (!seen.grows.empty()) {
    const auto renamed = all.rename_shared(*source, *goal);
    if (!renamed || *renamed) return renamed ? 0 : answer_for(source->path, renamed.status());
    seen = see_checkpoint_again(from_directory, from);  // a version since
    if (!seen.natively && seen.path.empty()) return -1;
  }
  std::string content = seen.natively ? full_path(from_directory, from) : seen.path;
  Status taken = all.take(content, *goal);
  // It may have gone on to its next state. Replicas look for it before they meet.
  while (!seen.natively && taken.kind() == holdfast::Kind::not_found && !holdfast::redundant::Replica::now()) {
    const auto now = all.look_alone(*source);
    if (!now || now->path.empty() || now->path == content) break;
    taken = all.take(content = now->path, *goal);
  }
  if (!taken.ok()) return answer_for(goal->path, taken);
  if (replace_link(*goal) != 0) return -1;
  wait_for_protection(goal->path);
  if (!seen.natively) return answer_for(source->path, all.remove(*source));
  // A plain checkpoint of before the job may be the newest that a restart finds, until the version is of a whole one: it is at its new path then, as natively.
  const bool may_serve = source && !all.is_each_by_itself() && !holdfast::redundant::Replica::now() && !hides_plain(all, *goal);
  if (may_serve && real().renameat(from_directory, from, to_directory, to) == 0) return 0;
  return as_one(Call::unlink, from_directory, from, "", ENOENT, [=] { return real().unlinkat(from_directory, from, 0); });
}

// What lies in it is found by its path, which the nodes keep. `mv`, shutil.move and their like copy what cannot be renamed.
bool keeps_its_name(int directory, const char* path) {
  if (!holds_checkpoints(directory, path)) return false;
  const OurCode ours_now;
  complain(full_path(directory, path),
           "it holds checkpoints, which keep their names: rename each of them, or move the directory as mv does, by a copy");
  return true;
}

// Whether that was done. Else it stays, or is taken when it is closed.
bool take_where_it_lies(const Checkpoints::File& file) {
  const std::string& path = file.path;
  Checkpoints& all = *Checkpoints::of_process(settings());
  Status taken = all.take(path, file);
  if (taken.kind() == holdfast::Kind::busy && !holdfast::redundant::Replica::now()) {
    holdfast::watch_ending();
    const auto later = all.take_when_closed(file);
    if (later && *later) return false;
    if (!later) taken = later.status();
  }
  if (!taken) complain(path, taken.sentence() + "; it stays a plain file");
  return taken.ok();
}

// Programs write a checkpoint's directory under another name, and rename it when it is complete (`chk00010.temp`): as if each file in it got its name
// alone. Replicas meet for that where they have met for the rename, and the name alone says whether such files may be there.
void take_files_of(int from_directory, const char* from, int to_directory, const char* to) {
  Checkpoints* const all = checkpoints();
  if (!all) return;
  const std::string full = [=] {
    const OurCode ours_now;
    return holdfast::catalog::absolute_path(full_path(to_directory, to));
  }();
  if (!all->may_lie_below(full)) return;
  if (const OurCode ours_now; is_late(full)) return;
  std::vector<std::string> files = plain_files_named_so(to_directory, to);
  const OurCode ours_now;
  auto* const replica = holdfast::redundant::Replica::now();
  if (replica && (acts_alone(*replica, full) || acts_alone(*replica, holdfast::catalog::absolute_path(full_path(from_directory, from))))) return;
  // First all are taken, then they are waited for: in between some have their names, and others not.
  auto taken = all->files_of_directory(full, std::move(files));
  std::erase_if(taken, [](const Checkpoints::File& file) { return !take_where_it_lies(file); });
  for (const Checkpoints::File& file : taken) wait_for_protection(file.path);
  for (const Checkpoints::File& file : taken)
    (void)as_one(Call::unlink, AT_FDCWD, file.path.c_str(), "", ENOENT, [&] { return real().unlinkat(AT_FDCWD, file.path.c_str(), 0); });
}

// As the program sees it.
std::vector<std::string> names_seen_in(const std::string& directory) {
  std::vector<std::string> names;
  DIR* const stream = opendir(directory.c_str());
  if (!stream) return names;
  while (const dirent* const entry = readdir(stream))
    if (std::strcmp(entry->d_name, ".") != 0 && std::strcmp(entry->d_name, "..") != 0) names.emplace_back(entry->d_name);
  (void)closedir(stream);
  return names;
}

// What is open to write gets its name with its directory alone, when it is closed.
bool any_open_to_write_in(const std::string& directory) {
  const OurCode ours_now;
  const auto names = holdfast::catalog::list_directory(directory);
  return !names || std::any_of(names->begin(), names->end(), [&](const std::string& name) {
    const std::string path = directory + "/" + name;
    const auto there = holdfast::catalog::look(path, false);
    if (there && there->directory()) return any_open_to_write_in(path);
    return there && there->regular() && holdfast::checkpoint::has_writers(path);
  });
}

// To the program the directory that has the new name already is empty. What its user has there stays, as a removal leaves it; what is renamed comes beside it, each file by
// its own name. Replicas find different things where they look at different times, and do not do that. `mv` asks for a new name first, and moves into a directory that has it.
bool may_come_beside_unseen(int from_directory, const char* from, int to_directory, const char* to, unsigned flags) {
  if ((errno != ENOTEMPTY && errno != EEXIST) || (flags & ~unsigned(RENAME_NOREPLACE))) return false;
  const KeepErrno keep;
  if (flags && !is_unseen_directory(to_directory, to)) return false;
  if (!checkpoints() || holdfast::redundant::Replica::now() || !is_directory(from_directory, from)) return false;
  return shows_nothing(to_directory, to) && !any_open_to_write_in(full_path(from_directory, from));
}

int come_beside_unseen(const std::string& from, const std::string& to) {
  if (is_unseen_directory(AT_FDCWD, to.c_str())) (void)make_unseen_directory(AT_FDCWD, to.c_str());
  for (const std::string& name : names_seen_in(from))
    if (rename((from + "/" + name).c_str(), (to + "/" + name).c_str()) != 0) return -1;  // by the doors, as all here
  return rmdir(from.c_str());
}

template <class Native>
int rename_this(int from_directory, const char* from, int to_directory, const char* to, unsigned flags, Native native) {
  if (inside > 0 || !from || !to) return native();
  if (is_unseen_directory(from_directory, from)) return errno = ENOENT, -1;
  if (renames_link(from_directory, from, to_directory, to, flags)) {
    if (make_way_for_link(to_directory, to, flags) != 0) return -1;
  } else if (const auto renamed = rename_checkpoint(from_directory, from, to_directory, to, flags)) {
    return *renamed;
  }
  if (keeps_its_name(from_directory, from)) return errno = EXDEV, -1;
  const auto rename = [&](std::vector<tree::Line>& lines) {
    {
      const OurCode ours_now;
      const tree::Name from_name{full_path(from_directory, from), is_protected(from_directory, from, false)};
      const tree::Name to_name{full_path(to_directory, to), is_protected(to_directory, to, false)};
      const tree::Renaming how{.keeps_existing = (flags & RENAME_NOREPLACE) != 0, .does_more = (flags & ~unsigned(RENAME_NOREPLACE)) != 0};
      const tree::Answer answer = tree_of_process().rename(from_name, to_name, how, native);
      const int result = answer_with(answer, lines);
      if (!answer.natively) return result;
    }
    return remove_directory(to_directory, to, native);  // what a directory takes the place of shows nothing
  };
  const int result = change_as_one(Call::rename, from_directory, from, to_directory, to, rename);
  if (result == 0) take_files_of(from_directory, from, to_directory, to);
  if (result == 0 || !may_come_beside_unseen(from_directory, from, to_directory, to, flags)) return result;
  return come_beside_unseen(full_path(from_directory, from), full_path(to_directory, to));
}

// A plain file that this process has open with buffers before it.
std::shared_ptr<ProcessFile> buffered_here(const char* path) {
  struct stat state;
  if (!ProcessFile::any_plain() || holdfast::raw::fstatat(AT_FDCWD, path, &state, 0) != 0) return nullptr;
  return ProcessFile::find(ProcessFile::plain_id(state.st_dev, state.st_ino));
}

template <class Native>
int truncate_this(const char* path, off_t bytes, Native native) {
  if (inside > 0 || !path || bytes < 0) return native();
  if (const auto fd = open_checkpoint(AT_FDCWD, path, O_WRONLY | (bytes == 0 ? O_TRUNC : 0), 0)) {
    const int result = *fd < 0 ? -1 : ftruncate(*fd, bytes);  // by the door
    if (*fd >= 0) (void)close(*fd);
    return result;
  }
  if (const std::string instead = path_instead(path); !instead.empty()) return truncate(instead.c_str(), bytes);  // by the door
  if (auto file = buffered_here(path)) {
    const OurCode ours_now;
    return give(tree::answer_of(path, file->set_size(uint64_t(bytes))));
  }
  if (!is_protected(AT_FDCWD, path)) return native();
  if (!is_allowed(AT_FDCWD, path, W_OK)) return -1;
  const OurCode ours_now;
  return give(tree_of_process().truncate(path, uint64_t(bytes)));
}

template <class Native>
int unlink_any(int directory, const char* path, Native native) {
  const bool ours = inside > 0;
  const auto once = [=] { return ours ? native() : as_one(Call::unlink, directory, path, "", ENOENT, native); };
  return observed_name(Counter::unlinks, directory, path, [=] { return unlink_this(directory, path, once); });
}

template <class Native>
int rename_any(int from_directory, const char* from, int to_directory, const char* to, unsigned flags, Native native) {
  const bool ours = inside > 0;
  const std::string other = ours ? "" : other_name(to_directory, to);
  const auto once = [=] { return ours ? native() : as_one(Call::rename, from_directory, from, other, ENOENT, native); };
  return observed_name(Counter::renames, from_directory, from, [=] { return rename_this(from_directory, from, to_directory, to, flags, once); });
}

template <class Native>
int truncate_any(const char* path, off_t bytes, Native native) {
  const bool ours = inside > 0;
  const auto once = [=] { return ours ? native() : as_one(Call::set_size, AT_FDCWD, path, std::to_string(bytes), 0, native); };
  return observed_name(Counter::resizes, AT_FDCWD, path, [=] { return truncate_this(path, bytes, once); });
}

}  // namespace

HF_DOOR int remove(const char* path) noexcept {
  HF_ALIKE(AT_FDCWD, path);
  return unlink_any(AT_FDCWD, path, [=] { return remove_directory_as_seen(AT_FDCWD, path, [=] { return real().remove(path); }); });
}

namespace {

// A directory, a link, a named pipe. At the path itself nothing may stand where a checkpoint is to be seen.
template <class Native>
int make_new(Call call, int directory, const char* path, const char* other, Native native) {
  if (inside > 0) return native();
  if (const int error = why_name_is_taken(directory, path)) return errno = error, -1;
  return as_one(call, directory, path, other, EEXIST, native);
}

// One that is there, and is not seen, is made by a note in it.
template <class Native>
int make_directory(int directory, const char* path, Native native) {
  const int result = make_new(Call::make_directory, directory, path, "", native);
  if (result == 0 || errno != EEXIST || !is_unseen_directory(directory, path)) return result;
  return make_unseen_directory(directory, path);
}

// It has no content of its own.
template <class Native>
int make_node(int directory, const char* path, Native native) {
  return make_new(Call::make_node, directory, path, "", native);
}

template <class Native>
int remove_directory_once(int directory, const char* path, Native native) {
  const bool ours = inside > 0;
  return remove_directory_as_seen(directory, path,
                                  [=] { return ours ? native() : as_one(Call::unlink, directory, path, "directory", ENOENT, native); });
}

}  // namespace

HF_DOOR int mkdir(const char* path, mode_t mode) noexcept {
  HF_ALIKE(AT_FDCWD, path);
  return make_directory(AT_FDCWD, path, [=] { return real().mkdir(path, mode); });
}
HF_DOOR int mkdirat(int directory, const char* path, mode_t mode) noexcept {
  HF_ALIKE(directory, path);
  return make_directory(directory, path, [=] { return real().mkdirat(directory, path, mode); });
}
HF_DOOR int unlinkat(int directory, const char* path, int flags) noexcept {
  HF_ALIKE(directory, path);
  const auto native = [=] { return real().unlinkat(directory, path, flags); };
  return flags & AT_REMOVEDIR ? remove_directory_once(directory, path, native) : unlink_any(directory, path, native);
}

// A link says nothing of what it leads to. It is made once, and has the caller's text.
HF_DOOR int symlinkat(const char* target, int directory, const char* path) noexcept {
  HF_ALIKE(AT_FDCWD, target);
  HF_ALIKE(directory, path);
  const auto native = [=] { return int(syscall(SYS_symlinkat, target, directory, path)); };
  return make_new(holdfast::file::Call::link, directory, path, target, native);
}
HF_DOOR int symlink(const char* target, const char* path) noexcept {
  HF_ALIKE(AT_FDCWD, target);
  HF_ALIKE(AT_FDCWD, path);
  return symlinkat(target, AT_FDCWD, path);
}
HF_DOOR int chdir(const char* path) noexcept {
  HF_ALIKE(AT_FDCWD, path);
  if (is_unseen_directory(AT_FDCWD, path)) return errno = ENOENT, -1;
  return real().chdir(path);
}

// The doors whose chain stands in gen/libc_functions.txt.
#include "name_doors.inc"
