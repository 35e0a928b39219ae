// A directory of the user's: where it is now, whoever has renamed it or one above it since it was found.
#pragma once
#include <optional>
#include <string>

#include "catalog/environment.hpp"

namespace holdfast::catalog {

class FollowedDirectory {
 public:
  FollowedDirectory() = default;
  // `flags`: O_NOFOLLOW where a link in its place is none of ours.
  explicit FollowedDirectory(const std::string& absolute, int flags = 0);
  explicit operator bool() const { return bool(directory_); }
  // Its own path now. Nothing where it is gone, or where that is not known.
  std::optional<std::string> where() const;
  // Whether it is still there: one call, for who asks often. False where that is not known.
  bool is_at(const std::string& path) const;
  // `file`: the absolute path of a file in it, as last known; as it is now. The same where nothing better is known.
  std::string path_of(const std::string& file) const;

 private:
  Descriptor directory_;
};

}  // namespace holdfast::catalog
