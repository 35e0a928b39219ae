// Listings of directories in a redundant job: the leader reads, and all replicas see the same entries in the same order.
#pragma once
#include <dirent.h>

#include <functional>
#include <string>
#include <vector>

#include "redundant/twins/replica.hpp"

namespace holdfast::intercept::posix {

// One stream of entries.
class ToldListing {
 public:
  // What the leader reads of its own stream: to the end, or to an error.
  using Read = std::function<dirent64*()>;
  explicit ToldListing(std::string name) : name_(std::move(name)) {}
  // Null at the end, and with errno after an error. It lasts until the next call.
  template <class Entry>
  Entry* next(const Read& read) {
    static_assert(sizeof(Entry) == sizeof(dirent64) && offsetof(Entry, d_name) == offsetof(dirent64, d_name));
    return reinterpret_cast<Entry*>(next_entry(read));
  }
  long position() const { return long(next_); }
  void go_to(long position) { next_ = size_t(position); }
  void begin_anew() { is_read_ = false, next_ = 0; }

 private:
  dirent64* next_entry(const Read& read);
  void take(redundant::Replica& replica, const Read& read);

  const std::string name_;
  bool is_read_ = false;
  int error_ = 0;
  size_t next_ = 0;
  std::vector<Bytes> entries_;
  dirent64 entry_ = {};
};

// Null for a stream that is read as it is: one load where there is no other.
ToldListing* told_listing(DIR* stream);
// The stream that the program gets is read as the leader says. `opened` may be null, with errno.
DIR* open_as_told(redundant::Replica& replica, const std::string& name, DIR* opened);
void tell_listing(DIR* stream, const std::string& name);
void forget_told_listing(DIR* stream);

}  // namespace holdfast::intercept::posix
