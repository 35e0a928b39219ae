// Status and Result: what a call of ours answers. An error is a kind, the operating system's errno where there
// was one, and one sentence that a person can act on. Nothing in Holdfast throws across a room's boundary.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

namespace holdfast {

enum class Kind : uint8_t {
  ok,
  io,         // EIO and whatever else a device may say
  not_found,  // ENOENT
  exists,     // EEXIST
  access,     // EACCES, EPERM
  no_space,   // ENOSPC, EDQUOT
  read_only,  // EROFS
  timed_out,  // a call that outlived its deadline
  lost,       // more units of a row gone than its code can bear, or a target that is not there
  corrupt,    // bytes that fail their checksum or make no sense
  stale,      // an older epoch than the one that is known to exist
  busy,       // somebody else holds the lock
  invalid,    // bad input from the user or the program
  unsupported,
  version,  // written by a newer Holdfast
  internal,
};

class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(Kind kind, std::string sentence, int sys_errno = 0) : kind_(kind), errno_(sys_errno), sentence_(std::move(sentence)) {}

  // Kind from errno; the sentence becomes "<what>: <strerror>".
  static Status from_errno(int sys_errno, const std::string& what);

  bool ok() const { return kind_ == Kind::ok; }
  explicit operator bool() const { return ok(); }
  Kind kind() const { return kind_; }
  int sys_errno() const { return errno_; }
  const std::string& sentence() const { return sentence_; }
  // The errno that a POSIX caller should see for this status (EIO where nothing fits better, 0 when ok).
  int to_errno() const;

 private:
  Kind kind_ = Kind::ok;
  int errno_ = 0;
  std::string sentence_;
};

const char* kind_name(Kind kind);

template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}
  Result(Status status) : status_(std::move(status)) {}
  Result(Kind kind, std::string sentence) : status_(kind, std::move(sentence)) {}

  bool ok() const { return value_.has_value(); }
  explicit operator bool() const { return ok(); }
  const Status& status() const { return status_; }
  T& value() & { return *value_; }
  const T& value() const& { return *value_; }
  T&& value() && { return std::move(*value_); }
  T& operator*() & { return *value_; }
  const T& operator*() const& { return *value_; }
  T&& operator*() && { return std::move(*value_); }
  T* operator->() { return &*value_; }
  const T* operator->() const { return &*value_; }

 private:
  std::optional<T> value_;
  Status status_;
};

}  // namespace holdfast

// Hands a failed Status on to the caller.
#define HF_TRY(expression)                                                                 \
  do {                                                                                     \
    if (::holdfast::Status hf_status_ = (expression); !hf_status_.ok()) return hf_status_; \
  } while (0)
