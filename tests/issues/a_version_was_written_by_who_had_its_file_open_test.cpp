// A file that grows becomes a version while a process that nobody has heard of has a way to it still: a child of a fork. It opened the version to write, and changed what
// never changes.
#include <gtest/gtest.h>

#include "checkpoint/shared.hpp"
#include "engine/protected_file.hpp"
#include "engine/write_once.hpp"
#include "exchange/exchange.hpp"
#include "sim/pool_on_site.hpp"

namespace holdfast::checkpoint {
namespace {

Result<std::unique_ptr<engine::ProtectedFile>> open_to_write(const catalog::Located& located, const Settings& settings, exchange::Exchange& alone) {
  return engine::ProtectedFile::open(located, {.read = true, .write = true}, settings, alone);
}

TEST(SealedFile, is_refused_to_who_opens_it_to_write) {
  sim::PoolOnSite pool;
  pool.settings.fast_close = false;
  const checkpoint::Run run{"00000000000000ab", 1, {}, false, pool.settings.local};
  const LocalName name{.step = 1, .file = "/data/ck.1"};
  const auto located = make_shared_file(name.version_in(run), run, 0644, pool.settings);
  ASSERT_TRUE(located.ok()) << located.status().sentence();
  const auto alone = exchange::make_solo();
  const Bytes bytes(100, std::byte(1));
  const Extent extent{0, bytes.size()};
  {
    auto file = open_to_write(*located, pool.settings, *alone);
    ASSERT_TRUE(file.ok()) << file.status().sentence();
    ASSERT_TRUE((*file)->write({&extent, 1}, bytes).ok());
    EXPECT_EQ(engine::make_final(*located, name.version_in(run), pool.settings).status().kind(), Kind::busy) << "it is open";
    ASSERT_TRUE((*file)->close().ok());
  }
  ASSERT_TRUE(engine::make_final(*located, name.version_in(run), pool.settings).ok());
  const auto late = open_to_write(locate_shared(located->manifest, pool.settings), pool.settings, *alone);
  EXPECT_EQ(late.status().kind(), Kind::stale);
  EXPECT_EQ(late.status().sys_errno(), ESTALE);
}

}  // namespace
}  // namespace holdfast::checkpoint
