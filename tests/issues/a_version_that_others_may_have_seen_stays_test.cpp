// A node's disk became full when the manifests of a version were written: too few took one for the scheme, and the version was removed again. In between it
// could be read, and bore the loss of a node by its copies: another node's protector drops the older checkpoint for such a one.
#include <gtest/gtest.h>

#include "catalog/pool.hpp"
#include "checkpoint/attempt.hpp"
#include "checkpoint/moved.hpp"
#include "checkpoint/protect.hpp"
#include "sim/openers_site.hpp"

namespace holdfast::checkpoint {
namespace {

constexpr const char* the_run = "00000000000000ab";

struct SeenVersion {
  const char* protect;
  int nodes, failing;  // so many of them, all at one call
  Kind kind;
};

// A checkpoint is whole, and the next one is written.
class SeenByOthers : public testing::TestWithParam<SeenVersion> {
 protected:
  struct World {
    explicit World(const SeenVersion& of) {
      for (int n = 1; n <= of.nodes; ++n) site.add_node_disk("n" + std::to_string(n)), settings.local.push_back(site.disks.back().address);
      settings.protect = of.protect;
      EXPECT_TRUE(catalog::open_pool(settings).ok());
      const catalog::Descriptor file(site.openat(AT_FDCWD, "/data/ck", O_WRONLY | O_CREAT | O_TRUNC, 0600));
      EXPECT_EQ(site.write(file.get(), "some bytes", 10), 10);
      EXPECT_TRUE(write(1).ok());
    }
    Result<ProtectedNow> write(uint64_t step) {
      const layout::Version version{the_run, 1, step, 0, 1, 1, "/ck." + std::to_string(step), step};
      return protect("/data/ck", version, "n1:/n1", settings);
    }
    // As a rename moves it, before the file is written anew if that fails.
    Result<ProtectedNow> move_to(uint64_t step) {
      const auto found = catalog::VersionList().look(settings.local, settings.deadline_ms);
      if (!found) return found.status();
      const layout::Version version{the_run, 1, step, 0, 1, 1, "/ck." + std::to_string(step), step};
      const LocalFile other{State::kept, LocalName{1, 0, 1, 1, "/ck.1", 1}};
      const checkpoint::Run of{the_run, 1, {}, false, settings.local};
      return protect_moved("/data/ck", version, other, "n1:/n1", of, *found, settings);
    }
    // Another one, who drops the older checkpoint for a newer one. That has to stay.
    void look() {
      const auto found = catalog::VersionList().look(settings.local, settings.deadline_ms);
      if (!found) return;
      const auto all = checkpoints_of(protected_of(*found));
      is_dropped |= !to_drop(all, the_run, 1).empty();
      const auto whole = newest_whole(all, the_run);
      is_gone |= is_dropped && (!whole || whole->step != 2);
    }
    // At each call of the writer, from the n-th of a node on, which fails then.
    void look_at_each_call(const SeenVersion& of, int64_t n) {
      site.gate->way = [this, of, left = n](int) mutable {
        if (is_looking) return Status();
        is_looking = true;
        look();
        is_looking = false;
        if (--left == 0)
          for (int node = 0; node < of.failing; ++node) site.gate->fail(sim::Site::gate_number(node), of.kind);
        return Status();
      };
    }
    void heal() {
      site.gate->way = nullptr;
      for (size_t node = 0; node < site.disks.size(); ++node) site.gate->heal(sim::Site::gate_number(int(node)));
    }

    sim::Site site{1};
    catalog::ReplacedEnvironment in_site{site};
    Settings settings;
    bool is_looking = false, is_dropped = false, is_gone = false;
  };
};

TEST_P(SeenByOthers, stays_whichever_call_of_its_writer_fails) {
  bool is_ever_dropped = false;
  for (int64_t n = 1;; ++n) {
    World world(GetParam());
    world.look_at_each_call(GetParam(), n);
    const auto written = world.write(2);
    const bool has_failed = world.site.gate->failing(sim::Site::gate_number(0));
    world.heal();
    world.is_dropped |= written.ok();
    world.look();
    EXPECT_FALSE(world.is_gone) << "call " << n << ": " << written.status().sentence();
    EXPECT_EQ(written.ok(), world.is_dropped) << "call " << n << ": " << written.status().sentence();
    is_ever_dropped |= world.is_dropped && has_failed;
    if (!has_failed) break;
    ASSERT_LT(n, 1000);
  }
  EXPECT_TRUE(is_ever_dropped);
}

TEST_P(SeenByOthers, stays_whichever_call_of_a_rename_fails) {
  bool is_ever_dropped = false;
  for (int64_t n = 1;; ++n) {
    World world(GetParam());
    world.look_at_each_call(GetParam(), n);
    const auto moved = world.move_to(2);
    const bool has_failed = world.site.gate->failing(sim::Site::gate_number(0));
    world.heal();
    world.look();
    EXPECT_FALSE(world.is_gone) << "call " << n << ": " << moved.status().sentence();
    is_ever_dropped |= world.is_dropped && has_failed;
    if (!has_failed) {
      EXPECT_TRUE(moved.ok() && world.is_dropped) << moved.status().sentence();
      break;
    }
    ASSERT_LT(n, 1000);
  }
  EXPECT_TRUE(is_ever_dropped);
}

INSTANTIATE_TEST_SUITE_P(Versions, SeenByOthers,
                         testing::Values(SeenVersion{"rs:2+1", 3, 1, Kind::no_space}, SeenVersion{"rs:2+1", 3, 1, Kind::io},
                                         SeenVersion{"rs:2+1", 5, 1, Kind::no_space}, SeenVersion{"mirror:2", 2, 1, Kind::no_space},
                                         SeenVersion{"rs:4+2", 6, 2, Kind::no_space}, SeenVersion{"rs:4+2", 8, 2, Kind::io}));

}  // namespace
}  // namespace holdfast::checkpoint
