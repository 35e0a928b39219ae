// Writes that fail: what a program could not write is no version, though it closes its file all the same. docs/decisions/0104
#include <fmt/format.h>

#include "frontend/posix/checkpoints_state.hpp"

namespace holdfast::frontend::posix {

namespace {

constexpr const char* not_written = "the program could not write all of it";

std::string why_not_written(int error) {
  const std::string what = not_written;
  return error == 0 ? what : Status::from_errno(error, what).sentence();
}

}  // namespace

// The kernel knows the file of a number that came from another process or image, and its name if another process has changed it.
void Checkpoints::write_failed(int fd, int error) {
  std::lock_guard lock(state_->mutex);
  const auto path = catalog::read_link(fmt::format("/proc/self/fd/{}", fd));
  if (const auto name = path ? state_->name_of_local(*path) : std::nullopt) return state_->note_failed(*name, error);
  const auto found = state_->written.find(fd);
  if (found != state_->written.end() && state_->is_own(found->second)) state_->note_failed(found->second.name, error);
}

void Checkpoints::end_failed(int error) {
  std::lock_guard lock(state_->mutex);
  for (const auto& [fd, one] : state_->written)
    if (state_->is_own(one)) state_->note_failed(one.name, error);
  for (const LocalName& name : state_->names_handed_over()) state_->note_failed(name, error);
}

// The kernel's path has no links in it, and the node's directory may be reached by one.
std::optional<LocalName> Checkpoints::State::name_of_local(const std::string& path) const {
  using checkpoint::State;
  auto name = checkpoint::decode_local_name(catalog::name_of(path));
  const auto there = name ? catalog::look(catalog::parent_of(path), true) : Result<catalog::FileState>(Status(Kind::not_found, ""));
  for (const State state : {State::writing, State::closed, State::protecting}) {
    const auto one = there ? catalog::look(files.directory_of(state), true) : there;
    if (one && one->device == there->device && one->inode == there->inode) return name;
  }
  return {};
}

// Where another process has truncated it, it is later in the order now, or of a later checkpoint.
LocalName Checkpoints::State::name_now(const LocalName& name) const {
  for (const LocalName& now : files.list(checkpoint::State::writing))
    if (now.file == name.file && now.number == name.number) return now;
  return name;
}

void Checkpoints::State::note_failed(const LocalName& known, int error) {
  has_failed_writes = true;
  const LocalName name = name_now(known);
  const std::string why = why_not_written(error);
  if (!files.say_why(name, why)) unsaid[{name.file, name.number}] = why;
}

void Checkpoints::State::forget_failed(const LocalName& name) {
  files.forget_why(name_now(name));
  unsaid.erase({name.file, name.number});
}

// What cannot be said yet keeps the file from being closed: it is torn when the attempt is over.
Status Checkpoints::State::say_failed(const LocalName& name) {
  const auto found = unsaid.find({name.file, name.number});
  if (found == unsaid.end()) return {};
  HF_TRY(files.say_why(name, found->second));
  unsaid.erase(found);
  return {};
}

// Its file gets that name, and what was said of it holds on.
void Checkpoints::State::rename_reason(const LocalName& from, const LocalName& to) {
  const std::string why = files.why(from);
  if (why.empty()) return;
  if (!files.say_why(to, why)) unsaid[{to.file, to.number}] = why;
  files.forget_why(from);
}

// What was said of another checkpoint's file, or of the version that this one has begun with, holds for what has its content.
Status Checkpoints::State::take_reason(const std::string& from, const LocalName& to) const {
  const auto before = file_of(from).empty() ? std::nullopt : checkpoint::decode_local_name(catalog::name_of(from));
  const std::string why = before ? files.why(*before) : "";
  const bool is_of_content = why.starts_with(not_written) || why == checkpoint::why_unsaid || why.starts_with(checkpoint::why_begun_anew);
  return is_of_content ? files.say_why(to, why) : Status();
}

}  // namespace holdfast::frontend::posix
