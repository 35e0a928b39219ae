// What a front end has open, as far as names are concerned. A file that is renamed, removed or described is the same for those who have it open.
#pragma once
#include <cstdint>
#include <memory>
#include <string>

#include "base/status.hpp"
#include "catalog/located.hpp"

namespace holdfast::tree {

// What stat says of a file beside its size; zeros where that is what its entry says.
struct Identity {
  uint64_t device = 0, inode = 0;
};

// A protected file that is open.
class Opened {
 public:
  virtual ~Opened() = default;
  virtual Status unlink() = 0;  // it keeps its content until it is closed
  virtual Status rename(const std::string& to) = 0;
  virtual Result<uint64_t> size() = 0;
  virtual Identity identity_of_copy() = 0;  // once a whole copy stands at the path
  virtual int64_t written_ns() const = 0;   // when it was written last, where that may be later than its entry's time says; else 0
};

class Openings {
 public:
  virtual ~Openings() = default;
  // Null where the file is not open.
  virtual std::shared_ptr<Opened> find(const std::string& file_id) = 0;
  // Of a file that may be open or not.
  virtual Status set_size(catalog::Located located, uint64_t bytes) = 0;
  // Whether a plain file is open for writing natively, as far as this process can tell.
  virtual bool is_written(uint64_t device, uint64_t inode) = 0;
  // The directory is about to go: files in it that have lost their names go on in the one above.
  virtual void leave_directory(const std::string& absolute) = 0;
};

}  // namespace holdfast::tree
