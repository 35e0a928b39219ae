// A simulated site whose nodes form a pool, for tests of what lies on them.
#pragma once
#include <gtest/gtest.h>

#include "catalog/pool.hpp"
#include "sim/openers_site.hpp"

namespace holdfast::sim {

struct PoolOnSite {
  explicit PoolOnSite(uint64_t seed = 1, int nodes = 3) : site(seed) {
    for (int node = 1; node <= nodes; ++node) {
      site.add_node_disk("n" + std::to_string(node));
      settings.local.push_back(site.disks.back().address);
    }
    settings.protect = "mirror:2";
    EXPECT_TRUE(catalog::open_pool(settings).ok());
  }
  Site site;
  const catalog::ReplacedEnvironment in_site{site};
  Settings settings;
};

}  // namespace holdfast::sim
