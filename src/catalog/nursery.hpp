// Where a file grows that is to take the place of what stands at a path. That is a hidden directory beside it, under the same name.
#pragma once
#include <string>

#include "base/status.hpp"

namespace holdfast::catalog {

class Nursery {
 public:
  explicit Nursery(const std::string& path);
  // The directory goes, if nothing is left in it.
  ~Nursery();
  Nursery(const Nursery&) = delete;
  Nursery& operator=(const Nursery&) = delete;
  Status make() const;
  const std::string& file() const { return file_; }

 private:
  const std::string directory_, file_;
};

}  // namespace holdfast::catalog
