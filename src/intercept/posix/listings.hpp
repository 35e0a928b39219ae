// Checkpoints in listings of directories: they lie elsewhere, and a program sees them where it wrote them.
#pragma once
#include <dirent.h>

#include <cstddef>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "intercept/posix/checkpoints.hpp"

namespace holdfast::intercept::posix {

// One stream of entries, from where it begins.
class Listed {
 public:
  explicit Listed(Checkpoints::Listing what) : what_(std::move(what)), left_(what_.names) {}
  // It cannot be told which are there: the stream ends with an error.
  explicit Listed(int error) : error_(error) {}
  // Of what stands in the directory itself.
  bool shows(const char* name);
  const std::string& directory() const { return what_.directory; }
  // It is behind the last of these, where those begin that lie elsewhere.
  bool behind() const { return behind_; }
  // Null at the end. It lasts until the next call.
  template <class Entry>
  Entry* next() {
    static_assert(sizeof(Entry) == sizeof(dirent64) && offsetof(Entry, d_name) == offsetof(dirent64, d_name));
    return reinterpret_cast<Entry*>(next_entry());
  }
  // Positions behind the last that stands in the directory are negative; the C library has none of these.
  long position() const { return -2 - long(next_); }
  static bool is_position(long position) { return position <= -2; }
  void go_to(long position);

 private:
  dirent64* next_entry();
  const int error_ = 0;
  const Checkpoints::Listing what_;
  std::set<std::string> left_;  // those that do not stand in the directory
  size_t next_ = 0;
  bool behind_ = false;
  dirent64 entry_ = {};
};

// Looked at by the first call of a stream. Null where checkpoints cannot lie in its directory, and for our own code.
Listed* listed(DIR* stream);
// The stream ends, or begins anew.
void forget_listed(DIR* stream);
// Of a directory that is read by its number, from the beginning or after it.
Listed* listed(int directory);
// Of a path as the kernel has it, for a walk. Nothing where no checkpoints can lie there, or it cannot be told which do.
std::optional<Checkpoints::Listing> listing_of(const std::string& directory);
// Also of a step's directory in which nothing is to be seen of all that it holds.
bool hides(const Checkpoints::Listing& listing, const std::string& name);
// Whether checkpoints are to be seen in the directory at this path.
bool holds_checkpoints(int directory, const char* path);
// Whether there is something in a directory, and the program sees nothing of that: plain files of checkpoints that its attempt does not see.
bool shows_nothing(int directory, const char* path);
// A step's directory there is none to the program (Checkpoints::is_unseen_directory).
bool is_unseen_directory(int directory, const char* path);
// Whether making it, or its removal, has been noted: 0, or -1 and errno.
int make_unseen_directory(int directory, const char* path);
int remove_unseen_directory(int directory, const char* path);
// Nothing was left in it but such notes.
bool cleared_of_marks(int directory, const char* path);
// Files that lie in a directory natively, or below it, and have a checkpoint's name there. In the order of their paths.
std::vector<std::string> plain_files_named_so(int directory, const char* path);

}  // namespace holdfast::intercept::posix
