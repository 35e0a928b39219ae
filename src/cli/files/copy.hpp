// Bytes between plain and protected files, by one process.
#pragma once
#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <string>

#include "base/bytes.hpp"
#include "engine/maintenance.hpp"
#include "engine/protected_file.hpp"
#include "file/open.hpp"

namespace holdfast::cli {

// To be read from its beginning to its end: a size that its targets cannot hold is refused before.
Result<file::Alone> open_to_read(const std::string& path, const Settings& settings);

// Gets the file's bytes in order, piece by piece; a failure ends the reading.
using Sink = std::function<Status(uint64_t offset, ByteView piece)>;
Status read_through(engine::ProtectedFile& file, const engine::Progress& progress, const Sink& sink);

// The whole of it into a new plain file, holes as holes, and synced. `name`: of the plain file, for messages.
Status copy_out(engine::ProtectedFile& file, int fd, const std::string& name, const engine::Progress& progress);

// A descriptor that closes itself.
class Descriptor {
 public:
  explicit Descriptor(int fd = -1) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Descriptor();
  int get() const { return fd_; }
  bool open() const { return fd_ >= 0; }

 private:
  int fd_;
};

Status write_whole(int fd, ByteView bytes, const std::string& name);
// Up to `into`'s size, less only at the end.
Result<size_t> read_whole(int fd, ByteSpan into, const std::string& name);
bool all_zero(ByteView bytes);

Status stopped();  // what work that the user interrupted answers

}  // namespace holdfast::cli
