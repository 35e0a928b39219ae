#include "redundant/membership/written_out.hpp"

#include <sys/eventfd.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <utility>

#include "redundant/frame.hpp"
#include "redundant/membership/outlet.hpp"

namespace holdfast::redundant {

WrittenOut::WrittenOut(int out, int err) : out_(out), err_(err), unwritten_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

void WrittenOut::write(uint64_t stream, ByteView bytes) {
  std::atomic<int>& error = errors_[stream != 0];
  if (error == 0) error = write_all(stream == 0 ? out_.get() : err_.get(), bytes);
  const uint64_t one = 1;
  if (error != 0) (void)raw::write(unwritten_.get(), &one, sizeof one);
}

void WrittenOut::write_line(const std::string& line) { (void)write_all(err_.get(), bytes_of(line)); }

void WrittenOut::look(const std::function<void(uint64_t stream, int error)>& failed) {
  uint64_t times = 0;
  (void)raw::read(unwritten_.get(), &times, sizeof times);
  for (size_t stream = 0; stream < errors_.size(); ++stream)
    if (errors_[stream] != 0 && !std::exchange(told_[stream], true)) failed(stream, errors_[stream]);
}

bool WrittenOut::is_whole() const {
  return std::all_of(errors_.begin(), errors_.end(), [](const auto& error) { return error == 0 || error == EPIPE; });
}

}  // namespace holdfast::redundant
