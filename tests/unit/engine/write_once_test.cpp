// A version of a checkpoint is written once: whatever call is its writer's last, whatever power takes and whichever M members are lost, there is
// the whole of it or nothing, and never anything else.
#include "engine/write_once.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <optional>
#include <random>

#include "engine/buffers.hpp"
#include "engine/maintenance.hpp"
#include "engine/protected_file.hpp"
#include "exchange/exchange.hpp"
#include "target/filters.hpp"
#include "target/memory.hpp"

namespace holdfast::engine {
namespace {

using target::MemoryDirectory;

const std::string directory = "ck.30.2-0123abcd";

class Pool {
 public:
  explicit Pool(layout::Scheme scheme) : scheme_(scheme) {
    for (int i = 0; i < scheme.width(); ++i) disks_.push_back(std::make_shared<MemoryDirectory>());
  }
  int width() const { return scheme_.width(); }
  int m() const { return scheme_.m; }
  MemoryDirectory& disk(int member) { return *disks_[size_t(member)]; }

  // For a writer or reader of its own; `plan` stands between it and all members, those of `lost` are not there.
  catalog::Located located(uint64_t lost = 0, std::shared_ptr<target::FaultPlan> plan = nullptr) {
    catalog::Located file;
    layout::Manifest& manifest = file.manifest;
    manifest.file_id = std::string(32, 'a');
    manifest.set_id = std::string(32, 'b');
    manifest.directory = directory;
    manifest.path = "/ck/ck.30.2";
    manifest.pool = true;
    manifest.version = layout::Version{"0123456789abcdef", 1, 30, 2, 6, 1, "/ck/ck.30.2"};
    manifest.geometry.scheme = scheme_;
    manifest.geometry.members = width();
    manifest.geometry.unit_bytes = manifest.geometry.block_bytes = layout::min_unit_bytes;
    for (int i = 0; i < width(); ++i) {
      catalog::Member member;
      member.index = i;
      member.path = "n" + std::to_string(i) + ":/d";
      if (lost >> i & 1) {
        member.lost = Status(Kind::lost, "the node is gone");
      } else {
        member.uuid = uuid(i);
        member.target = target::make_memory_target(disks_[size_t(i)], member.path);
        if (plan) member.target = target::make_filtered(member.target, plan);
        member.lane = target::make_inline_lane();
      }
      manifest.members.push_back({member.uuid, member.path, false, ""});
      file.members.push_back(std::move(member));
    }
    return file;
  }

  // The final manifest as somebody finds it who enumerates; nothing where there is none.
  std::optional<layout::Manifest> found(uint64_t lost) {
    for (int i = 0; i < width(); ++i) {
      if (lost >> i & 1) continue;
      const auto text = target::make_memory_target(disks_[size_t(i)], "")->get(directory + "/manifest", layout::max_manifest_bytes);
      const auto manifest = text.ok() ? layout::decode(*text) : Result<layout::Manifest>(text.status());
      if (manifest.ok() && manifest->is_final()) return *manifest;
    }
    return {};
  }

 private:
  static std::string uuid(int member) { return std::string(31, 'c') + "0123456789abcdef"[member]; }
  layout::Scheme scheme_;
  std::vector<std::shared_ptr<MemoryDirectory>> disks_;
};

Bytes content_of(uint64_t bytes) {
  std::mt19937_64 random(bytes);
  Bytes content(bytes);
  for (std::byte& byte : content) byte = std::byte(random());
  return content;
}

Settings settings() {
  Settings s;
  s.patience = 1;
  return s;
}

Status write(catalog::Located located, const Bytes& content, layout::Manifest* written = nullptr) {
  for (const catalog::Member& member : located.members)
    if (member.usable()) (void)member.target->make_directory(directory);
  const Status status = write_once(
      located, content.size(),
      [&](uint64_t offset, ByteSpan into) {
        std::memcpy(into.data(), content.data() + offset, into.size());
        return Status();
      },
      settings());
  if (written) *written = located.manifest;
  return status;
}

// As somebody reads it who has found this manifest.
Result<Bytes> read(catalog::Located located, const layout::Manifest& manifest) {
  located.manifest = manifest;
  const auto alone = exchange::make_solo();
  auto file = ProtectedFile::open(std::move(located), {.read = true}, settings(), *alone);
  if (!file.ok()) return file.status();
  Bytes content(size_t(manifest.size));
  const Extent all{0, content.size()};
  const auto got = (*file)->read({&all, 1}, content);
  if (!got.ok()) return got.status();
  EXPECT_EQ(*got, content.size());
  return content;
}

// All masks of `count` members with exactly `lost` of them.
std::vector<uint64_t> losses(int count, int lost) {
  std::vector<uint64_t> masks;
  for (uint64_t mask = 0; mask < 1ull << count; ++mask)
    if (__builtin_popcountll(mask) == lost) masks.push_back(mask);
  return masks;
}

const layout::Scheme schemes[] = {{2, 1, false}, {4, 2, false}, {1, 2, true}, {2, 2, false}};
const uint64_t sizes[] = {0, 1, 4096, 8192 * 3 + 17};

constexpr uint64_t kept_by_a_process = 16 << 20;

TEST(Buffers, more_are_kept_for_a_while) {
  constexpr uint64_t piece = 4 << 20;
  const auto use_many = [&] {
    std::vector<std::unique_ptr<Buffer>> many;
    for (int i = 0; i < 8; ++i) many.push_back(std::make_unique<Buffer>(piece));
  };
  use_many();
  EXPECT_LE(kept_buffer_bytes(), kept_by_a_process);
  {
    const KeepMoreBuffers more(kept_by_a_process);
    use_many();
    EXPECT_GT(kept_buffer_bytes(), kept_by_a_process);
    EXPECT_FALSE(Buffer(piece).fresh());
  }
  EXPECT_LE(kept_buffer_bytes(), kept_by_a_process);
}

TEST(WriteOnce, the_memory_of_a_large_file_is_used_again_and_given_back) {
  constexpr uint64_t batch = 8 << 20, bytes = 5 * batch;
  Pool pool({2, 1, false});
  uint64_t least_kept = UINT64_MAX;
  catalog::Located located = pool.located();
  for (const catalog::Member& member : located.members) (void)member.target->make_directory(directory);
  const auto read = [&](uint64_t offset, ByteSpan into) {
    if (offset >= batch) least_kept = std::min(least_kept, kept_buffer_bytes());
    std::memset(into.data(), 'x', into.size());
    return Status();
  };
  EXPECT_TRUE(write_once(located, bytes, read, settings()).ok());
  EXPECT_GT(least_kept, 0u) << "what earlier rows needed is there for later ones";
  EXPECT_LE(kept_buffer_bytes(), kept_by_a_process);
}

TEST(WriteOnce, what_was_written_is_read_after_any_m_losses) {
  for (const layout::Scheme& scheme : schemes)
    for (const uint64_t bytes : sizes) {
      Pool pool(scheme);
      const Bytes content = content_of(bytes);
      ASSERT_TRUE(write(pool.located(), content).ok());
      for (const uint64_t lost : losses(pool.width(), scheme.m)) {
        const auto manifest = pool.found(lost);
        ASSERT_TRUE(manifest) << scheme.name();
        EXPECT_EQ(manifest->path, "");
        const auto got = read(pool.located(lost), *manifest);
        ASSERT_TRUE(got.ok()) << scheme.name() << ' ' << bytes << ": " << got.status().sentence();
        EXPECT_EQ(*got, content);
      }
      for (const uint64_t lost : losses(pool.width(), scheme.m + 1)) {
        const auto got = read(pool.located(lost), *pool.found(0));
        EXPECT_TRUE(!got.ok() || *got == content) << "beyond what it bears it is refused, or never wrong";
      }
    }
}

TEST(WriteOnce, more_is_read_while_what_was_coded_is_on_its_way) {
  Pool pool({2, 1, false});
  const auto plan = std::make_shared<target::FaultPlan>();
  plan->add({.kind = target::CallKind::write, .effect = target::Effect::hang, .hang_for = std::chrono::minutes(1)});
  catalog::Located located = pool.located(0, plan);
  for (catalog::Member& member : located.members) member.lane = target::make_companion_lane(member.path, std::chrono::seconds(10));
  const Bytes content = content_of(20 << 20);
  for (const catalog::Member& member : located.members) (void)member.target->make_directory(directory);
  uint64_t pieces = 0;
  const auto read_on = [&](uint64_t offset, ByteSpan into) {
    std::memcpy(into.data(), content.data() + offset, into.size());
    if (++pieces == 2) plan->release();  // the first write has waited for this
    return Status();
  };
  const Status written = write_once(located, content.size(), read_on, settings());
  plan->release();
  ASSERT_TRUE(written.ok()) << written.sentence();
  for (const layout::ManifestMember& member : located.manifest.members) EXPECT_FALSE(member.stale) << member.why;
  const auto got = read(pool.located(1), *pool.found(0));
  ASSERT_TRUE(got.ok()) << got.status().sentence();
  EXPECT_TRUE(*got == content);
}

TEST(WriteOnce, one_sound_manifest_is_enough) {
  Pool pool({4, 2, false});
  const Bytes content = content_of(40000);
  ASSERT_TRUE(write(pool.located(), content).ok());
  const layout::Manifest manifest = *pool.found(0);
  for (int member = 1; member < pool.width(); ++member) EXPECT_TRUE(pool.disk(member).remove_object(directory + "/manifest"));
  for (const uint64_t lost : losses(pool.width(), 2)) {
    if (lost & 1) continue;
    const auto got = read(pool.located(lost), manifest);
    ASSERT_TRUE(got.ok()) << got.status().sentence();
    EXPECT_EQ(*got, content);
  }
}

// The power of all nodes goes after the n-th call of who writes, and M of them never come back.
void expect_whole_or_nothing(Pool& pool, const layout::Scheme& scheme, uint64_t n, bool acknowledged, const Bytes& content) {
  for (int member = 0; member < pool.width(); ++member) pool.disk(member).power_loss(n * 64 + uint64_t(member));
  for (const uint64_t lost : losses(pool.width(), scheme.m)) {
    const auto manifest = pool.found(lost);
    EXPECT_TRUE(manifest || !acknowledged) << scheme.name() << ", call " << n;
    if (!manifest) continue;
    const auto got = read(pool.located(lost), *manifest);
    ASSERT_TRUE(got.ok()) << scheme.name() << ", call " << n << ", lost " << lost << ": " << got.status().sentence();
    EXPECT_EQ(*got, content);
  }
}

// The writer's process dies at its n-th call, the power of all nodes goes, and M of them never come back.
TEST(WriteOnce, a_writer_that_dies_at_any_call_leaves_the_whole_or_nothing) {
  for (const layout::Scheme& scheme : schemes) {
    const Bytes content = content_of(8192 * 2 + 17);
    for (uint64_t n = 1;; ++n) {
      const auto plan = std::make_shared<target::FaultPlan>();
      plan->add({.kind = target::CallKind::any, .nth = n, .count = target::kForever});
      Pool pool(scheme);
      const bool acknowledged = write(pool.located(0, plan), content).ok();
      const bool died = plan->fired() > 0;
      ASSERT_NO_FATAL_FAILURE(expect_whole_or_nothing(pool, scheme, n, acknowledged, content));
      if (!died) break;
      ASSERT_LT(n, 2000u);
    }
  }
}

// One member fails for good at its n-th call: the version is degraded, or refused where it would bear no loss, and right if it is there.
TEST(WriteOnce, a_member_that_fails_at_any_call_is_stale_and_the_others_bear_the_rest) {
  for (const layout::Scheme& scheme : schemes) {
    const Bytes content = content_of(8192 * 2 + 17);
    for (uint64_t n = 1;; ++n) {
      const auto plan = std::make_shared<target::FaultPlan>();
      plan->add({.kind = target::CallKind::any, .nth = n, .count = target::kForever});
      Pool pool(scheme);
      catalog::Located located = pool.located();
      located.members[0].target = target::make_filtered(located.members[0].target, plan);
      const Status status = write(std::move(located), content);
      const bool failed = plan->fired() > 0;
      // Where only the manifest is lacking there, and all copies of it are needed, it is to be written anew under another name.
      const bool only_manifest = status.sentence().find("took its manifest") != std::string::npos;
      EXPECT_TRUE(status.ok() || scheme.m < 2 || only_manifest) << status.sentence();
      for (const uint64_t lost : losses(pool.width(), scheme.m - 1)) {
        const auto manifest = pool.found(lost);
        EXPECT_TRUE(manifest || !status.ok());
        if (!manifest) continue;
        const auto got = read(pool.located(lost), *manifest);
        ASSERT_TRUE(got.ok()) << scheme.name() << ", call " << n << ", lost " << lost << ": " << got.status().sentence();
        EXPECT_EQ(*got, content);
      }
      if (!failed) break;
    }
  }
}

TEST(WriteOnce, fewer_than_k_plus_one_members_are_refused) {
  Pool pool({4, 2, false});
  layout::Manifest written;
  EXPECT_TRUE(write(pool.located(1), content_of(20000), &written).ok());
  EXPECT_TRUE(written.members[0].stale);
  Pool other({4, 2, false});
  const Status status = write(other.located(3), content_of(20000));
  EXPECT_EQ(status.kind(), Kind::lost);
  EXPECT_NE(status.sentence().find("n0:/d"), std::string::npos) << status.sentence();
  EXPECT_FALSE(other.found(0));
}

TEST(WriteOnce, a_full_member_is_named_as_such) {
  Pool pool({2, 1, false});
  pool.disk(1).set_capacity(4096);
  const Status status = write(pool.located(), content_of(200000));
  EXPECT_EQ(status.kind(), Kind::no_space) << status.sentence();
  EXPECT_FALSE(pool.found(0));
}

TEST(WriteOnce, verify_finds_nothing_and_a_turned_bit) {
  Pool pool({4, 2, false});
  const Bytes content = content_of(100000);
  ASSERT_TRUE(write(pool.located(), content).ok());
  const auto look = [&] {
    catalog::Located located = pool.located();
    located.manifest = *pool.found(0);
    return verify(located, settings(), [](uint64_t, uint64_t) { return true; });
  };
  auto report = look();
  ASSERT_TRUE(report.ok()) << report.status().sentence();
  EXPECT_EQ(report->finding_count, 0u);
  EXPECT_EQ(report->status.health, Health::healthy);
  ASSERT_TRUE(pool.disk(2).flip_bit(directory + "/data", 12345));
  report = look();
  ASSERT_TRUE(report.ok());
  EXPECT_EQ(report->finding_count, 1u);
  EXPECT_EQ(*read(pool.located(), *pool.found(0)), content);
}

// As several ranks write it: by opens and commits, without a path, and no version yet.
catalog::Located growing(Pool& pool, std::shared_ptr<target::FaultPlan> plan = nullptr) {
  catalog::Located located = pool.located(0, std::move(plan));
  located.manifest.version.reset();
  located.manifest.epoch = 1;
  return located;
}

std::unique_ptr<ProtectedFile> open_growing(Pool& pool, exchange::Exchange& alone, const Bytes& content) {
  catalog::Located located = growing(pool);
  const std::string first = layout::encode(located.manifest);
  for (const catalog::Member& member : located.members) {
    (void)member.target->make_directory(directory);
    (void)member.target->put(directory + "/manifest", std::as_bytes(std::span(first)), true);
  }
  auto file = ProtectedFile::open(std::move(located), {.read = true, .write = true, .fresh = true}, settings(), alone);
  EXPECT_TRUE(file.ok()) << file.status().sentence();
  const Extent all{0, content.size()};
  EXPECT_TRUE((*file)->write({&all, 1}, content).ok());
  return std::move(*file);
}

const layout::Version sealed_as{"0123456789abcdef", 1, 30, 0, 1, 2, "/ck/ck.30", 7};

TEST(MakeFinal, what_all_have_closed_is_a_version_that_bears_any_m_losses) {
  for (const layout::Scheme& scheme : schemes) {
    Pool pool(scheme);
    const Bytes content = content_of(8192 * 3 + 17);
    const auto alone = exchange::make_solo();
    ASSERT_TRUE(open_growing(pool, *alone, content)->close().ok());
    EXPECT_FALSE(pool.found(0)) << "a version before its last manifest";
    const auto made = make_final(growing(pool), sealed_as, settings());
    ASSERT_TRUE(made.ok()) << made.status().sentence();
    EXPECT_EQ(*made, 0);
    for (const uint64_t lost : losses(pool.width(), scheme.m)) {
      const auto manifest = pool.found(lost);
      ASSERT_TRUE(manifest);
      EXPECT_EQ(*manifest->version, sealed_as);
      EXPECT_EQ(manifest->path, "");
      const auto got = read(pool.located(lost), *manifest);
      ASSERT_TRUE(got.ok()) << scheme.name() << ": " << got.status().sentence();
      EXPECT_EQ(*got, content);
    }
  }
}

TEST(MakeFinal, what_somebody_has_open_to_write_is_none) {
  Pool pool({4, 2, false});
  const auto alone = exchange::make_solo();
  const auto file = open_growing(pool, *alone, content_of(50000));
  const Status made = make_final(growing(pool), sealed_as, settings()).status();
  EXPECT_EQ(made.kind(), Kind::busy) << made.sentence();
  EXPECT_FALSE(pool.found(0));
  EXPECT_TRUE(file->close().ok());
}

TEST(MakeFinal, it_says_how_many_members_are_lost_and_is_refused_beyond_m) {
  for (const int lost : {1, 2, 3}) {
    Pool pool({4, 2, false});
    const Bytes content = content_of(50000);
    const auto alone = exchange::make_solo();
    ASSERT_TRUE(open_growing(pool, *alone, content)->close().ok());
    catalog::Located located = pool.located((1u << lost) - 1);
    located.manifest.version.reset();
    const auto made = make_final(located, sealed_as, settings());
    EXPECT_EQ(made.ok(), lost < 3) << made.status().sentence();
    EXPECT_EQ(pool.found(0).has_value(), lost < 3);
    if (lost == 3) continue;
    EXPECT_EQ(*made, lost);
    EXPECT_EQ(*read(pool.located((1u << lost) - 1), *pool.found(0)), content);
  }
}

TEST(MakeFinal, who_dies_at_any_call_leaves_a_whole_version_or_none) {
  for (const layout::Scheme& scheme : schemes) {
    const Bytes content = content_of(8192 * 2 + 17);
    for (uint64_t n = 1;; ++n) {
      Pool pool(scheme);
      const auto alone = exchange::make_solo();
      ASSERT_TRUE(open_growing(pool, *alone, content)->close().ok());
      const auto plan = std::make_shared<target::FaultPlan>();
      plan->add({.kind = target::CallKind::any, .nth = n, .count = target::kForever});
      const bool acknowledged = make_final(growing(pool, plan), sealed_as, settings()).ok();
      ASSERT_NO_FATAL_FAILURE(expect_whole_or_nothing(pool, scheme, n, acknowledged, content));
      if (plan->fired() == 0) break;
      ASSERT_LT(n, 2000u);
    }
  }
}

}  // namespace
}  // namespace holdfast::engine
