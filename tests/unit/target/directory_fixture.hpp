// A directory of its own for a test, removed with all that is in it.
#pragma once
#include <stdlib.h>

#include <filesystem>
#include <string>

namespace holdfast::target {

class TemporaryDirectory {
 public:
  explicit TemporaryDirectory(const std::filesystem::path& where = std::filesystem::temp_directory_path()) {
    std::string name = (where / "holdfast-test.XXXXXX").string();
    path_ = mkdtemp(name.data());
  }
  ~TemporaryDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  const std::string& path() const { return path_; }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

}  // namespace holdfast::target
