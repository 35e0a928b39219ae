#include "engine/plausible.hpp"

#include "engine/protected_file.hpp"
#include "exchange/exchange.hpp"
#include "unit/catalog/scene.hpp"

namespace holdfast::engine {
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
    auto file =
        ProtectedFile::open(catalog::create(user("f"), settings, 0644).value(), {.read = true, .write = true, .fresh = true}, settings, *alone)
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

constexpr uint64_t believed_rows = (1 << 30) / 8192;  // of a GiB

TEST_F(Plausible, what_a_gib_and_twice_what_is_there_hold_is_too) {
  const catalog::Located located = written();
  EXPECT_TRUE(check(located, [](auto& manifest) { manifest.rows = believed_rows + 60; }).ok());
  EXPECT_TRUE(check(located, [](auto& manifest) { manifest.size = (believed_rows + 60) * 8192; }).ok());
}

TEST_F(Plausible, more_is_not) {
  const catalog::Located located = written();
  EXPECT_EQ(check(located, [](auto& manifest) { manifest.rows = believed_rows + 66; }).kind(), Kind::corrupt);
  EXPECT_TRUE(says(check(located, [](auto& manifest) { manifest.size = (believed_rows + 66) * 8192; }), "forged or damaged"));
}

TEST_F(Plausible, one_member_whose_records_or_data_reach_half_of_it_vouches_for_it) {
  const catalog::Located located = written();
  const auto forge = [](auto& manifest) { manifest.rows = believed_rows + 60; };
  for (int member = 0; member < 3; ++member) fs::resize_file(object(member, "sums", located), 100);
  EXPECT_TRUE(check(located, forge).ok());
  for (int member = 0; member < 2; ++member) fs::resize_file(object(member, "data", located), 4096);
  EXPECT_TRUE(check(located, forge).ok());
  fs::resize_file(object(2, "data", located), 4096);
  EXPECT_EQ(check(located, forge).kind(), Kind::corrupt);
}

TEST_F(Plausible, who_does_not_answer_may_hold_it_and_nobody_is_nobody) {
  catalog::Located located = written();
  const auto forge = [](auto& manifest) { manifest.rows = believed_rows * 4; };
  EXPECT_EQ(check(located, forge).kind(), Kind::corrupt);
  located.members[0].target = nullptr;
  EXPECT_EQ(check(located, forge).kind(), Kind::corrupt);
  for (catalog::Member& member : located.members) member.target = nullptr;
  EXPECT_TRUE(check(located, forge).ok());
}

// Also a program's open refuses it, for reading and for writing, before it believes the size.
TEST_F(Plausible, a_forged_size_is_refused_where_a_program_opens_the_file) {
  catalog::Located located = written();
  layout::Manifest forged = located.manifest;
  forged.rows = believed_rows * 4;
  ++forged.epoch;
  for (const catalog::Member& member : located.members) {
    const std::string text = layout::encode(forged);
    ASSERT_TRUE(member.target->put(located.meta_name(member.index, "manifest"), std::as_bytes(std::span(text)), true).ok());
  }
  auto alone = exchange::make_solo();
  for (const bool write : {false, true}) {
    auto file = ProtectedFile::open(catalog::locate(user("f"), settings).value(), {.read = true, .write = write, .fresh = false}, settings, *alone);
    ASSERT_FALSE(file.ok());
    EXPECT_TRUE(says(file.status(), "forged or damaged"));
  }
}

TEST_F(Plausible, an_empty_file_is) {
  targets(3, "rs:2+1");
  auto located = catalog::create(user("f"), settings, 0644);
  ASSERT_TRUE(located);
  EXPECT_TRUE(check(*located).ok());
}

}  // namespace
}  // namespace holdfast::engine
