#include "checkpoint/untouched.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <fmt/format.h>

#include "catalog/environment.hpp"
#include "catalog/user_files.hpp"

namespace holdfast::checkpoint {

namespace {

constexpr size_t most_note_bytes = 128;

// Without its content. Not the time at which its name changed.
std::string outline_of(const std::string& path) {
  struct stat state;
  if (catalog::environment().fstatat(AT_FDCWD, path.c_str(), &state, AT_SYMLINK_NOFOLLOW) != 0) return "";
  return fmt::format("{} {:o} {}.{:09} ", state.st_size, state.st_mode, state.st_mtim.tv_sec, state.st_mtim.tv_nsec);
}

std::string text_of(const Content& content) { return fmt::format("{:016x}\n", content.sum); }

// Who writes the same bytes has written: the time of change says so. The sum says what no time tells: several changes in one tick of the clock, and on some file
// systems what is written through a mapping.
bool is_as_noted(const std::string& path, const std::string& note) {
  const std::string outline = outline_of(path);
  if (outline.empty() || !note.starts_with(outline)) return false;
  const auto content = content_of(path);
  return content && note == outline + text_of(*content);
}

}  // namespace

std::string Untouched::note(const LocalName& name) const {
  return fmt::format("{}/{}/{}", files_.directory(), untouched_directory, opener_begins(name));
}

std::string Untouched::claimed_note(const LocalName& name) const { return note(name) + "claimed"; }

Status Untouched::begins(const LocalName& name, const std::string& copy, const Content& content) const {
  const std::string outline = outline_of(copy);
  if (outline.empty()) return Status::from_errno(errno, copy);
  const auto put = [&] { return catalog::replace_file(note(name), files_.scratch(), outline + text_of(content), 0600, false); };
  const Status first = put();
  if (first.kind() != Kind::not_found) return first;
  const Status made = catalog::make_directory(fmt::format("{}/{}", files_.directory(), untouched_directory));
  return made || made.kind() == Kind::exists ? put() : made;
}

bool Untouched::has(const LocalName& name) const { return catalog::look(note(name), false).ok() || catalog::look(claimed_note(name), false).ok(); }

void Untouched::claim(const LocalName& name) const { (void)catalog::move(note(name), claimed_note(name)); }

void Untouched::forget(const LocalName& name) const {
  for (const std::string& text : {note(name), claimed_note(name)}) (void)catalog::unlink_file(text);
}

Untouched::Found Untouched::settle(const LocalName& name, State state, bool is_last) const {
  const auto before = catalog::read_beginning(note(name), most_note_bytes);
  if (!before) return has(name) ? Found::written : Found::no_note;
  const std::string path = files_.path(state, name);
  const bool may_be_written = !is_last && has_writers(path);  // before it is compared: nobody begins to write meanwhile
  if (!is_as_noted(path, *before)) return claim(name), Found::written;
  if (may_be_written || !catalog::unlink_file(path)) return Found::as_was;
  forget(name);
  return Found::gone;
}

std::set<std::string> Untouched::noted() const {
  const auto names = catalog::list_directory(fmt::format("{}/{}", files_.directory(), untouched_directory));
  return names ? std::set<std::string>(names->begin(), names->end()) : std::set<std::string>();
}

std::set<std::string> Untouched::noted_on(target::Target& target, const std::string& below) {
  const auto names = target.list(fmt::format("{}/{}", below, untouched_directory));
  return names ? std::set<std::string>(names->begin(), names->end()) : std::set<std::string>();
}

}  // namespace holdfast::checkpoint
