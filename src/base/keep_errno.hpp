// errno as the caller had it, whatever is asked in between.
#pragma once
#include <cerrno>

namespace holdfast {

class KeepErrno {
 public:
  ~KeepErrno() { errno = value_; }

 private:
  const int value_ = errno;
};

}  // namespace holdfast
