#include "intercept/posix/tree_of_process.hpp"

#include <sstream>

#include "base/raw_syscalls.hpp"
#include "catalog/user_files.hpp"
#include "intercept/posix/descriptors.hpp"
#include "intercept/posix/paths.hpp"
#include "intercept/posix/settings.hpp"
#include "redundant/frame.hpp"

namespace holdfast::intercept::posix {

namespace {

class ProcessOpenings final : public tree::Openings {
 public:
  std::shared_ptr<tree::Opened> find(const std::string& file_id) override { return ProcessFile::find(file_id); }

  Status set_size(catalog::Located located, uint64_t bytes) override {
    auto file = ProcessFile::open({std::move(located)}, {.writes = true}, settings());
    if (!file) return file.status();
    const Status cut = (*file)->set_size(bytes), closed = (*file)->leave(true);
    return cut.ok() ? closed : cut;
  }

  // This process's own descriptors are looked through.
  bool is_written(uint64_t device, uint64_t inode) override {
    const auto numbers = catalog::list_directory("/proc/self/fd");
    if (!numbers) return false;
    for (const std::string& name : *numbers) {
      const int fd = std::atoi(name.c_str());
      struct stat state;
      const int flags = raw::fcntl(fd, F_GETFL);
      const bool writes = flags >= 0 && !(flags & O_PATH) && (flags & O_ACCMODE) != O_RDONLY;
      if (writes && raw::fstat(fd, &state) == 0 && state.st_ino == inode && state.st_dev == device) return true;
    }
    return false;
  }

  void leave_directory(const std::string& absolute) override { ProcessFile::leave_directory(absolute); }
};

}  // namespace

const tree::Tree& tree_of_process() {
  static auto* const openings = new ProcessOpenings;  // never destroyed: names are used while the process ends
  static const auto* const tree = new tree::Tree(settings(), *openings, tree::plain_calls);
  return *tree;
}

int give(const tree::Answer& answer) {
  for (const tree::Line& line : answer.lines) complain(line.path, line.sentence);
  return answer.status.ok() ? 0 : (errno = answer.status.to_errno(), -1);
}

namespace {

constexpr char end_of_text = '\0';

}  // namespace

Bytes packed(const std::vector<tree::Line>& lines) {
  std::string text;
  for (const tree::Line& line : lines) text += line.path + end_of_text + line.sentence + end_of_text;
  return redundant::bytes_of(text);
}

void say_packed(ByteView lines) {
  std::istringstream text{std::string(redundant::text_of(lines))};
  for (std::string path, sentence; std::getline(text, path, end_of_text) && std::getline(text, sentence, end_of_text);) complain(path, sentence);
}

}  // namespace holdfast::intercept::posix
