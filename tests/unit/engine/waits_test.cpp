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
#include "engine/protected_file.hpp"
#include "exchange/exchange.hpp"
#include "unit/catalog/forwarding_environment.hpp"
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
class WaitingEnvironment final : public catalog::ForwardingEnvironment {
 public:
  WaitingEnvironment(catalog::Environment& inner, Waits& waits) : ForwardingEnvironment(inner), waits_(waits) {}
  int fsync(int fd) override {
    waits_.wait();
    return inner_.fsync(fd);
  }
  int fsync_all(std::span<const int> fds) override {
    waits_.wait();
    return inner_.fsync_all(fds);
  }
  int write_out(int fd) override {
    ++waits_.written_out;
    return inner_.write_out(fd);
  }
  Result<std::shared_ptr<Target>> open_target(const std::string& path, const target::DirectoryOptions& options) override {
    auto opened = inner_.open_target(path, options);
    if (!opened.ok()) return opened;
    return std::shared_ptr<Target>(std::make_shared<WaitingTarget>(std::move(*opened), waits_));
  }

 private:
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
