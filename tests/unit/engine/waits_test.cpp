// How often a file that is made, written and closed waits for devices to be flushed, one wait behind another: what waits side by side counts once.
// And how often it waits for bytes to be written out, which flushes nothing.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <mutex>
#include <thread>
#include <vector>

#include "catalog/catalog.hpp"
#include "catalog/environment.hpp"
#include "engine/protected_file.hpp"
#include "exchange/exchange.hpp"
#include "unit/target/forwarding_target.hpp"

namespace holdfast::engine {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;
using target::Target;

// Each wait takes so long that those which are begun together are seen together.
constexpr std::chrono::milliseconds wait_time(150);

class Waits {
 public:
  void wait() {
    const auto begin = Clock::now();
    std::this_thread::sleep_for(wait_time);
    std::lock_guard guard(mutex_);
    all_.emplace_back(Clock::now(), begin);
  }
  // The longest row of them of which each began when the one before had ended.
  int in_a_row() {
    std::sort(all_.begin(), all_.end());
    int count = 0;
    Clock::time_point last{};
    for (const auto& [end, begin] : all_)
      if (begin >= last) ++count, last = end;
    return count;
  }
  size_t count() const { return all_.size(); }
  std::atomic<int> written_out{0};

 private:
  std::mutex mutex_;
  std::vector<std::pair<Clock::time_point, Clock::time_point>> all_;  // end, begin
};

// A directory whose calls wait for the device as often as target/directory.cpp does.
class WaitingTarget final : public target::ForwardingTarget {
 public:
  WaitingTarget(std::shared_ptr<Target> inner, Waits& waits) : ForwardingTarget(std::move(inner)), waits_(waits) {}
  std::optional<target::DirectoryId> directory_id() const override { return inner_->directory_id(); }
  bool caches_by_node() const override { return inner_->caches_by_node(); }
  // The content, then the name. Without `durable` what replaces something is written before it has the name.
  Status put(const std::string& name, ByteView content, bool durable) override {
    if (durable) waits_.wait(), waits_.wait();
    else waits_.written_out += inner_->get(name, 1 << 20).ok();
    return inner_->put(name, content, durable);
  }
  Status move(const std::string& from, const std::string& to) override {
    waits_.wait();
    return inner_->move(from, to);
  }
  // All objects and directories side by side.
  Status settle(Objects written, Objects left, bool durable) override {
    if (durable && written.size() + left.size() > 0) waits_.wait();
    return inner_->settle(written, left, durable);
  }

 private:
  Waits& waits_;
};

// The kernel, of whose calls those that wait for a device are counted.
class WaitingEnvironment final : public catalog::Environment {
 public:
  WaitingEnvironment(catalog::Environment& inner, Waits& waits) : inner_(inner), waits_(waits) {}
  int openat(int directory, const char* name, int flags, mode_t mode) override { return inner_.openat(directory, name, flags, mode); }
  int open_for_program(const char* name, int flags, mode_t mode) override { return inner_.open_for_program(name, flags, mode); }
  void close(int fd) override { inner_.close(fd); }
  int give_away(int fd) override { return inner_.give_away(fd); }
  int out_of_the_way(int fd) override { return inner_.out_of_the_way(fd); }
  ssize_t pread(int fd, void* into, size_t bytes, uint64_t offset) override { return inner_.pread(fd, into, bytes, offset); }
  ssize_t write(int fd, const void* from, size_t bytes) override { return inner_.write(fd, from, bytes); }
  ssize_t pwrite(int fd, const void* from, size_t bytes, uint64_t offset) override { return inner_.pwrite(fd, from, bytes, offset); }
  int fsync(int fd) override {
    waits_.wait();
    return inner_.fsync(fd);
  }
  int fsync_all(std::span<const int> fds) override {
    waits_.wait();
    return inner_.fsync_all(fds);
  }
  void help_targets(int targets) override { inner_.help_targets(targets); }
  int write_out(int fd) override {
    ++waits_.written_out;
    return inner_.write_out(fd);
  }
  int fchmod(int fd, mode_t mode) override { return inner_.fchmod(fd, mode); }
  int fchown(int fd, uid_t owner, gid_t group) override { return inner_.fchown(fd, owner, group); }
  void say_as_of(int directory, const char* name, int fd, bool times) override { inner_.say_as_of(directory, name, fd, times); }
  int fstatat(int directory, const char* name, struct stat* into, int flags) override { return inner_.fstatat(directory, name, into, flags); }
  int fstatfs(int fd, struct statfs* into) override { return inner_.fstatfs(fd, into); }
  int mkdirat(int directory, const char* name, mode_t mode) override { return inner_.mkdirat(directory, name, mode); }
  int unlinkat(int directory, const char* name, int flags) override { return inner_.unlinkat(directory, name, flags); }
  int renameat2(int from_directory, const char* from, int to_directory, const char* to, unsigned flags) override {
    return inner_.renameat2(from_directory, from, to_directory, to, flags);
  }
  int symlinkat(const char* content, int directory, const char* name) override { return inner_.symlinkat(content, directory, name); }
  ssize_t readlinkat(int directory, const char* name, char* into, size_t bytes) override { return inner_.readlinkat(directory, name, into, bytes); }
  ssize_t getdents64(int fd, void* into, size_t bytes) override { return inner_.getdents64(fd, into, bytes); }
  bool has_writers(int fd) override { return inner_.has_writers(fd); }
  int lock_whole(int fd) override { return inner_.lock_whole(fd); }
  ssize_t getcwd(char* into, size_t bytes) override { return inner_.getcwd(into, bytes); }
  Result<std::shared_ptr<Target>> open_target(const std::string& path, const target::DirectoryOptions& options) override {
    auto opened = inner_.open_target(path, options);
    if (!opened.ok()) return opened;
    return std::shared_ptr<Target>(std::make_shared<WaitingTarget>(std::move(*opened), waits_));
  }
  std::shared_ptr<target::Lane> lane_for(const std::string& directory, std::chrono::milliseconds deadline) override {
    return inner_.lane_for(directory, deadline);
  }
  Clock::time_point now() override { return inner_.now(); }
  void wait(std::chrono::milliseconds time) override { inner_.wait(time); }

 private:
  catalog::Environment& inner_;
  Waits& waits_;
};

struct Setting {
  const char* scheme;
  int targets;
  int waits, written_out;  // of make, write and close
};

class InARow : public ::testing::TestWithParam<Setting> {
 protected:
  InARow() {
    char name[] = "/tmp/holdfast-waits.XXXXXX";
    root_ = fs::canonical(mkdtemp(name));
    settings_.protect = GetParam().scheme;
    settings_.deadline_ms = 60000;
    for (int i = 0; i < GetParam().targets; ++i) {
      settings_.targets.push_back(root_ / ("t" + std::to_string(i)));
      fs::create_directory(settings_.targets.back());
    }
  }
  ~InARow() override { fs::remove_all(root_); }

  void make_write_close(const std::string& name, bool durable = true) {
    const std::string path = root_ / name;
    auto solo = exchange::make_solo();
    Settings settings = settings_;
    settings.fast_close = !durable;
    auto located = catalog::create(path, settings, 0644, true);
    ASSERT_TRUE(located.ok()) << located.status().sentence();
    auto file = ProtectedFile::open(std::move(*located), {.read = true, .write = true, .fresh = true}, settings, *solo);
    ASSERT_TRUE(file.ok()) << file.status().sentence();
    const Bytes bytes(64 << 10, std::byte(7));
    const Extent all{0, bytes.size()};
    ASSERT_TRUE((*file)->write(std::span(&all, 1), bytes).ok());
    const Status closed = (*file)->close();
    ASSERT_TRUE(closed.ok()) << closed.sentence();
  }

  fs::path root_;
  Settings settings_;
};

TEST_P(InARow, a_small_file_s_waits_are_few) {
  make_write_close("first", false);  // and the target set
  Waits waits;
  WaitingEnvironment waiting(catalog::environment(), waits);
  {
    const catalog::ReplacedEnvironment replaced(waiting);
    make_write_close("second");
  }
  EXPECT_EQ(waits.in_a_row(), GetParam().waits) << waits.count() << " in all";
  EXPECT_EQ(waits.written_out, GetParam().written_out);
}

// Its first manifest names its maker, which says that it lives: others leave journals, and it does not write in place beside them.
TEST_P(InARow, a_file_s_maker_is_its_lone_opener_until_it_commits) {
  const std::string path = root_ / "shared";
  auto solo = exchange::make_solo(), other_solo = exchange::make_solo();
  auto made = catalog::create(path, settings_, 0644, true);
  ASSERT_TRUE(made.ok()) << made.status().sentence();
  EXPECT_EQ(made->opener.size(), size_t(made->manifest.geometry.scheme.m) + 1);
  auto maker = ProtectedFile::open(std::move(*made), {.read = true, .write = true, .fresh = true}, settings_, *solo);
  ASSERT_TRUE(maker.ok()) << maker.status().sentence();
  auto found = catalog::locate(path, settings_);
  ASSERT_TRUE(found.ok()) << found.status().sentence();
  auto other = ProtectedFile::open(std::move(*found), {.read = true, .write = true}, settings_, *other_solo);
  ASSERT_TRUE(other.ok()) << other.status().sentence();
  const Bytes theirs(4096, std::byte(1)), ours(4096, std::byte(2));
  const Extent first{0, 4096}, second{4096, 4096};
  ASSERT_TRUE((*other)->write(std::span(&first, 1), theirs).ok());
  ASSERT_TRUE((*other)->sync().ok());
  EXPECT_EQ((*other)->located().manifest.lone, 1u);
  EXPECT_FALSE((*other)->located().manifest.journals.empty());
  ASSERT_TRUE((*maker)->write(std::span(&second, 1), ours).ok());
  ASSERT_TRUE((*maker)->close().ok());
  EXPECT_EQ((*maker)->located().manifest.lone, 0u);
  Bytes seen(8192);
  const Extent both{0, 8192};
  ASSERT_TRUE((*other)->sync().ok());
  ASSERT_TRUE((*other)->read(std::span(&both, 1), seen).ok());
  EXPECT_EQ(seen[0], std::byte(1));
  EXPECT_EQ(seen[8191], std::byte(2));
  ASSERT_TRUE((*other)->close().ok());
}

INSTANTIATE_TEST_SUITE_P(Schemes, InARow, ::testing::Values(Setting{"rs:4+2", 6, 3, 1}, Setting{"mirror:3", 3, 5, 0}),
                         [](const auto& setting) { return setting.index == 0 ? "rs_4_2" : "mirror_3"; });

}  // namespace
}  // namespace holdfast::engine
