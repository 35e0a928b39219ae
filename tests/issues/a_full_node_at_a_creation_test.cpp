// A node's disk was full when a file was made. Its maker counted as a killed writer from then on, and a repair said so. Where more nodes were full than
// the scheme bears, the program was told of an input/output error and not of lacking room.
#include <gtest/gtest.h>

#include "catalog/pool.hpp"
#include "engine/protected_file.hpp"
#include "exchange/exchange.hpp"
#include "sim/openers_site.hpp"

namespace holdfast {
namespace {

class FullNodeAtACreation : public ::testing::Test {
 protected:
  FullNodeAtACreation() {
    for (int n = 1; n <= 3; ++n) site.add_node_disk("n" + std::to_string(n)), settings.local.push_back(site.disks.back().address);
    settings.protect = "rs:2+1";
    EXPECT_TRUE(catalog::open_pool(settings).ok());
  }
  void fill(int count) {
    for (int n = 0; n < count; ++n) site.disks[size_t(n)].full = true;
  }
  Result<catalog::Located> make() { return catalog::create("/data/x.dat", settings, 0644, true); }

  sim::Site site{1};
  catalog::ReplacedEnvironment in_site{site};
  Settings settings;
  std::unique_ptr<exchange::Exchange> solo = exchange::make_solo();
};

TEST_F(FullNodeAtACreation, makes_no_killed_writer_of_its_maker) {
  fill(1);
  auto made = make();
  ASSERT_TRUE(made.ok()) << made.status().sentence();
  auto file = engine::ProtectedFile::open(std::move(*made), {true, true, true}, settings, *solo);
  ASSERT_TRUE(file.ok()) << file.status().sentence();
  const Bytes bytes(5000, std::byte(7));
  const Extent whole{0, bytes.size()};
  ASSERT_TRUE((*file)->write({&whole, 1}, bytes).ok());
  ASSERT_TRUE((*file)->close().ok());
  const auto found = catalog::locate("/data/x.dat", settings);
  ASSERT_TRUE(found.ok()) << found.status().sentence();
  EXPECT_EQ(found->manifest.open_generations, std::vector<uint64_t>());
  EXPECT_EQ(found->manifest.size, bytes.size());
}

TEST_F(FullNodeAtACreation, is_told_of_as_such_where_they_are_too_many) {
  fill(2);
  const auto made = make();
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.status().to_errno(), ENOSPC) << made.status().sentence();
}

}  // namespace
}  // namespace holdfast
