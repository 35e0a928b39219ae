#include "engine/buffers.hpp"

#include <sys/mman.h>

#include <atomic>
#include <map>
#include <mutex>
#include <vector>

namespace holdfast::engine {

namespace {

// Kept for the process: at most this much in all, but for KeepMoreBuffers, and no single piece larger than half of it.
constexpr uint64_t kept_bytes_limit = 16 << 20;

struct Pool {
  std::mutex mutex;
  std::map<uint64_t, std::vector<std::byte*>> free;  // by size
  uint64_t bytes = 0;
  uint64_t most_bytes = kept_bytes_limit;
};

// Never destroyed: lanes may give memory back while the process ends.
Pool& pool() {
  static Pool* const the_pool = new Pool;
  return *the_pool;
}

std::atomic<uint64_t> used_bytes{0};

// Of that size, of what was given back; null where there is none.
std::byte* take_kept(uint64_t bytes) {
  Pool& kept = pool();
  std::lock_guard guard(kept.mutex);
  const auto it = kept.free.find(bytes);
  if (it == kept.free.end() || it->second.empty()) return nullptr;
  std::byte* const data = it->second.back();
  it->second.pop_back();
  kept.bytes -= bytes;
  return data;
}

std::byte* take_fresh(uint64_t bytes) {
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return memory == MAP_FAILED ? nullptr : static_cast<std::byte*>(memory);
}

}  // namespace

Buffer::Buffer(uint64_t bytes) : bytes_(bytes) {
  if (bytes == 0) return;
  data_ = take_kept(bytes);
  fresh_ = !data_;
  if (!data_) data_ = take_fresh(bytes);
  if (data_) used_bytes.fetch_add(bytes, std::memory_order_relaxed);
}

Buffer::~Buffer() {
  if (!data_) return;
  used_bytes.fetch_sub(bytes_, std::memory_order_relaxed);
  if (bytes_ <= kept_bytes_limit / 2) {
    Pool& kept = pool();
    std::lock_guard guard(kept.mutex);
    if (kept.bytes + bytes_ <= kept.most_bytes) {
      kept.free[bytes_].push_back(data_);
      kept.bytes += bytes_;
      return;
    }
  }
  munmap(data_, bytes_);
}

KeepMoreBuffers::KeepMoreBuffers(uint64_t bytes) : bytes_(bytes) {
  Pool& kept = pool();
  std::lock_guard guard(kept.mutex);
  kept.most_bytes += bytes_;
}

KeepMoreBuffers::~KeepMoreBuffers() {
  Pool& kept = pool();
  std::lock_guard guard(kept.mutex);
  kept.most_bytes -= bytes_;
  for (auto& [size, pieces] : kept.free)
    for (; kept.bytes > kept.most_bytes && !pieces.empty(); pieces.pop_back()) {
      munmap(pieces.back(), size);
      kept.bytes -= size;
    }
}

uint64_t kept_buffer_bytes() {
  Pool& kept = pool();
  std::lock_guard guard(kept.mutex);
  return kept.bytes;
}

uint64_t used_buffer_bytes() { return used_bytes.load(std::memory_order_relaxed); }

}  // namespace holdfast::engine
