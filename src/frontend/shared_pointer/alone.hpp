// The shared pointer of a file that one process has opened for itself.
#pragma once
#include "frontend/shared_pointer/shared_pointer.hpp"

namespace holdfast::frontend {

class AlonePointer : public SharedPointer {
 public:
  int64_t fetch_add(int64_t etypes) override { return __atomic_fetch_add(&value_, etypes, __ATOMIC_SEQ_CST); }
  int64_t load() override { return __atomic_load_n(&value_, __ATOMIC_SEQ_CST); }
  bool store(int64_t etypes) override {
    __atomic_store_n(&value_, etypes, __ATOMIC_SEQ_CST);
    return true;
  }
  const char* algorithm() const override { return "window"; }
  int64_t* in_memory() override { return &value_; }

 private:
  int64_t value_ = 0;
};

// Where nothing can keep one: no window over this network, no way to a server. Every call says so.
class NoPointer : public SharedPointer {
 public:
  int64_t fetch_add(int64_t) override { return -1; }
  int64_t load() override { return -1; }
  bool store(int64_t) override { return false; }
  Status failure() const override {
    return Status(Kind::unsupported,
                  "no shared file pointer is possible here: this MPI has no windows between nodes, and not every rank reaches a server; "
                  "try holdfast_shared_pointer=native");
  }
  const char* algorithm() const override { return "none"; }
};

}  // namespace holdfast::frontend
