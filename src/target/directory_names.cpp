#include "target/directory_names.hpp"

#include <sys/stat.h>

#include <utility>

#include "base/directory_entries.hpp"
#include "target/kernel_calls.hpp"

namespace holdfast::target {

namespace {

constexpr int always = O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY;  // O_NONBLOCK: a fifo must not hold us

class DirectoryNames final : public NameStore {
 public:
  DirectoryNames(raw::Fd directory, std::string path, mode_t mode) : directory_(std::move(directory)), path_(std::move(path)), mode_(mode) {}

  std::string describe() const override { return path_; }

  // A file that says nothing is nobody's, and stays: so it goes again where it cannot be filled.
  Status make(const std::string& name, const std::string& content) override {
    const raw::Fd file(restarted([&] { return raw::openat(fd(), name.c_str(), O_WRONLY | O_CREAT | O_EXCL | always, mode_); }));
    if (!file) return failure("cannot make " + at(name));
    const ssize_t written = restarted([&] { return raw::write(file.get(), content.data(), content.size()); });
    if (written == ssize_t(content.size())) return {};
    Status status = written < 0 ? failure("cannot write " + at(name)) : Status(Kind::no_space, "cannot write all of " + at(name), ENOSPC);
    (void)remove(name);
    return status;
  }

  Status link(const std::string& from, const std::string& to) override {
    if (restarted([&] { return raw::linkat(fd(), from.c_str(), fd(), to.c_str()); }) == 0) return {};
    if (errno == EPERM || errno == EOPNOTSUPP || errno == ENOSYS || errno == EMLINK || errno == EXDEV)
      return Status(Kind::unsupported, path_ + " has no links", errno);
    return failure("cannot link " + at(to));
  }

  Status rename(const std::string& from, const std::string& to) override {
    if (restarted([&] { return raw::renameat2(fd(), from.c_str(), fd(), to.c_str()); }) == 0) return {};
    return failure("cannot rename " + at(from));
  }

  Status remove(const std::string& name) override {
    if (restarted([&] { return raw::unlinkat(fd(), name.c_str(), 0); }) == 0) return {};
    return failure("cannot remove " + at(name));
  }

  Result<std::string> read(const std::string& name) override {
    const raw::Fd file(restarted([&] { return raw::openat(fd(), name.c_str(), O_RDONLY | always); }));
    if (!file) return failure("cannot open " + at(name));
    char buffer[4096];
    const ssize_t got = restarted([&] { return raw::pread(file.get(), buffer, sizeof buffer, 0); });
    if (got < 0) return errno == ESTALE ? Status(Kind::not_found, at(name) + " is gone", ENOENT) : failure("cannot read " + at(name));
    return std::string(buffer, size_t(got));
  }

  Result<int> links(const std::string& name) override {
    struct statx found {};
    const int flags = AT_STATX_FORCE_SYNC | AT_SYMLINK_NOFOLLOW;
    if (restarted([&] { return raw::statx(fd(), name.c_str(), flags, STATX_NLINK, &found); }) == 0) return int(found.stx_nlink);
    return errno == ESTALE ? Status(Kind::not_found, at(name) + " is gone", ENOENT) : failure("cannot look at " + at(name));
  }

  Result<std::vector<std::string>> list() override {
    const raw::Fd readable(restarted([&] { return raw::openat(fd(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC); }));
    if (!readable) return failure("cannot list " + path_);
    return directory_entries(readable.get(), path_);
  }

 private:
  int fd() const { return directory_.get(); }
  std::string at(const std::string& name) const { return path_ + "/" + name; }

  raw::Fd directory_;
  std::string path_;
  mode_t mode_;
};

}  // namespace

Result<std::vector<std::string>> directory_entries(int directory, const std::string& path) {
  std::vector<std::string> names;
  alignas(8) char buffer[32768];
  for (;;) {
    const ssize_t got = restarted([&] { return raw::getdents64(directory, buffer, sizeof buffer); });
    if (got < 0) return failure("cannot list " + path);
    if (got == 0) return names;
    each_name_in(buffer, got, [&](const char* name) { names.emplace_back(name); });
  }
}

std::shared_ptr<NameStore> names_in(raw::Fd directory, std::string path, mode_t mode) {
  return std::make_shared<DirectoryNames>(std::move(directory), std::move(path), mode);
}

}  // namespace holdfast::target
