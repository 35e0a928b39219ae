// A log of several files once stayed for ever: each file's merge found the others' entries in it and left it to them.
#include <gtest/gtest.h>

#include <filesystem>

#include "layers/shared_records/left_records.hpp"
#include "layers/shared_records/names.hpp"
#include "layers/shared_records/record_log.hpp"
#include "target/directory.hpp"
#include "unit/target/directory_fixture.hpp"

namespace holdfast::layers {
namespace {

const std::string log_name = "single-" + std::string(32, 'c');

class CommonLog : public testing::Test {
 protected:
  std::string log_directory() const { return records_directory_of(directory_ / "a"); }

  // Of `name`: a session with one record in the common log, and the note that says so.
  void leave(RecordLog& log, const std::string& name, const std::string& id) {
    layout::Session session;
    session.id = id;
    session.path = directory_ / name;
    layout::Entry entry;
    entry.session = layout::session_key(id);
    entry.segment = 1;
    entry.kind = layout::EntryKind::session;
    ASSERT_TRUE(log.describe(entry.session, 1, entry, layout::encode(session)).ok());
    entry.kind = layout::EntryKind::record;
    ASSERT_TRUE(log.append(entry, Bytes(8, std::byte{7})).ok());
    const layout::SessionNote note{id, 0, {log_directory() + "/" + log_name}, true, {}};
    ASSERT_TRUE(shelf_beside(session.path, 0600).value()->put("00000001-" + id + ".note", layout::encode(note), false).ok());
  }

  std::set<std::string> merge(const std::string& name) {
    auto common = [&](const std::string&) -> Result<std::pair<std::shared_ptr<Shelf>, std::string>> {
      std::vector<Shelf::Holder> holders{{target::open_directory(directory_.path()).value(), nullptr, ".a.holdfast-records/"}};
      return std::pair(std::make_shared<Shelf>(std::move(holders), 1, log_directory()), log_name);
    };
    auto is_left = [](const layout::Session& other) {
      return std::filesystem::exists(records_directory_of(other.path) + "/00000001-" + other.id + ".note");
    };
    auto left = LeftRecords::find(shelf_beside(directory_ / name, 0600).value(), common, is_left);
    EXPECT_TRUE(left.ok() && (*left)->sessions().size() == 1);
    const LeftSession session = (*left)->sessions()[0];
    uint64_t bytes = 0;
    auto place = [&](const layout::SessionView&, std::span<const Extent>, ByteView packed, bool) { return bytes += packed.size(), Status(); };
    EXPECT_TRUE((*left)->merge(session, false, place, nullptr).ok());
    EXPECT_EQ(bytes, 8u);
    EXPECT_TRUE((*left)->discard(session).ok());
    return (*left)->kept_for();
  }

  target::TemporaryDirectory directory_;
};

TEST_F(CommonLog, of_several_files_goes_with_the_last_of_them_that_is_merged) {
  for (const bool first_file_last : {false, true}) {
    {
      RecordLog log(shelf_beside(directory_ / "a", 0600).value(), log_name, 0);
      leave(log, "a", std::string(32, 'a'));
      leave(log, "b", std::string(32, 'b'));
    }
    const std::string first = first_file_last ? "b" : "a", last = first_file_last ? "a" : "b";
    EXPECT_EQ(merge(first), std::set<std::string>{directory_ / last});
    EXPECT_TRUE(std::filesystem::exists(log_directory() + "/" + log_name + ".0"));
    EXPECT_TRUE(merge(last).empty());
    EXPECT_TRUE(std::filesystem::is_empty(directory_.path()));
  }
}

}  // namespace
}  // namespace holdfast::layers
