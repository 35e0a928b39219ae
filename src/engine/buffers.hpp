// Memory for rows and units: large, page-aligned, used over and over. Asking the kernel for each row anew costs more than coding it: a page fault
// for every 4 KiB. So what is given back is kept, up to a bound.
#pragma once
#include <pthread.h>

#include <cstddef>
#include <cstdint>

#include "base/bytes.hpp"

namespace holdfast::engine {

class Buffer {
 public:
  // Not zeroed, except where `fresh()` says so. Rows may be far larger than what is touched: only touched pages exist.
  explicit Buffer(uint64_t bytes);
  ~Buffer();
  Buffer(Buffer&& other) noexcept : data_(other.data_), bytes_(other.bytes_), fresh_(other.fresh_) { other.data_ = nullptr; }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(Buffer&&) = delete;
  std::byte* data() { return data_; }
  const std::byte* data() const { return data_; }
  uint64_t size() const { return bytes_; }
  ByteSpan span() { return {data_, size_t(bytes_)}; }
  bool valid() const { return data_ != nullptr; }
  bool fresh() const { return fresh_; }  // straight from the kernel: zeros

 private:
  std::byte* data_ = nullptr;
  uint64_t bytes_;
  bool fresh_ = true;
};

// While it lives so much more is kept: who has many pieces on their way at once gets them back from here. What is beyond the bound goes back with it.
class KeepMoreBuffers {
 public:
  explicit KeepMoreBuffers(uint64_t bytes);
  KeepMoreBuffers(const KeepMoreBuffers&) = delete;
  ~KeepMoreBuffers();

 private:
  const uint64_t bytes_;
};
uint64_t kept_buffer_bytes();  // just now, for tests
uint64_t used_buffer_bytes();  // the same of what somebody has in hands

// Memory of each thread, kept from call to call; one object per use, which is never destroyed. Not thread_local: the main thread's would be
// gone at exit before the program's own destructors and handlers run, and they still read and write.
class ThreadBytes {
 public:
  ThreadBytes() {
    pthread_key_create(&key_, [](void* bytes) { delete static_cast<Bytes*>(bytes); });
  }
  Bytes& get() {
    auto* bytes = static_cast<Bytes*>(pthread_getspecific(key_));
    if (!bytes) pthread_setspecific(key_, bytes = new Bytes);
    return *bytes;
  }

 private:
  pthread_key_t key_;
};

}  // namespace holdfast::engine
