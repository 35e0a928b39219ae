// Turns of a node's processes at files: each is a lock on one byte of one file that they all have. The kernel takes it back from a process that dies, and a forked child has none
// of its parent's.
#pragma once
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/status.hpp"
#include "catalog/environment.hpp"

namespace holdfast::checkpoint {

class Turns : public std::enable_shared_from_this<Turns> {
 public:
  // Until it goes. Where the file system has no locks it keeps nobody away.
  class Turn {
   public:
    Turn() = default;
    Turn(std::shared_ptr<Turns> of, uint64_t at) : of_(std::move(of)), at_(at) {}
    Turn(Turn&& other) noexcept : of_(std::move(other.of_)), at_(other.at_) { other.of_.reset(); }
    Turn& operator=(Turn&& other) noexcept;
    ~Turn() { end(); }
    explicit operator bool() const { return of_ != nullptr; }

   private:
    void end();
    std::shared_ptr<Turns> of_;
    uint64_t at_ = 0;
  };

  explicit Turns(std::string path) : path_(std::move(path)) {}
  // By one thread of a process at a time. `make_directory`: where there is none yet. Kind::busy where another process has been at it for longer than `patience`.
  Result<Turn> take(const std::string& file, std::chrono::milliseconds patience, const std::function<Status()>& make_directory);
  // The number that it has is needed: until the next turn there is none.
  void close() { file_ = catalog::Descriptor(); }

 private:
  Status open_file(const std::function<Status()>& make_directory);
  int lock(uint64_t at);

  const std::string path_;
  catalog::Descriptor file_;  // kept open; a program that closes all its numbers may close it
  uint64_t device_ = 0, inode_ = 0;
};

}  // namespace holdfast::checkpoint
