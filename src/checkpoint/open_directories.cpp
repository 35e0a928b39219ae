#include "checkpoint/open_directories.hpp"

#include <fcntl.h>
#include <unistd.h>

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
  std::vector<Names> all;
  if (::getpid() != process_) {
    const catalog::Descriptor above = open_below(AT_FDCWD, above_);
    for (const std::string& directory : directories) all.push_back(above ? listing_of(open_below(above.get(), directory)) : Names());
    return all;
  }
  const std::lock_guard lock(mutex_);
  for (const std::string& directory : directories) {
    auto names = list_kept(directory);
    all.push_back(names ? std::move(*names) : list_anew(directory));
  }
  return all;
}

std::optional<OpenDirectories::Names> OpenDirectories::list_kept(const std::string& directory) {
  const auto found = kept_.find(directory);
  if (found == kept_.end()) return {};
  auto names = catalog::environment().rewind(found->second.get()) == 0 ? catalog::list_directory(found->second.get(), "")
                                                                       : Result<Names>(Status::from_errno(errno, directory));
  if (names) return std::move(*names);
  kept_.clear();  // with it what lies above it may have been removed
  open_above_ = catalog::Descriptor();
  return {};
}

// While none of them is kept nobody would see that what lies above was removed.
OpenDirectories::Names OpenDirectories::list_anew(const std::string& directory) {
  if (kept_.empty()) open_above_ = open_below(AT_FDCWD, above_);
  if (!open_above_) return {};
  catalog::Descriptor opened = open_below(open_above_.get(), directory);
  Names names = listing_of(opened);
  if (opened) kept_.emplace(directory, std::move(opened));
  return names;
}

}  // namespace holdfast::checkpoint
