#include "checkpoint/open_directories.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "catalog/user_files.hpp"

namespace holdfast::checkpoint {

namespace {

catalog::Descriptor open_below(int above, const std::string& path) {
  return catalog::Descriptor(catalog::environment().openat(above, path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0));
}

OpenDirectories::Names listing_of(const catalog::Descriptor& directory) {
  auto names = directory ? catalog::list_directory(directory.get(), "") : Result<OpenDirectories::Names>(OpenDirectories::Names());
  return names ? std::move(*names) : OpenDirectories::Names();
}

}  // namespace

OpenDirectories::OpenDirectories(std::string above) : above_(std::move(above)), process_(::getpid()) {}

std::vector<OpenDirectories::Names> OpenDirectories::list(const std::vector<std::string>& directories) {
  if (::getpid() != process_) {
    std::vector<Names> all;
    const catalog::Descriptor above = open_below(AT_FDCWD, above_);
    for (const std::string& directory : directories) all.push_back(above ? listing_of(open_below(above.get(), directory)) : Names());
    return all;
  }
  const std::lock_guard lock(mutex_);
  for (;;) {
    if (auto names = list_but_missing(directories)) return std::move(*names);
    missing_.clear();
  }
}

// Nothing where one of those that were missing may be there by now. They are asked for last, and all of them again then: what goes on from one to the next meanwhile is
// seen in one of them.
std::optional<std::vector<OpenDirectories::Names>> OpenDirectories::list_but_missing(const std::vector<std::string>& directories) {
  std::vector<Names> all;
  std::vector<std::string> passed_over;
  for (const std::string& directory : directories) {
    const bool is_missing = missing_.contains(directory);
    if (is_missing) passed_over.push_back(directory);
    auto names = is_missing ? std::optional(Names()) : list_kept(directory);
    all.push_back(names ? std::move(*names) : list_anew(directory));
  }
  const bool are_known = std::all_of(passed_over.begin(), passed_over.end(), [&](const std::string& one) { return missing_.contains(one); });
  if (!passed_over.empty() && !(are_known && are_still_missing())) return {};
  return all;
}

// 0 where the file system does not count directories there.
uint64_t OpenDirectories::links_above() const {
  constexpr nlink_t of_none = 2;  // by its own name, and by its "."
  struct stat state;
  if (!open_above_ || catalog::environment().fstat(open_above_.get(), &state) != 0) return 0;
  return state.st_nlink > of_none ? uint64_t(state.st_nlink) : 0;
}

bool OpenDirectories::are_still_missing() const { return links_ > 0 && links_above() == links_; }

void OpenDirectories::forget_kept() {
  kept_.clear();
  missing_.clear();
  open_above_ = catalog::Descriptor();
}

std::optional<OpenDirectories::Names> OpenDirectories::list_kept(const std::string& directory) {
  const auto found = kept_.find(directory);
  if (found == kept_.end()) return {};
  auto names = catalog::environment().rewind(found->second.get()) == 0 ? catalog::list_directory(found->second.get(), "")
                                                                       : Result<Names>(Status::from_errno(errno, directory));
  if (names) return std::move(*names);
  forget_kept();  // with it what lies above it may have been removed
  return {};
}

// While none of them is kept nobody would see that what lies above was removed.
OpenDirectories::Names OpenDirectories::list_anew(const std::string& directory) {
  if (kept_.empty()) open_above_ = open_below(AT_FDCWD, above_);
  if (!open_above_) return {};
  if (missing_.empty()) links_ = links_above();  // before it is looked for: what is made after that shows
  catalog::Descriptor opened = open_below(open_above_.get(), directory);
  if (!opened && errno == ENOENT && !kept_.empty() && directory.find('/') == std::string::npos) missing_.insert(directory);
  Names names = listing_of(opened);
  if (opened) kept_.emplace(directory, std::move(opened));
  return names;
}

}  // namespace holdfast::checkpoint
