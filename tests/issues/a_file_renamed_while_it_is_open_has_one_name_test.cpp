// A program had a file open to write when another process renamed it. The writer's next commit put a note at the old path again: two names led
// to one file, and who wrote or removed one of them destroyed the other.
#include "catalog/catalog.hpp"
#include "engine/protected_file.hpp"
#include "exchange/exchange.hpp"
#include "unit/catalog/scene.hpp"

namespace holdfast::catalog {
namespace {

class Renamed : public Scene, public ::testing::WithParamInterface<const char*> {
 protected:
  Renamed() { targets(3, GetParam()); }

  struct Writer {
    Writer(Located located, const Settings& settings, bool fresh) {
      auto opened = engine::ProtectedFile::open(std::move(located), {true, true, fresh}, settings, *alone);
      EXPECT_TRUE(opened) << opened.status().sentence();
      if (opened) file = std::move(*opened);
    }
    void append(const std::string& text) {
      const auto done = file->append(std::as_bytes(std::span(text)), true);
      EXPECT_TRUE(done) << done.status().sentence();
    }
    void close() {
      const Status closed = file->close();
      EXPECT_TRUE(closed.ok()) << closed.sentence();
    }
    std::unique_ptr<exchange::Exchange> alone = exchange::make_solo();
    std::unique_ptr<engine::ProtectedFile> file;
  };
  std::unique_ptr<Writer> opened(const std::string& name) {
    auto located = locate(user(name), settings);
    EXPECT_TRUE(located) << located.status().sentence();
    return std::make_unique<Writer>(std::move(*located), settings, false);
  }
  std::unique_ptr<Writer> made(const std::string& name) {
    auto located = create(user(name), settings, 0644, true);
    EXPECT_TRUE(located) << located.status().sentence();
    return std::make_unique<Writer>(std::move(*located), settings, true);
  }
  std::string content(const std::string& name) {
    auto located = locate(user(name), settings);
    if (!located) return located.status().sentence();
    const auto alone = exchange::make_solo();
    auto file = engine::ProtectedFile::open(std::move(*located), {true, false, false}, settings, *alone);
    if (!file) return file.status().sentence();
    std::string text(1000, '\0');
    const Extent all{0, text.size()};
    const auto got = (*file)->read({&all, 1}, std::as_writable_bytes(std::span(text)));
    if (!got) return got.status().sentence();
    text.resize(*got);
    return text;
  }
  // Neither a note or link, nor a sidecar.
  bool is_gone(const std::string& name) const { return !fs::exists(fs::symlink_status(user(name))) && !fs::exists(sidecar(name)); }
};

TEST_P(Renamed, it_is_found_where_it_was_brought) {
  const auto writer = made("a");
  writer->append("one");
  ASSERT_TRUE(rename(user("a"), user("b"), settings).ok());
  writer->append("two");
  EXPECT_TRUE(is_gone("a"));
  writer->close();
  EXPECT_TRUE(is_gone("a"));
  EXPECT_EQ(content("b"), "onetwo");
  auto located = locate(user("b"), settings);
  ASSERT_TRUE(located);
  EXPECT_EQ(located->manifest.path, user("b"));
}

TEST_P(Renamed, a_new_file_at_the_old_path_is_another_one) {
  const auto writer = made("a");
  writer->append("one");
  ASSERT_TRUE(rename(user("a"), user("b"), settings).ok());
  const auto next = made("a");
  next->append("new");
  writer->append("two");
  next->close();
  writer->close();
  EXPECT_EQ(content("a"), "new");
  EXPECT_EQ(content("b"), "onetwo");
  ASSERT_TRUE(remove(user("a"), settings).ok());
  EXPECT_EQ(content("b"), "onetwo");
}

TEST_P(Renamed, into_another_directory_and_back) {
  made("a")->close();
  const auto writer = opened("a");
  fs::create_directory(root / "home/sub");
  ASSERT_TRUE(rename(user("a"), user("sub/b"), settings).ok());
  writer->append("one");
  ASSERT_TRUE(rename(user("sub/b"), user("c"), settings).ok());
  fs::remove_all(root / "home/sub");
  writer->append("two");
  writer->close();
  EXPECT_TRUE(is_gone("a"));
  EXPECT_EQ(content("c"), "onetwo");
}

// A program that is not served has moved what stands at the path, and another one has opened it there since.
TEST_P(Renamed, by_a_program_by_itself) {
  const auto writer = made("a");
  writer->append("one");
  fs::rename(user("a"), user("b"));
  const auto other = opened("b");
  other->append("two");
  other->close();
  EXPECT_TRUE(is_gone("a"));
  writer->append("three");
  writer->close();
  EXPECT_TRUE(is_gone("a"));
  EXPECT_EQ(content("b"), "onetwothree");
}

TEST_P(Renamed, over_a_sidecar_that_was_left_there) {
  made("a")->close();
  fs::copy(sidecar("a"), sidecar("b"), fs::copy_options::recursive);
  ASSERT_TRUE(rename(user("a"), user("b"), settings).ok());
  EXPECT_TRUE(is_gone("a"));
  EXPECT_EQ(content("b"), "");
}

// What stands at the path says where the file is, not where somebody has put its sidecar.
TEST_P(Renamed, not_by_who_moves_its_sidecar_away) {
  made("a")->close();
  const auto writer = opened("a");
  writer->append("one");
  fs::create_directory(root / "home/sub");
  fs::rename(sidecar("a"), root / "home/sub/.x.holdfast");
  writer->append("two");
  writer->close();
  EXPECT_FALSE(fs::exists(fs::symlink_status(user("sub/x"))));
  EXPECT_EQ(content("a"), "onetwo");
}

INSTANTIATE_TEST_SUITE_P(Schemes, Renamed, ::testing::Values("rs:2+1", "mirror:2", "mirror:3"), [](const auto& scheme) {
  return std::string(scheme.param).starts_with("rs") ? "rs" : std::string("mirror_") + scheme.param[7];
});

}  // namespace
}  // namespace holdfast::catalog
