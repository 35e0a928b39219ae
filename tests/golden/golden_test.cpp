// Files of every format that was ever written stay readable, field by field and byte by byte.
#include <gtest/gtest.h>

#include <fstream>

#include "exchange/exchange.hpp"
#include "golden/files.hpp"
#include "layers/protected/maintenance.hpp"
#include "layers/protected/protected_file.hpp"

namespace holdfast::golden {
namespace {

Bytes bytes_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  Bytes bytes(text.size());
  for (size_t i = 0; i < text.size(); ++i) bytes[i] = std::byte(text[i]);
  return bytes;
}

// A copy of the checked-in tree, so that nothing that is opened can change it.
class Copy {
 public:
  explicit Copy(const Tree& tree) {
    std::string name = (fs::temp_directory_path() / "golden-XXXXXX").string();
    root_ = mkdtemp(name.data());
    fs::copy(folder(1) / tree.name, root_, fs::copy_options::recursive);
  }
  ~Copy() { fs::remove_all(root_); }
  const fs::path& root() const { return root_; }

 private:
  fs::path root_;
};

Result<Bytes> read_whole(const fs::path& root, const layout::Manifest& manifest) {
  auto solo = exchange::make_solo();
  auto file = layers::ProtectedFile::open(locate(root, manifest), {true, false, false}, Settings(), *solo);
  if (!file) return file.status();
  Bytes content((*file)->size());
  const Extent all{0, content.size()};
  auto got = (*file)->read(std::span(&all, 1), content);
  if (!got) return got.status();
  if (*got != content.size()) return Status(Kind::internal, "short read");
  if (Status status = (*file)->close(); !status.ok()) return status;
  return content;
}

Result<layout::Manifest> tree_manifest(const fs::path& root) {
  return layout::decode(bytes_of(root / "t0" / tree_directory / "manifest"));
}

TEST(GoldenFormat1, the_manifest_is_read_field_by_field) {
  auto read = layout::decode(bytes_of(folder(1) / "manifest"));
  ASSERT_TRUE(read.ok()) << read.status().sentence();
  EXPECT_EQ(*read, manifest_1());
}

TEST(GoldenFormat1, the_row_records_are_read_field_by_field) {
  const Bytes sums = bytes_of(folder(1) / "sums");
  const layout::Geometry g = record_geometry_1();
  const size_t slot = layout::record_slot_bytes(g);
  ASSERT_EQ(sums.size(), 3 * slot);
  for (const layout::RowRecord& expected : records_1()) {
    auto read = layout::decode_record(g, record_key, expected.row, ByteView(sums).subspan(expected.row * slot, slot));
    ASSERT_TRUE(read.ok()) << read.status().sentence();
    EXPECT_EQ(*read, expected);
  }
}

TEST(GoldenFormat1, the_trees_are_read_byte_by_byte) {
  for (const Tree& tree : trees) {
    Copy copy(tree);
    auto manifest = tree_manifest(copy.root());
    ASSERT_TRUE(manifest.ok()) << tree.name << ": " << manifest.status().sentence();
    EXPECT_EQ(manifest->file_id, tree_identity(tree).file_id);
    EXPECT_EQ(manifest->geometry, tree_identity(tree).geometry);
    EXPECT_EQ(manifest->size, tree_bytes);
    auto content = read_whole(copy.root(), *manifest);
    ASSERT_TRUE(content.ok()) << tree.name << ": " << content.status().sentence();
    EXPECT_EQ(*content, tree_content()) << tree.name;
  }
}

TEST(GoldenFormat1, the_trees_are_read_with_any_one_member_gone) {
  for (const Tree& tree : trees) {
    const layout::Manifest identity = tree_identity(tree);
    for (int gone = 0; gone < identity.geometry.members; ++gone) {
      Copy copy(tree);
      auto manifest = tree_manifest(copy.root());
      ASSERT_TRUE(manifest.ok());
      fs::remove_all(copy.root() / ("t" + std::to_string(gone)));
      Settings settings;
      auto solo = exchange::make_solo();
      auto content = read_whole(copy.root(), *manifest);
      if (identity.geometry.members == 2) {
        // One copy of two alone cannot know that it is the newest: refused until its epoch is accepted by name.
        EXPECT_EQ(content.status().kind(), Kind::stale) << tree.name;
        continue;
      }
      ASSERT_TRUE(content.ok()) << tree.name << ": " << content.status().sentence();
      EXPECT_EQ(*content, tree_content()) << tree.name << " without member " << gone;
    }
  }
}

TEST(GoldenFormat1, the_trees_are_found_healthy) {
  for (const Tree& tree : trees) {
    Copy copy(tree);
    auto manifest = tree_manifest(copy.root());
    ASSERT_TRUE(manifest.ok());
    auto report = layers::verify(locate(copy.root(), *manifest), Settings(), [](uint64_t, uint64_t) { return true; });
    ASSERT_TRUE(report.ok()) << report.status().sentence();
    EXPECT_EQ(report->finding_count, 0u) << tree.name;
    EXPECT_GT(report->units, 0u);
    EXPECT_EQ(report->status.health, layers::Health::healthy);
  }
}

}  // namespace
}  // namespace holdfast::golden
