// What lies below a layer, in a test: bytes in memory, with a list of the calls that came.
#pragma once
#include <gtest/gtest.h>

#include <cerrno>
#include <cstring>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/file_layer.hpp"

namespace holdfast::layers::test {

struct Call {
  bool write;
  Extent extent;
};

// What lies below: bytes in memory, a list of the calls, and a write that fails once.
struct Disk {
  std::mutex mutex;
  std::vector<uint8_t> bytes;
  std::vector<Call> calls;
  int appends = 0;
  int writes = 0, fail_write = -1;  // the n-th write fails, once
  bool full = false;                // every write fails
  bool synced = false, closed = false;
};

class DiskFile final : public FileLayer {
 public:
  explicit DiskFile(Disk& disk) : disk_(disk) {}
  Status write(std::span<const Extent> extents, ByteView data) override {
    std::lock_guard guard(disk_.mutex);
    for (const Extent& e : extents) {
      disk_.calls.push_back({true, e});
      if (disk_.writes++ == disk_.fail_write || disk_.full) return Status(Kind::no_space, "disk: no space left", ENOSPC);
      if (disk_.bytes.size() < e.end()) disk_.bytes.resize(e.end());
      std::memcpy(disk_.bytes.data() + e.offset, data.data(), e.length);
      data = data.subspan(e.length);
    }
    disk_.synced = false;
    return Status();
  }
  Result<uint64_t> read(std::span<const Extent> extents, ByteSpan into) override {
    std::lock_guard guard(disk_.mutex);
    uint64_t got = 0;
    for (const Extent& e : extents) {
      disk_.calls.push_back({false, e});
      const uint64_t there = e.offset < disk_.bytes.size() ? std::min<uint64_t>(e.length, disk_.bytes.size() - e.offset) : 0;
      std::memcpy(into.data(), disk_.bytes.data() + e.offset, there);
      into = into.subspan(e.length);
      got += there;
    }
    return got;
  }
  Result<uint64_t> size() override {
    std::lock_guard guard(disk_.mutex);
    return disk_.bytes.size();
  }
  Result<Extent> append(std::span<const ByteView> pieces, bool durable) override {
    Extent place{*size(), 0};
    for (const ByteView& piece : pieces) {
      const Extent extent{place.end(), piece.size()};
      HF_TRY(write({&extent, 1}, piece));
      place.length += piece.size();
    }
    disk_.synced |= durable;
    ++disk_.appends;
    return place;
  }
  Status sync() override {
    disk_.synced = true;
    return Status();
  }
  Status set_size(uint64_t bytes) override {
    std::lock_guard guard(disk_.mutex);
    disk_.bytes.resize(bytes);
    return Status();
  }
  Status close() override {
    disk_.closed = true;
    return Status();
  }

 private:
  Disk& disk_;
};

inline Status put(FileLayer& file, uint64_t at, std::string_view text) {
  const Extent extent{at, text.size()};
  return file.write(std::span(&extent, 1), std::as_bytes(std::span(text)));
}
inline std::string got(FileLayer& file, uint64_t at, uint64_t count) {
  std::string text(count, '?');
  const Extent extent{at, count};
  auto read = file.read(std::span(&extent, 1), std::as_writable_bytes(std::span(text)));
  EXPECT_TRUE(read.ok()) << read.status().sentence();
  text.resize(read.ok() ? *read : 0);
  return text;
}
inline std::string content(const Disk& disk) { return std::string(disk.bytes.begin(), disk.bytes.end()); }

}  // namespace holdfast::layers::test
