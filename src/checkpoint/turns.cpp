#include "checkpoint/turns.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <utility>

#include "coding/xxh3.hpp"

namespace holdfast::checkpoint {

Turns::Turn& Turns::Turn::operator=(Turn&& other) noexcept {
  if (this == &other) return *this;
  end();
  of_ = std::move(other.of_), at_ = other.at_;
  other.of_.reset();
  return *this;
}

void Turns::Turn::end() {
  const int error = errno;
  if (of_ && of_->file_) (void)catalog::environment().unlock_byte(of_->file_.get(), at_);
  of_.reset();
  errno = error;
}

Status Turns::open_file(const std::function<Status()>& make_directory) {
  const auto open_now = [&] {
    return catalog::Descriptor(catalog::environment().openat(AT_FDCWD, path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  };
  file_ = open_now();
  if (!file_ && errno == ENOENT) {
    HF_TRY(make_directory());
    file_ = open_now();
  }
  struct stat state;
  if (!file_ || catalog::environment().fstat(file_.get(), &state) != 0) return Status::from_errno(errno, path_);
  device_ = state.st_dev, inode_ = state.st_ino;
  return {};
}

// 0, or -1 and errno. ESTALE: others lock another file by now, or its number is another file's here.
int Turns::lock(uint64_t at) {
  struct stat state;
  const bool is_open = catalog::environment().fstat(file_.get(), &state) == 0;
  if (!is_open || state.st_dev != device_ || state.st_ino != inode_) {
    file_.forget();
    return errno = ESTALE, -1;
  }
  if (catalog::environment().lock_byte(file_.get(), at) != 0) return -1;
  // Not before it is locked: who removes it may do so meanwhile.
  return catalog::environment().fstat(file_.get(), &state) == 0 && state.st_nlink > 0 ? 0 : (errno = ESTALE, -1);
}

Result<Turns::Turn> Turns::take(const std::string& file, std::chrono::milliseconds patience, const std::function<Status()>& make_directory) {
  constexpr std::chrono::milliseconds look_again(1);
  const uint64_t at = coding::xxh3(file.data(), file.size(), 0) >> 2;  // the kernel counts bytes with a sign
  const auto until = catalog::environment().now() + patience;
  bool is_opened_now = !file_;
  if (is_opened_now) HF_TRY(open_file(make_directory));
  while (lock(at) != 0) {
    if (errno == ESTALE && !std::exchange(is_opened_now, true)) {
      HF_TRY(open_file(make_directory));
      continue;
    }
    if (errno != EAGAIN && errno != EACCES) break;
    if (catalog::environment().now() > until)
      return Status(Kind::busy, file + ": another process of this node has been opening or closing it for too long; is it stopped?", EBUSY);
    catalog::environment().wait(look_again);
  }
  return Turn(shared_from_this(), at);
}

}  // namespace holdfast::checkpoint
