#include "tree/tree.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <iterator>

#include "base/raw_syscalls.hpp"
#include "catalog/catalog.hpp"
#include "catalog/hidden_names.hpp"
#include "catalog/user_files.hpp"
#include "tree/former.hpp"
#include "tree/rename_checks.hpp"
#include "tree/rename_plain.hpp"

namespace holdfast::tree {

namespace {

bool is_there(const std::string& path) {
  struct stat state;
  return raw::fstatat(AT_FDCWD, path.c_str(), &state, AT_SYMLINK_NOFOLLOW) == 0;
}

// The same file by both names: nothing is to be done.
bool same_name(const std::string& a, const std::string& b) { return catalog::absolute_path(a) == catalog::absolute_path(b); }

Answer natively() { return {.natively = true}; }
// What the error itself says.
Answer refused(Kind kind, int error) { return {.status = Status(kind, "", error)}; }

}  // namespace

Answer answer_of(const std::string& path, Status status) {
  const bool says_it_all = status.ok() || status.kind() == Kind::not_found || status.sys_errno() == EXDEV;
  Answer answer{.status = std::move(status)};
  if (!says_it_all) answer.lines.push_back({path, answer.status.sentence()});
  return answer;
}

Identity identity_of(const std::string& file_id, Identity of_copy) {
  if (of_copy.inode) return of_copy;
  uint64_t number = 14695981039346656037u;  // FNV-1a
  for (const char c : file_id) number = (number ^ uint64_t(uint8_t(c))) * 1099511628211u;
  return {0, number >> 1};
}

std::string in_place_of_lost_entry(const std::string& path) { return catalog::sidecar_of(catalog::absolute_path(path)) + "/manifest"; }

// What is open of the file at `path`; null where it is not.
std::shared_ptr<Opened> Tree::opened(const std::string& path) const {
  const auto located = catalog::locate(path, settings_, {.ignore_edits = true});
  return located ? openings_.find(located->manifest.file_id) : nullptr;
}

// As those see it who have it open; else as of the last sync, from the manifest alone.
Result<Seen> Tree::stat(const std::string& path, bool is_copy) const {
  const auto located = catalog::locate(path, settings_);
  if (!located) return located.status();
  const std::string& id = located->manifest.file_id;
  const auto file = openings_.find(id);
  if (!file) return Seen{located->manifest.size, is_copy ? Identity() : identity_of(id, {}), 0};
  const auto size = file->size();
  if (!size) return size.status();
  return Seen{*size, is_copy ? Identity() : identity_of(id, file->identity_of_copy()), file->written_ns()};
}

// Kind::not_found from the catalog: what looked protected is a sidecar or stub that leads nowhere; then the entry
// alone is meant.
Answer Tree::unlink(const std::string& path) const {
  const auto file = opened(path);  // keeps its content until it is closed
  const Status status = file ? file->unlink() : catalog::remove(path, settings_);
  return status.kind() == Kind::not_found ? natively() : answer_of(path, status);
}

Answer Tree::truncate(const std::string& path, uint64_t bytes) const {
  auto located = catalog::locate(path, settings_);
  return answer_of(path, located ? openings_.set_size(std::move(*located), bytes) : located.status());
}

Status Tree::clear_directory(const std::string& path) const {
  const std::string full = catalog::absolute_path(path);
  openings_.leave_directory(full);
  return catalog::remove_leftovers(full, settings_);
}

// Whether a plain file comes to where a protected one is wanted.
bool Tree::becomes_protected(const Name& from, const Name& to) const {
  if (from.is_protected || (!to.is_protected && !is_named(settings_, to.path, scope_))) return false;
  struct stat source, there;
  if (raw::fstatat(AT_FDCWD, from.path.c_str(), &source, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(source.st_mode)) return false;
  if (refusal_of_rename(from, to) != 0) return false;
  if (raw::fstatat(AT_FDCWD, to.path.c_str(), &there, AT_SYMLINK_NOFOLLOW) != 0) return true;
  return there.st_ino != source.st_ino || there.st_dev != source.st_dev;
}

Answer Tree::rename(const Name& from, const Name& to, const Renaming& how, const Native& native) const {
  std::vector<Line> lines;
  if (!how.does_more && becomes_protected(from, to)) {
    if (how.keeps_existing && (to.is_protected || is_there(to.path))) return refused(Kind::exists, EEXIST);
    const bool named = is_named(settings_, to.path, scope_);
    Answer answer = rename_plain(from.path, to, named ? Making::by_settings : Making::as_what_is_there, settings_, openings_);
    if (!answer.natively) return answer;
    lines = std::move(answer.lines);
  }
  Answer answer = rename_as_it_is(from, to, how, native);
  answer.lines.insert(answer.lines.begin(), std::make_move_iterator(lines.begin()), std::make_move_iterator(lines.end()));
  return answer;
}

Answer Tree::rename_as_it_is(const Name& from, const Name& to, const Renaming& how, const Native& native) const {
  if (!from.is_protected && !to.is_protected) return natively();
  if (how.does_more) return refused(Kind::invalid, EINVAL);
  if (how.keeps_existing && (to.is_protected || catalog::look(to.path, false))) return refused(Kind::exists, EEXIST);
  if (const int error = refusal_of_rename(from, to); error != 0) return refused(error == ENOENT ? Kind::not_found : Kind::invalid, error);
  if (from.is_protected && same_name(from.path, to.path)) return {};
  return to.is_protected ? rename_over(from, to.path, native) : move(from.path, to.path);
}

Answer Tree::move(const std::string& from, const std::string& to) const {
  const auto file = opened(from);
  const Status moved = file ? file->rename(to) : catalog::rename(from, to, settings_);
  return moved.kind() == Kind::not_found ? natively() : answer_of(from, moved);
}

// Over a protected file. What was there goes when what comes is there.
Answer Tree::rename_over(const Name& from, const std::string& to, const Native& native) const {
  const auto coming = from.is_protected ? catalog::locate(from.path, settings_, {.ignore_edits = true}) : Status(Kind::not_found, "");
  if (!coming && coming.status().kind() != Kind::not_found) return answer_of(from.path, coming.status());
  const auto going = coming ? catalog::locate(to, settings_, {.ignore_edits = true}) : Status(Kind::not_found, "");
  if (going && going->manifest.file_id == coming->manifest.file_id) return move(from.path, to);  // a rename that was cut short is being finished
  Former former(catalog::absolute_path(to), settings_, openings_);
  const auto file = coming ? openings_.find(coming->manifest.file_id) : nullptr;
  Answer answer;
  if (coming && !file) {
    answer = answer_of(from.path, former.give_way(catalog::absolute_path(from.path)));
  } else if (const Status aside = former.put_aside(); !aside.ok() && aside.kind() != Kind::not_found) {
    return answer_of(to, aside);
  } else {
    answer = file ? answer_of(from.path, file->rename(to)) : Answer{.status = native() == 0 ? Status() : Status(Kind::io, "", errno)};
    if (!answer.status.ok()) former.put_back();
  }
  if (answer.status.ok()) former.remove();
  answer.lines.insert(answer.lines.end(), std::make_move_iterator(former.lines().begin()), std::make_move_iterator(former.lines().end()));
  return answer;
}

}  // namespace holdfast::tree
