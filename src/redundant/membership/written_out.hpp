// What ranks print, on the job's own output and errors. What cannot be written is noticed once for each, by the hub's own thread.
#pragma once
#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <string>

#include "base/bytes.hpp"
#include "base/raw_syscalls.hpp"

namespace holdfast::redundant {

class WrittenOut {
 public:
  WrittenOut(int out, int err);
  // In the outlet's thread. After an error nothing more of that stream is written. Stream 0 is the output, any other one the errors.
  void write(uint64_t stream, ByteView bytes);
  void write_line(const std::string& line);  // of ours, to the errors
  // Readable while something is to be looked at.
  int descriptor() const { return unwritten_.get(); }
  // Streams that have failed since, each once, with the error.
  void look(const std::function<void(uint64_t stream, int error)>& failed);
  // Nobody who reads any more (EPIPE) has missed nothing.
  bool is_whole() const;

 private:
  raw::Fd out_, err_, unwritten_;
  std::array<std::atomic<int>, 2> errors_{};  // by stream
  std::array<bool, 2> told_{};
};

}  // namespace holdfast::redundant
