#include "layers/protected/plausible.hpp"

#include "exchange/exchange.hpp"
#include "layers/protected/protected_file.hpp"
#include "unit/catalog/scene.hpp"

namespace holdfast::layers {
namespace {

namespace fs = std::filesystem;
using catalog::says;

class Plausible : public catalog::Scene {
 protected:
  // 250 KiB in rows of 8 KiB.
  catalog::Located written() {
    targets(3, "rs:2+1");
    settings.striping_unit = 4096;
    auto alone = exchange::make_solo();
    auto file = ProtectedFile::open(catalog::create(user("f"), settings, 0644).value(), {.read = true, .write = true, .fresh = true},
                                    settings, *alone)
                    .value();
    const Bytes content(250 << 10, std::byte(7));
    const Extent extent{0, content.size()};
    EXPECT_TRUE(file->write_all({&extent, 1}, content).ok());
    EXPECT_TRUE(file->close().ok());
    return catalog::locate(user("f"), settings).value();
  }
  Status check(const catalog::Located& located, const std::function<void(layout::Manifest&)>& forge = {}) {
    Members members(located);
    layout::Manifest manifest = located.manifest;
    if (forge) forge(manifest);
    return check_plausible(members, located, manifest);
  }
  std::string object(int member, const std::string& name, const catalog::Located& located) const {
    return target(member) + "/" + located.manifest.directory + "/" + name;
  }
};

TEST_F(Plausible, what_was_written_is) {
  const catalog::Located located = written();
  EXPECT_TRUE(check(located).ok());
  EXPECT_TRUE(check_plausible(located, settings).ok());
}

TEST_F(Plausible, one_row_more_is_not) {
  const catalog::Located located = written();
  EXPECT_EQ(check(located, [](auto& manifest) { ++manifest.rows; }).kind(), Kind::corrupt);
  EXPECT_TRUE(says(check(located, [](auto& manifest) { manifest.size += 8192; }), "forged or damaged"));
}

TEST_F(Plausible, one_member_whose_records_or_data_reach_the_end_vouches_for_it) {
  const catalog::Located located = written();
  for (int member = 0; member < 3; ++member) fs::resize_file(object(member, "sums", located), 100);
  EXPECT_TRUE(check(located).ok());
  // The last row is short: not every member holds something of it.
  const auto bytes = [&](int member) { return fs::file_size(object(member, "data", located)); };
  const int last = bytes(0) >= bytes(1) && bytes(0) >= bytes(2) ? 0 : bytes(1) >= bytes(2) ? 1 : 2;
  fs::remove(object((last + 1) % 3, "data", located));
  fs::resize_file(object((last + 2) % 3, "data", located), 4096);
  EXPECT_TRUE(check(located).ok());
  fs::resize_file(object(last, "data", located), 4096);
  EXPECT_EQ(check(located).kind(), Kind::corrupt);
}

TEST_F(Plausible, who_does_not_answer_may_hold_it_and_nobody_is_nobody) {
  catalog::Located located = written();
  for (int member = 0; member < 3; ++member) fs::remove_all(target(member));
  located.members[0].target = nullptr;
  EXPECT_EQ(check(located).kind(), Kind::corrupt);
  for (catalog::Member& member : located.members) member.target = nullptr;
  EXPECT_TRUE(check(located).ok());
}

TEST_F(Plausible, an_empty_file_is) {
  targets(3, "rs:2+1");
  auto located = catalog::create(user("f"), settings, 0644);
  ASSERT_TRUE(located);
  EXPECT_TRUE(check(*located).ok());
}

}  // namespace
}  // namespace holdfast::layers
