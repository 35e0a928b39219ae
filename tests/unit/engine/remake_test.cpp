// A version that lacks members is followed by one that lacks none: whatever survives stays where it is, and whatever call is the last one, one of the
// two is there whole. What is damaged is never taken for sound.
#include "engine/remake.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <map>
#include <optional>
#include <random>

#include "coding/checksum.hpp"
#include "engine/maintenance.hpp"
#include "engine/protected_file.hpp"
#include "engine/write_once.hpp"
#include "exchange/exchange.hpp"
#include "target/filters.hpp"
#include "target/memory.hpp"
#include "unit/target/forwarding_target.hpp"

namespace holdfast::engine {
namespace {

const std::string before = "ck.30.2-0123abcd", after = "ck.30.2-ffffffff";

// Computes checksums where the object lies, as an agent does; `asked` is called after each.
class CheckingObject final : public target::ForwardingObject {
 public:
  CheckingObject(std::shared_ptr<target::Object> inner, std::function<void()> asked) : ForwardingObject(std::move(inner)), asked_(std::move(asked)) {}
  Result<std::vector<uint64_t>> checksums(const target::CheckedBlocks& blocks) override {
    std::vector<uint64_t> sums;
    for (uint32_t i = 0; i < blocks.count; ++i) {
      Bytes block(blocks.block_bytes);
      const iovec into{block.data(), block.size()};
      const auto got = inner_->read(blocks.offset + uint64_t(i) * blocks.block_bytes, {&into, 1});
      if (!got.ok()) return got.status();
      sums.push_back(coding::block_checksum(blocks.key, blocks.row, blocks.unit, blocks.first + i, block));
    }
    asked_();
    return sums;
  }

 private:
  const std::function<void()> asked_;
};

class CheckingTarget final : public target::ForwardingTarget {
 public:
  CheckingTarget(std::shared_ptr<target::Target> inner, std::function<void()> asked) : ForwardingTarget(std::move(inner)), asked_(std::move(asked)) {}
  std::string address_for_agents() const override { return inner_->describe(); }
  Result<std::shared_ptr<target::Object>> open(const std::string& name, target::OpenMode mode, target::Pages pages) override {
    auto object = inner_->open(name, mode, pages);
    if (!object.ok()) return object;
    return std::shared_ptr<target::Object>(std::make_shared<CheckingObject>(*object, asked_));
  }

 private:
  const std::function<void()> asked_;
};

// Nodes of a job, of which a version takes the first ones, and the one that follows it the others in the places of the lost ones.
class Job {
 public:
  Job(layout::Scheme scheme, uint64_t bytes, uint64_t lost) : scheme_(scheme), lost_(lost), content_(size_t(bytes)) {
    std::mt19937_64 random(bytes);
    for (std::byte& byte : content_) byte = std::byte(random());
    for (int node = 0; node < width() + scheme.m; ++node) disks_.push_back(std::make_shared<target::MemoryDirectory>());
    for (int member = 0; member < width(); ++member) old_.push_back(member), new_.push_back(member);
    for (int member = 0, spare = width(); member < width(); ++member)
      if (lost >> member & 1) new_[size_t(member)] = spare++;
    catalog::Located located = locate(before, old_);
    make_directories(located);
    const auto copy = [this](uint64_t offset, ByteSpan into) { return std::memcpy(into.data(), content_.data() + offset, into.size()), Status(); };
    EXPECT_TRUE(write_once(located, bytes, copy, settings()).ok());
    written_ = located.manifest;
  }
  static Settings settings() {
    Settings s;
    s.patience = 1;
    return s;
  }
  int width() const { return scheme_.width(); }
  target::MemoryDirectory& disk(int node) { return *disks_[size_t(node)]; }
  const Bytes& content() const { return content_; }
  const std::vector<int>& old_nodes() const { return old_; }
  const std::vector<int>& new_nodes() const { return new_; }
  bool survives(int member) const { return !(lost_ >> member & 1); }

  std::shared_ptr<target::FaultPlan> plan;        // between who makes anew and all nodes
  std::function<void(int node)> asked = nullptr;  // nodes compute checksums, and this comes after each

  Status make_anew() {
    catalog::Located of = locate(before, old_, lost_), fresh = locate(after, new_);
    of.manifest = written_;
    make_directories(fresh);
    between(of), between(fresh);
    const Status made = remake(of, fresh, settings());
    fresh_ = fresh.manifest;
    return made;
  }
  const layout::Manifest& fresh() const { return fresh_; }

  // The manifest of the version in that directory, as somebody finds it on those of its nodes that are not lost.
  std::optional<layout::Manifest> find(const std::string& directory, uint64_t lost) {
    const std::vector<int>& nodes = directory == before ? old_ : new_;
    for (int member = 0; member < width(); ++member) {
      if (lost >> member & 1) continue;
      const auto text = target(nodes[size_t(member)])->get(directory + "/manifest", layout::max_manifest_bytes);
      const auto manifest = text.ok() ? layout::decode(*text) : Result<layout::Manifest>(text.status());
      if (manifest.ok() && manifest->is_final()) return *manifest;
    }
    return {};
  }
  catalog::Located located(const std::string& directory, uint64_t lost) {
    catalog::Located found = locate(directory, directory == before ? old_ : new_, lost);
    if (auto manifest = find(directory, lost)) found.manifest = std::move(*manifest);
    return found;
  }
  Result<Bytes> read(const std::string& directory, uint64_t lost) {
    const auto alone = exchange::make_solo();
    auto file = ProtectedFile::open(located(directory, lost), {.read = true}, settings(), *alone);
    if (!file.ok()) return file.status();
    Bytes got(content_.size());
    const Extent all{0, got.size()};
    const auto bytes = (*file)->read({&all, 1}, got);
    if (!bytes.ok()) return bytes.status();
    return got;
  }
  void remove(const std::string& directory) {
    for (const auto& disk : disks_) (void)target::make_memory_target(disk, "")->remove_directory(directory);
  }

 private:
  std::shared_ptr<target::Target> target(int node) { return target::make_memory_target(disks_[size_t(node)], "n" + std::to_string(node) + ":/d"); }
  catalog::Located locate(const std::string& directory, const std::vector<int>& nodes, uint64_t lost = 0) {
    catalog::Located file;
    layout::Manifest& manifest = file.manifest;
    manifest.file_id = std::string(32, directory == before ? 'a' : 'f');
    manifest.set_id = std::string(32, 'b');
    manifest.directory = directory;
    manifest.path = "/ck/ck.30.2";
    manifest.pool = true;
    manifest.version = layout::Version{"0123456789abcdef", 1, 30, 2, 6, 1, "/ck/ck.30.2"};
    manifest.geometry.scheme = scheme_;
    manifest.geometry.members = width();
    manifest.geometry.unit_bytes = manifest.geometry.block_bytes = layout::min_unit_bytes;
    for (int member = 0; member < width(); ++member) {
      const int node = nodes[size_t(member)];
      catalog::Member one;
      one.index = member;
      one.path = "n" + std::to_string(node) + ":/d";
      one.uuid = std::string(30, 'c') + std::to_string(10 + node);
      manifest.members.push_back({one.uuid, one.path, false, ""});
      if (lost >> member & 1) {
        one.lost = Status(Kind::lost, "the node is gone");
        one.uuid.clear();
      } else {
        one.target = target(node);
        one.lane = target::make_inline_lane();
      }
      file.members.push_back(std::move(one));
    }
    return file;
  }
  void make_directories(const catalog::Located& located) {
    for (const catalog::Member& member : located.members) EXPECT_TRUE(member.target->make_directory(located.manifest.directory).ok());
  }
  void between(catalog::Located& located) {
    for (catalog::Member& member : located.members) {
      if (!member.usable()) continue;
      if (plan) member.target = target::make_filtered(member.target, plan);
      const int node = std::stoi(member.path.substr(1));
      if (asked) member.target = std::make_shared<CheckingTarget>(member.target, [this, node] { asked(node); });
    }
  }

  const layout::Scheme scheme_;
  const uint64_t lost_;
  Bytes content_;
  std::vector<std::shared_ptr<target::MemoryDirectory>> disks_;
  std::vector<int> old_, new_;  // nodes, by member
  layout::Manifest written_, fresh_;
};

std::vector<uint64_t> masks_of(int count, int set) {
  std::vector<uint64_t> masks;
  for (uint64_t mask = 0; mask < 1ull << count; ++mask)
    if (__builtin_popcountll(mask) == set) masks.push_back(mask);
  return masks;
}

const layout::Scheme all_schemes[] = {{2, 1, false}, {4, 2, false}, {1, 2, true}, {2, 2, false}};

TEST(Remake, what_survives_stays_where_it_is_and_what_was_lost_is_made) {
  for (const layout::Scheme& scheme : all_schemes)
    for (const uint64_t bytes : {0, 1, 8192 * 9 + 17})
      for (int count = 0; count <= scheme.m; ++count)
        for (const uint64_t lost : masks_of(scheme.width(), count)) {
          Job job(scheme, bytes, lost);
          std::map<int, uint64_t> objects;  // by node
          for (const int node : job.old_nodes())
            if (const auto look = job.disk(node).look(before + "/data"); look.ok()) objects[node] = look->inode;
          const Status made = job.make_anew();
          ASSERT_TRUE(made.ok()) << made.sentence();
          job.remove(before);
          for (int member = 0; member < job.width(); ++member) {
            const int node = job.new_nodes()[size_t(member)];
            if (!job.survives(member) || !objects.contains(node)) continue;
            EXPECT_EQ(job.disk(node).look(after + "/data").value().inode, objects[node]) << "written anew";
          }
          const auto report = verify(job.located(after, 0), Job::settings(), nullptr);
          ASSERT_TRUE(report.ok()) << report.status().sentence();
          EXPECT_EQ(report->finding_count, 0u);
          for (const uint64_t gone : masks_of(scheme.width(), scheme.m)) {
            const auto got = job.read(after, gone);
            ASSERT_TRUE(got.ok()) << scheme.name() << ' ' << bytes << ": " << got.status().sentence();
            EXPECT_EQ(*got, job.content());
          }
        }
}

// Who makes it anew dies at its n-th call, and the power of all nodes goes.
TEST(Remake, whoever_dies_at_any_call_leaves_the_old_one_and_a_whole_new_one_or_none) {
  for (const layout::Scheme& scheme : all_schemes)
    for (uint64_t n = 1, fired = 1; fired > 0; ++n) {
      Job job(scheme, 8192 * 5 + 17, 2);
      job.plan = std::make_shared<target::FaultPlan>();
      job.plan->add({.kind = target::CallKind::any, .nth = n, .count = target::kForever});
      const bool acknowledged = job.make_anew().ok();
      fired = job.plan->fired();
      for (int node = 0; node < job.width() + scheme.m; ++node) job.disk(node).power_loss(n * 64 + uint64_t(node));
      EXPECT_EQ(job.read(before, 2).value(), job.content()) << scheme.name() << ", call " << n;
      for (const uint64_t gone : masks_of(scheme.width(), scheme.m)) {
        const bool found = job.find(after, gone).has_value();
        EXPECT_TRUE(found || !acknowledged) << scheme.name() << ", call " << n;
        if (!found) continue;
        const auto got = job.read(after, gone);
        ASSERT_TRUE(got.ok()) << scheme.name() << ", call " << n << ", gone " << gone << ": " << got.status().sentence();
        EXPECT_EQ(*got, job.content());
      }
      ASSERT_LT(n, 2000u);
    }
}

TEST(Remake, a_node_that_fails_is_named_and_the_old_one_is_left) {
  for (uint64_t n = 1, fired = 1; fired > 0; ++n) {
    Job job({4, 2, false}, 8192 * 5 + 17, 1);
    job.plan = std::make_shared<target::FaultPlan>();
    job.plan->add({.kind = target::CallKind::write, .nth = n});
    const Status made = job.make_anew();
    fired = job.plan->fired();
    EXPECT_EQ(made.ok(), fired == 0) << made.sentence();
    int stale = 0;
    for (const layout::ManifestMember& member : job.fresh().members) stale += member.stale;
    EXPECT_EQ(stale, int(fired)) << made.sentence();
    EXPECT_EQ(job.read(before, 1).value(), job.content());
  }
}

TEST(Remake, a_unit_that_is_damaged_is_not_taken_over) {
  Job job({4, 2, false}, 8192 * 5 + 17, 1);
  ASSERT_TRUE(job.disk(3).flip_bit(before + "/data", 12345));
  const Status made = job.make_anew();
  EXPECT_EQ(made.kind(), Kind::unsupported);
  EXPECT_NE(made.sentence().find("is damaged on n3:/d"), std::string::npos) << made.sentence();
  for (const layout::ManifestMember& member : job.fresh().members) EXPECT_FALSE(member.stale);
  EXPECT_FALSE(job.find(after, 0)) << "it looks like a version";
  EXPECT_EQ(job.read(before, 1).value(), job.content());
}

// A bit turns after any of the looks at a node's units. It is found then or later, and never believed.
TEST(Remake, damage_between_two_looks_at_a_unit_is_never_believed) {
  int refused = 0, found_later = 0;
  for (int n = 1, looks = n; looks >= n; ++n) {
    Job job({4, 2, false}, 8192 * 5 + 17, 1);
    looks = 0;
    job.asked = [&](int node) {
      if (node != 3 || ++looks != n) return;
      EXPECT_TRUE(job.disk(3).flip_bit(before + "/data", 777));
    };
    const bool made = job.make_anew().ok();
    refused += !made;
    EXPECT_EQ(job.read(before, 1).value(), job.content()) << n;
    if (!made) continue;
    EXPECT_EQ(job.read(after, 0).value(), job.content()) << "after look " << n;
    found_later += verify(job.located(after, 0), Job::settings(), nullptr).value().finding_count == 1;
  }
  EXPECT_GT(refused, 0);
  EXPECT_GT(found_later, 0);
}

TEST(Remake, where_objects_have_one_name_nothing_else_is_begun) {
  Job job({4, 2, false}, 8192 * 5 + 17, 1);
  job.plan = std::make_shared<target::FaultPlan>();
  job.plan->add({.kind = target::CallKind::put, .count = target::kForever, .sys_errno = EOPNOTSUPP, .name_contains = "/data"});
  EXPECT_EQ(job.make_anew().kind(), Kind::unsupported);
  EXPECT_EQ(job.plan->calls(target::CallKind::write), 0u);
}

}  // namespace
}  // namespace holdfast::engine
