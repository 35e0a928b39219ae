// A directory of the user's: where it is now, whoever has renamed it or one above it since it was found.
#pragma once
#include <string>

#include "catalog/environment.hpp"

namespace holdfast::catalog {

class FollowedDirectory {
 public:
  FollowedDirectory() = default;
  explicit FollowedDirectory(const std::string& absolute);
  explicit operator bool() const { return bool(directory_); }
  // `file`: the absolute path of a file in it, as last known; as it is now. The same where nothing better is known.
  std::string path_of(const std::string& file) const;

 private:
  Descriptor directory_;
};

}  // namespace holdfast::catalog
