// The record of a checkpoint that was drained: what it says comes back, and it knows its files again.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "catalog/user_files.hpp"
#include "checkpoint/drained.hpp"

namespace holdfast::checkpoint {
namespace {

DrainedCheckpoint some() {
  DrainedCheckpoint drained{"0123456789abcdef", 2, 30, {}};
  drained.files.push_back({0, {7, 8, 9, 10}, "/a/ck.30.0", "2.0000000000000001.1"});
  drained.files.push_back({1, {7, 11, 0, -12}, "/a b/100%25\n ck.30.1", "2.0000000000000001.4"});
  drained.written = {{0, {3, "0a1b2c3d"}}, {7, {1, "00000000"}}};
  return drained;
}

TEST(DrainedRecord, comes_back_with_paths_of_any_kind) {
  EXPECT_EQ(*decode_drained(encode(some())), some());
  EXPECT_EQ(some().name(), "0123456789abcdef.2.30");
  EXPECT_EQ(some().bytes(), 9u);
  EXPECT_EQ(some().age().written, 3u);
  DrainedCheckpoint with_id = some();
  with_id.attempt.id = 0xab;
  EXPECT_EQ(*decode_drained(encode(with_id)), with_id);
  EXPECT_EQ(with_id.name(), "0123456789abcdef.2.00000000000000ab.30");
  DrainedCheckpoint unknown = some();
  unknown.written.clear();
  EXPECT_EQ(*decode_drained(encode(unknown)), unknown);
}

TEST(DrainedRecord, files_of_no_checkpoint_come_back_as_such) {
  DrainedCheckpoint singles = some();
  singles.are_singles = true;
  for (DrainedFile& file : singles.files) file.version = "2.00000000008002cd.7";
  EXPECT_EQ(*decode_drained(encode(singles)), singles);
  EXPECT_NE(singles.name(), some().name());  // one attempt may have both
}

// One that is protected only after the others were drained is not there yet, nor is a later version.
TEST(DrainedRecord, of_files_of_no_checkpoint_says_which_version_of_each_is_there) {
  layout::Version version;
  version.attempt = layout::Attempt{2, 1}, version.file = "/a/b.dat", version.number = 7;
  DrainedCheckpoint singles;
  singles.are_singles = true, singles.files = {{0, {7, 8, 9, 10}, "/a/b.dat", version_drained(version)}};
  Protected file;
  file.version = version;
  EXPECT_TRUE(singles.has(file));
  file.version.number = 8;
  EXPECT_FALSE(singles.has(file));
  file.version = version, file.version.attempt = layout::Attempt{3, 1};
  EXPECT_FALSE(singles.has(file));
  file.version = version, file.version.file = "/a/c.dat";
  EXPECT_FALSE(singles.has(file));
}

// It had the count and the node of its first file behind the number of files.
TEST(DrainedRecord, of_the_first_form_is_known_without_its_ages) {
  const auto old = decode_drained("holdfast drained 1\n0123456789abcdef 2 30 1 5 0a1b2c3d\n0 7 8 9 10 /a/ck.30.0\n");
  ASSERT_TRUE(old.has_value());
  EXPECT_EQ(*old, (DrainedCheckpoint{"0123456789abcdef", 2, 30, {{0, {7, 8, 9, 10}, "/a/ck.30.0"}}}));
}

TEST(DrainedRecord, of_the_second_form_has_no_id_of_its_attempt) {
  DrainedCheckpoint old = some();
  for (DrainedFile& file : old.files) file.version.clear();
  std::string text = encode(old);
  ASSERT_TRUE(text.starts_with("holdfast drained 3\n"));
  text.replace(0, text.find('\n'), "holdfast drained 2");
  EXPECT_EQ(decode_drained(text), old);
}

TEST(DrainedRecord, of_the_third_form_says_not_which_versions_its_files_are) {
  DrainedCheckpoint old = some();
  for (DrainedFile& file : old.files) file.version.clear();
  EXPECT_EQ(decode_drained(encode(old)), old);
  EXPECT_FALSE(old.has_versions());
  ASSERT_TRUE(some().has_versions());
  EXPECT_EQ(some().files[1].number()->second, 4u);
}

TEST(DrainedRecord, is_none_where_any_of_it_is_missing) {
  const std::string text = encode(some());
  for (size_t end = text.find('\n') + 1; end < text.size(); end = text.find('\n', end) + 1)
    EXPECT_FALSE(decode_drained(text.substr(0, end)).has_value()) << end;
  EXPECT_FALSE(decode_drained("").has_value());
  EXPECT_FALSE(decode_drained("holdfast drained 1\n0123456789abcdef 1 1 0\n").has_value()) << "a checkpoint has files";
}

TEST(DrainedRecord, knows_its_files_until_somebody_changes_them) {
  std::string directory = testing::TempDir() + "holdfast-drained-XXXXXX";
  ASSERT_NE(::mkdtemp(directory.data()), nullptr);
  const std::string path = directory + "/ck.30.0";
  std::ofstream(path) << "content";
  DrainedCheckpoint drained{"0123456789abcdef", 1, 30, {{0, catalog::look(path, true)->path_state(), path}}};
  EXPECT_TRUE(drained.still_there());
  std::ofstream(path, std::ios::app) << "more";
  EXPECT_FALSE(drained.still_there());
  drained.files[0].state = catalog::look(path, true)->path_state();
  EXPECT_TRUE(drained.still_there());
  std::filesystem::remove_all(directory);
  EXPECT_FALSE(drained.still_there());
}

}  // namespace
}  // namespace holdfast::checkpoint
