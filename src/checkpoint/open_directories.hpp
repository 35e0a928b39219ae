// Directories that a process lists often, and keeps open. Who removes one shows by that: it can be listed no more, and is opened anew by its path. One that was not there is
// looked for again when the directory above has got another one: on most file systems its links tell.
#pragma once
#include <sys/types.h>

#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "catalog/environment.hpp"

namespace holdfast::checkpoint {

class OpenDirectories {
 public:
  using Names = std::vector<std::string>;

  // All below `above`. While this is in use no other directory there goes.
  explicit OpenDirectories(std::string above);
  // What has been in each of them, in their order and one after another; nothing of one that is not there.
  std::vector<Names> list(const std::vector<std::string>& directories);

 private:
  std::optional<std::vector<Names>> list_but_missing(const std::vector<std::string>& directories);
  std::optional<Names> list_kept(const std::string& directory);
  Names list_anew(const std::string& directory);
  void forget_kept();
  uint64_t links_above() const;
  bool are_still_missing() const;

  const std::string above_;
  const pid_t process_;  // a forked child shares the places in what is open, and opens its own each time
  std::mutex mutex_;
  catalog::Descriptor open_above_;
  std::map<std::string, catalog::Descriptor> kept_;
  std::set<std::string> missing_;  // since the directory above had so many links
  uint64_t links_ = 0;
};

}  // namespace holdfast::checkpoint
