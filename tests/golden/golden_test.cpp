// Files of every format that was ever written stay readable, field by field and byte by byte.
#include <gtest/gtest.h>

#include <fstream>

#include "engine/maintenance.hpp"
#include "engine/protected_file.hpp"
#include "exchange/exchange.hpp"
#include "golden/files.hpp"
#include "golden/records.hpp"
#include "layers/shared_records/left_records.hpp"
#include "profile/log.hpp"

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
  explicit Copy(const char* tree, int format = 1) {
    std::string name = (fs::temp_directory_path() / "golden-XXXXXX").string();
    root_ = mkdtemp(name.data());
    fs::copy(folder(format) / tree, root_, fs::copy_options::recursive);
  }
  ~Copy() { fs::remove_all(root_); }
  const fs::path& root() const { return root_; }

 private:
  fs::path root_;
};

Result<Bytes> read_whole(const fs::path& root, const layout::Manifest& manifest) {
  auto solo = exchange::make_solo();
  auto file = engine::ProtectedFile::open(locate(root, manifest), {true, false, false}, Settings(), *solo);
  if (!file) return file.status();
  Bytes content(*(*file)->size());
  const Extent all{0, content.size()};
  auto got = (*file)->read(std::span(&all, 1), content);
  if (!got) return got.status();
  if (*got != content.size()) return Status(Kind::internal, "short read");
  if (Status status = (*file)->close(); !status.ok()) return status;
  return content;
}

Result<layout::Manifest> tree_manifest(const fs::path& root) { return layout::decode(bytes_of(root / "t0" / tree_directory / "manifest")); }

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
    Copy copy(tree.name);
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
      Copy copy(tree.name);
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
    Copy copy(tree.name);
    auto manifest = tree_manifest(copy.root());
    ASSERT_TRUE(manifest.ok());
    auto report = engine::verify(locate(copy.root(), *manifest), Settings(), [](uint64_t, uint64_t) { return true; });
    ASSERT_TRUE(report.ok()) << report.status().sentence();
    EXPECT_EQ(report->finding_count, 0u) << tree.name;
    EXPECT_GT(report->units, 0u);
    EXPECT_EQ(report->status.health, engine::Health::healthy);
  }
}

// ---------------------------------------------------------------- record logs

std::shared_ptr<layers::Shelf> records_beside(const fs::path& main) {
  auto shelf = layers::shelf_beside(main.string(), 0644);
  return shelf.ok() ? *shelf : nullptr;
}

Result<std::unique_ptr<layers::LeftRecords>> find_records(const fs::path& main) {
  return layers::LeftRecords::find(records_beside(main),
                                   [](const std::string& log) -> Result<std::pair<std::shared_ptr<layers::Shelf>, std::string>> {
                                     return Status(Kind::internal, "no log serves several files here, but " + log);
                                   });
}

// Entries in their places, and entries that have not left the stage.
class GoldenRecords : public testing::TestWithParam<const char*> {
 protected:
  bool staged() const { return GetParam() == std::string("records-staged"); }
};
INSTANTIATE_TEST_SUITE_P(Format1, GoldenRecords, testing::Values("records", "records-staged"),
                         [](const auto& info) { return info.index == 0 ? "in_place" : "staged"; });

TEST_P(GoldenRecords, the_record_logs_are_read_entry_by_entry) {
  Copy copy(GetParam());
  auto shelf = records_beside(copy.root() / "out");
  ASSERT_TRUE(shelf);
  for (int rank = 0; rank < session_ranks; ++rank) {
    const std::string name = std::string(session_name) + "." + std::to_string(rank) + ".0";
    auto log = layers::LeftLog::open(*shelf, name);
    ASSERT_TRUE(log.ok()) << log.status().sentence();
    std::vector<layers::ScannedEntry> found;
    const Status scanned = (*log)->scan([&](const layers::ScannedEntry& entry) { return found.push_back(entry), Status(); });
    ASSERT_TRUE(scanned.ok()) << scanned.sentence();
    const std::vector<GoldenEntry> expected = entries_of(rank);
    ASSERT_EQ(found.size(), 1 + expected.size()) << name;
    EXPECT_EQ((*log)->torn(), rank == 0 || staged() ? 0u : 1u);
    auto session = layout::decode_session(*(*log)->payload(found[0]));
    ASSERT_TRUE(session.ok()) << session.status().sentence();
    EXPECT_EQ(*session, session_of(rank, golden_main_state));
    for (size_t i = 0; i < expected.size(); ++i) {
      const auto payload = std::as_bytes(std::span(expected[i].payload));
      layout::Entry entry = expected[i].entry;
      entry.checksum = layout::entry_checksum(layout::log_key(name), payload);
      EXPECT_EQ(found[1 + i].entry, entry) << name << ", entry " << i;
      auto got = (*log)->payload(found[1 + i]);
      ASSERT_TRUE(got.ok()) << got.status().sentence();
      EXPECT_EQ(*got, Bytes(payload.begin(), payload.end())) << name << ", entry " << i;
    }
  }
}

TEST(GoldenFormat1, the_record_note_is_read_field_by_field) {
  auto note = layout::decode_note(bytes_of(folder(1) / "records/.out.holdfast-records" / (std::string(session_name) + ".note")));
  ASSERT_TRUE(note.ok()) << note.status().sentence();
  EXPECT_EQ(*note, session_note(golden_main_state));
}

TEST_P(GoldenRecords, the_record_logs_are_merged_to_the_expected_bytes_and_go) {
  Copy copy(GetParam());
  auto left = find_records(copy.root() / "out");
  ASSERT_TRUE(left.ok()) << left.status().sentence();
  ASSERT_EQ((*left)->sessions().size(), 1u);
  const layers::LeftSession session = (*left)->sessions()[0];
  EXPECT_EQ(session.number, 3u);
  EXPECT_EQ(session.records, 4u);  // those of the first segment are in the file already
  EXPECT_EQ(session.bytes, 28u);
  EXPECT_EQ(session.torn, staged() ? 0u : 1u);
  EXPECT_EQ(session.uncertainty_ns, 250u);
  const Bytes before = bytes_of(copy.root() / "out");
  std::string main(reinterpret_cast<const char*>(before.data()), before.size());
  auto place = [&](const layout::SessionView& view, std::span<const Extent> extents, ByteView packed, bool filling) {
    EXPECT_EQ(view, session_view());
    uint64_t at = 0;
    for (const Extent& extent : extents) {
      EXPECT_EQ(filling, extent.offset < 16);
      put_in_view(main, extent.offset, std::string(reinterpret_cast<const char*>(packed.data()) + at, extent.length));
      at += extent.length;
    }
    return Status();
  };
  auto merged = (*left)->merge(session, true, place, nullptr);
  ASSERT_TRUE(merged.ok()) << merged.status().sentence();
  EXPECT_EQ(merged->end, 52u);
  const Bytes expected = bytes_of(folder(1) / "records/merged");
  EXPECT_EQ(main, std::string(reinterpret_cast<const char*>(expected.data()), expected.size()));
  const Status discarded = (*left)->discard(session);
  EXPECT_TRUE(discarded.ok()) << discarded.sentence();
  EXPECT_FALSE(fs::exists(copy.root() / ".out.holdfast-records"));
}

TEST(GoldenLog1, the_log_of_a_job_is_read_field_by_field) {
  const fs::path folder = fs::path(HOLDFAST_SOURCE_DIR) / "tests/golden/log-1";
  auto text_of = [](const fs::path& path) {
    std::ifstream file(path, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(file), {});
  };
  const std::string bytes = text_of(folder / "job.hflog");
  auto log = profile::decode(std::as_bytes(std::span(bytes.data(), bytes.size())));
  ASSERT_TRUE(log) << log.status().sentence();
  // Counters that came later are zero in it, and do not stand there.
  EXPECT_EQ(profile::to_json_text(*log), text_of(folder / "job.json"));
  EXPECT_EQ(log->files.at(0).total[profile::Counter::opens], 1u);
  EXPECT_EQ(log->files.at(0).pointer, "window");
}

TEST(GoldenFormat2, the_manifest_is_read_field_by_field) {
  auto read = layout::decode(bytes_of(folder(2) / "manifest"));
  ASSERT_TRUE(read.ok()) << read.status().sentence();
  EXPECT_EQ(*read, manifest_2());
}

TEST(GoldenFormat3, the_manifest_and_the_marker_of_a_pool_are_read_field_by_field) {
  auto manifest = layout::decode(bytes_of(folder(3) / "manifest"));
  ASSERT_TRUE(manifest.ok()) << manifest.status().sentence();
  EXPECT_EQ(*manifest, manifest_3());
  auto marker = catalog::decode_pool_marker(bytes_of(folder(3) / "marker"));
  ASSERT_TRUE(marker.ok()) << marker.status().sentence();
  EXPECT_EQ(*marker, pool_marker_2());
  const std::string of_a_set = layout::encode(manifest_2());
  EXPECT_NE(of_a_set.find("#holdfast-manifest 2 "), std::string::npos) << "files on sets are written as ever";
}

TEST(GoldenFormat5, the_manifest_of_a_wide_file_is_read_field_by_field_and_written_as_ever) {
  const Bytes bytes = bytes_of(folder(5) / "manifest");
  auto manifest = layout::decode(bytes);
  ASSERT_TRUE(manifest.ok()) << manifest.status().sentence();
  EXPECT_EQ(*manifest, manifest_5());
  EXPECT_EQ(layout::encode(manifest_5()), std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
}

TEST(GoldenFormat6, the_manifest_of_a_pack_is_read_field_by_field_and_written_as_ever) {
  const Bytes bytes = bytes_of(folder(6) / "manifest");
  auto manifest = layout::decode(bytes);
  ASSERT_TRUE(manifest.ok()) << manifest.status().sentence();
  EXPECT_EQ(*manifest, manifest_6());
  EXPECT_EQ(layout::encode(manifest_6()), std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
  const auto pack = std::make_shared<const layout::Manifest>(*manifest);
  EXPECT_EQ(layout::file_in(pack, 0).file_id, first_id_in_6) << "others name versions by their ids";
}

TEST(GoldenFormat2, the_trees_are_read_byte_by_byte) {
  for (const Tree& tree : trees) {
    Copy copy(tree.name, 2);
    auto manifest = tree_manifest(copy.root());
    ASSERT_TRUE(manifest.ok()) << tree.name << ": " << manifest.status().sentence();
    auto content = read_whole(copy.root(), *manifest);
    ASSERT_TRUE(content.ok()) << tree.name << ": " << content.status().sentence();
    EXPECT_EQ(*content, tree_content()) << tree.name;
  }
}

TEST(GoldenFormat2, a_journal_that_waits_for_a_lone_opener_is_read_and_put_in_place_by_the_next_writer) {
  Copy copy(two_openers.name, 2);
  auto manifest = tree_manifest(copy.root());
  ASSERT_TRUE(manifest.ok()) << manifest.status().sentence();
  EXPECT_NE(manifest->lone, 0u);
  EXPECT_EQ(manifest->journals.size(), 1u);
  auto read = read_whole(copy.root(), *manifest);
  ASSERT_TRUE(read.ok()) << read.status().sentence();
  EXPECT_EQ(*read, two_openers_content());
  {
    auto solo = exchange::make_solo();
    auto writer = engine::ProtectedFile::open(locate(copy.root(), *manifest), {true, true, false}, Settings(), *solo);
    ASSERT_TRUE(writer.ok()) << writer.status().sentence();
    ASSERT_TRUE((*writer)->close().ok());
  }
  manifest = tree_manifest(copy.root());
  EXPECT_TRUE(manifest->journals.empty());
  read = read_whole(copy.root(), *manifest);
  ASSERT_TRUE(read.ok()) << read.status().sentence();
  EXPECT_EQ(*read, two_openers_content());
}

}  // namespace
}  // namespace holdfast::golden
