// The shared file pointer of one open file: a number that all its processes advance. One algorithm per file in
// this folder; whoever opens the file chooses.
#pragma once
#include <cstdint>
#include <memory>

namespace holdfast::frontend {

class SharedPointer {
 public:
  virtual ~SharedPointer() = default;  // collective
  virtual int64_t fetch_add(int64_t etypes) = 0;
  virtual int64_t load() = 0;
  virtual void store(int64_t etypes) = 0;  // by one process; the caller keeps the others away
};

}  // namespace holdfast::frontend
