// A file's name changes, or what stands at it, and the power fails: what was said to be done is so for good, and what was cut short leaves one of two files.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include "engine/repair_file.hpp"
#include "engine/restripe.hpp"
#include "sim/openers_site.hpp"
#include "sim/pool_on_site.hpp"
#include "sim/whole_file.hpp"
#include "tree/conversion.hpp"
#include "unit/catalog/forwarding_environment.hpp"

namespace holdfast::sim {
namespace {

constexpr const char* path = "/data/f";

Bytes content() { return Bytes(9000, std::byte('c')); }

Settings on_targets(Site& site, const char* protect, const char* placement) {
  Settings settings = site.add_set(protect, {"/t0", "/t1", "/t2"});
  settings.striping_unit = 4096;
  settings.placement = placement;
  return settings;
}

void make_directory(Site& site, const char* name) {
  ASSERT_EQ(site.mkdirat(AT_FDCWD, name, 0755), 0);
  const catalog::Descriptor above(site.openat(AT_FDCWD, "/data", O_RDONLY | O_DIRECTORY, 0));
  ASSERT_EQ(site.fsync(above.get()), 0);
}

void write_plain(Site& site, const char* name, ByteView bytes) {
  const catalog::Descriptor file(site.openat(AT_FDCWD, name, O_CREAT | O_WRONLY, 0644));
  ASSERT_EQ(site.write(file.get(), bytes.data(), bytes.size()), ssize_t(bytes.size()));
  const catalog::Descriptor above(site.openat(AT_FDCWD, "/data", O_RDONLY | O_DIRECTORY, 0));
  ASSERT_EQ(site.fsync(file.get()) + site.fsync(above.get()), 0);
}

Bytes read_plain(Site& site, const char* name) {
  const catalog::Descriptor file(site.openat(AT_FDCWD, name, O_RDONLY, 0));
  Bytes bytes(content().size() + 1);
  const ssize_t got = site.pread(file.get(), bytes.data(), bytes.size(), 0);
  bytes.resize(size_t(std::max<ssize_t>(got, 0)));
  return bytes;
}

TEST(Names, of_a_file_renamed_into_another_directory_are_one_after_a_power_cut) {
  for (uint64_t seed = 1; seed <= 12; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Site site(seed);
    const catalog::ReplacedEnvironment in_site(site);
    const Settings settings = on_targets(site, "rs:2+1", "interleaved");
    for (const char* name : {"/data/a", "/data/b"}) make_directory(site, name);
    write_whole("/data/a/f", content(), settings, true);
    ASSERT_TRUE(catalog::rename("/data/a/f", "/data/b/f", settings).ok());
    site.power_loss(seed);
    EXPECT_EQ(catalog::kind_of("/data/a/f"), catalog::PathKind::absent);
    EXPECT_EQ(read_whole("/data/b/f", content().size() + 1, settings), content());
    if (testing::Test::HasFailure()) return;
  }
}

// Whether it came to its end.
bool gives_way_until(int64_t calls, uint64_t seed) {
  SCOPED_TRACE("killed at call " + std::to_string(calls) + ", seed " + std::to_string(seed));
  constexpr const char* copy = "/data/.copy";
  Site site(seed);
  const catalog::ReplacedEnvironment in_site(site);
  const Settings settings = on_targets(site, "rs:2+1", "interleaved");
  write_whole(path, content(), settings, true);
  write_plain(site, copy, content());
  Schedule schedule(seed);
  bool finished = false;
  int giver = -1;
  giver = schedule.add([&] {
    schedule.kill_after(giver, calls);
    const auto located = catalog::locate(path, settings);
    finished = located && catalog::give_way_to_plain(*located, copy, settings).ok() && !Schedule::dead();
  });
  schedule.run();
  site.power_loss(seed);
  if (catalog::kind_of(path) == catalog::PathKind::protected_file) EXPECT_EQ(read_whole(path, content().size() + 1, settings), content());
  else EXPECT_EQ(read_plain(site, path), content());
  return finished;
}

TEST(Names, of_a_file_that_gives_way_to_a_plain_copy_lead_to_one_of_them_after_a_power_cut) {
  bool finished = false;
  for (int64_t calls = 1; calls < most_calls && !finished; ++calls)
    for (uint64_t seed = 1; seed <= 4; ++seed) {
      finished = gives_way_until(calls, seed);
      if (testing::Test::HasFailure()) return;
    }
  EXPECT_TRUE(finished) << "it has more calls than were tried";
}

// An empty copy has no checksums that could tell a power cut from an edit: it has to keep its time.
TEST(Names, that_are_links_to_an_empty_copy_are_no_edits_after_a_power_cut) {
  for (uint64_t seed = 1; seed <= 12; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Site site(seed);
    const catalog::ReplacedEnvironment in_site(site);
    const Settings settings = on_targets(site, "mirror:2", "separate");
    write_whole(path, content(), settings, true);
    {
      const auto alone = exchange::make_solo();
      auto file = engine::ProtectedFile::open(*catalog::locate(path, settings), {true, true, false}, settings, *alone);
      ASSERT_TRUE(file.ok() && (*file)->set_size(0).ok() && (*file)->close().ok());
    }
    site.power_loss(seed);
    const auto located = catalog::locate(path, settings);
    ASSERT_TRUE(located) << located.status().sentence();
  }
}

TEST(Names, of_a_plain_file_lead_to_its_protected_copy_for_good_also_where_closes_are_fast) {
  const int source = memfd_create("plain", MFD_CLOEXEC);
  ASSERT_EQ(write(source, content().data(), content().size()), ssize_t(content().size()));
  for (uint64_t seed = 1; seed <= 12; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Site site(seed);
    const catalog::ReplacedEnvironment in_site(site);
    Settings settings = on_targets(site, "rs:2+1", "interleaved");
    settings.fast_close = true;
    const Status made = tree::protect_copy(source, "plain", path, 0644, settings);
    ASSERT_TRUE(made.ok()) << made.sentence();
    site.power_loss(seed);
    EXPECT_EQ(read_whole(path, content().size() + 1, settings), content());
    if (testing::Test::HasFailure()) break;
  }
  close(source);
}

// A file of a pool whose node 2 has an empty disk, so that a repair writes it anew over five of six nodes.
struct ToBeWrittenAnew {
  explicit ToBeWrittenAnew(uint64_t seed) : pool(seed, 6) {
    Settings& settings = pool.settings;
    settings.protect = "rs:2+1";
    settings.striping_unit = 4096;
    settings.striping_factor = 6;
    write_whole(path, content(), settings, true);
    settings.striping_factor.reset();
    pool.site.change_disk(2, nullptr);
  }
  Result<engine::FileRepair> repair() { return engine::repair_file(path, {}, false, pool.settings, nullptr, &pool.settings.local); }
  PoolOnSite pool;
};

TEST(Names, of_a_file_that_is_written_anew_lead_to_it_for_good_also_where_closes_are_fast) {
  for (uint64_t seed = 1; seed <= 12; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    ToBeWrittenAnew file(seed);
    file.pool.settings.fast_close = true;
    std::vector<std::string> live = file.pool.settings.local;
    live.erase(live.begin() + 2);
    const auto anew = engine::restripe(path, live, file.pool.settings, nullptr);
    ASSERT_TRUE(anew.ok()) << anew.status().sentence();
    file.pool.site.power_loss(seed);
    ASSERT_EQ(read_whole(path, content().size() + 1, file.pool.settings), content());
  }
}

// From the moment on at which another file has the path, its device keeps nothing more.
class DeviceThatFails final : public catalog::ForwardingEnvironment {
 public:
  using ForwardingEnvironment::ForwardingEnvironment;
  int renameat2(int from_directory, const char* from, int to_directory, const char* to, unsigned flags) override {
    const int renamed = inner_.renameat2(from_directory, from, to_directory, to, flags);
    fails = fails || (renamed == 0 && std::string_view(to) == path);
    return renamed;
  }
  int fsync(int fd) override {
    errno = EIO;
    return fails ? -1 : inner_.fsync(fd);
  }
  bool fails = false;
};

TEST(Names, that_no_device_keeps_are_an_error_of_who_writes_a_file_anew) {
  ToBeWrittenAnew file(1);
  DeviceThatFails device(file.pool.site);
  {
    const catalog::ReplacedEnvironment failing(device);
    EXPECT_FALSE(file.repair().ok());
  }
  EXPECT_TRUE(device.fails);
  EXPECT_EQ(read_whole(path, content().size() + 1, file.pool.settings), content());
}

}  // namespace
}  // namespace holdfast::sim
