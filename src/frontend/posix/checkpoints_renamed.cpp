// Files that a program has open to write while their directory gets a name of checkpoints. Such a file belongs to its checkpoint from then on, and gets there
// when it is closed. Until then it lies at its path, and an empty torn file notes it: a checkpoint whose file is never closed is never whole.
#include <cstdlib>
#include <string_view>

#include "checkpoint/local.hpp"
#include "frontend/posix/checkpoints_state.hpp"

namespace holdfast::frontend::posix {

namespace {

Status noted(const checkpoint::LocalFiles& files, const LocalName& name) {
  HF_TRY(checkpoint::encode(name).status());
  return files.put_into(checkpoint::State::torn, [&] { return catalog::make_file(files.path(checkpoint::State::torn, name), 0600); });
}

// The numbers of this process that it is open to write by.
std::vector<int> numbers_that_write(const catalog::FileState& file) {
  constexpr size_t most_said = 4096;
  constexpr std::string_view flags_begin = "flags:";
  std::vector<int> numbers;
  const auto all = catalog::list_directory("/proc/self/fd");
  if (!all) return numbers;
  for (const std::string& number : *all) {
    const auto there = catalog::look("/proc/self/fd/" + number, true);
    if (!there || there->device != file.device || there->inode != file.inode) continue;
    const auto said = catalog::read_beginning("/proc/self/fdinfo/" + number, most_said);
    const size_t at = said ? said->find(flags_begin) : std::string::npos;
    if (at == std::string::npos) continue;
    const auto access = std::strtoul(said->c_str() + at + flags_begin.size(), nullptr, 8) & O_ACCMODE;
    if (access == O_WRONLY || access == O_RDWR) numbers.push_back(std::atoi(number.c_str()));
  }
  return numbers;
}

}  // namespace

Result<bool> Checkpoints::take_when_closed(const File& file) {
  state_->wait_for_coming(file);
  std::lock_guard lock(state_->mutex);
  const auto plain = catalog::look(file.path, false);
  if (!plain) return plain.status();
  HF_TRY(state_->files.make());
  const auto turn = state_->files.take_turn(file.path, state_->patience());
  HF_TRY(turn.status());
  const State::Listed here = state_->files.listed();
  const auto name = state_->next_name_of(file, true, here);
  if (!name) return name.status();
  HF_TRY(state_->refuse_second(*name, here));
  state_->begins(name->step);
  HF_TRY(noted(state_->files, *name));
  const std::vector<int> numbers = numbers_that_write(*plain);
  for (const int fd : numbers) state_->is_written_by(fd, *name);
  if (numbers.empty()) return false;
  state_->renamed_open[file.path] = {plain->device, plain->inode};
  return true;
}

// Under the number that its note has, for a roll may have that by now.
Status Checkpoints::State::take_closed(const LocalName& name) {
  const std::string& plain = name.file;
  const auto was = renamed_open.extract(plain).mapped();
  const std::string note = files.path(checkpoint::State::torn, name);
  HF_TRY(say_failed(name));
  const auto now = catalog::look(plain, false);
  // The program has removed it since, or has given it another name.
  if (!now || std::pair(now->device, now->inode) != was) return catalog::unlink_file(note);
  if (checkpoint::has_writers(plain)) return still_written(plain);
  const std::string half = files.scratch();
  Status status = checkpoint::copy_file(plain, half);
  const auto turn = status ? files.take_turn(plain, patience()) : Result<State::Turn>(status);
  status = turn ? catalog::move(half, files.path(checkpoint::State::closed, name)) : turn.status();
  if (!status) return (void)catalog::unlink_file(half), status;
  (void)catalog::unlink_file(note);
  return catalog::unlink_file(plain);
}

// By another name it would be written twice, and what the first of them writes would be lost.
Status Checkpoints::State::refuse_renamed_open(const File& file, const Listed& here) const {
  const bool may_be_one = here.last_number(file.path) > 0 && !here.newest(file.path);
  const auto plain = may_be_one ? catalog::look(file.path, false) : Result<catalog::FileState>(Status(Kind::not_found, ""));
  if (!plain || !plain->regular() || !checkpoint::has_writers(file.path)) return {};
  return Status(Kind::busy, file.path + ": it has been open to write since before its directory got its name; close it before it is opened again",
                EBUSY);
}

}  // namespace holdfast::frontend::posix
