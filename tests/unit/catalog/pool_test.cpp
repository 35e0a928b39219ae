// Pools: directories with a marker each, of which every file has its own choice.
#include <sys/resource.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <set>

#include "catalog/domains.hpp"
#include "catalog/give_way.hpp"
#include "catalog/marker.hpp"
#include "catalog/pool.hpp"
#include "catalog/user_files.hpp"
#include "engine/maintenance.hpp"
#include "engine/protected_file.hpp"
#include "engine/repair_file.hpp"
#include "exchange/exchange.hpp"
#include "layout/sealed_text.hpp"
#include "unit/catalog/forwarding_environment.hpp"
#include "unit/catalog/scene.hpp"

namespace holdfast::catalog {
namespace {

class PoolTest : public Scene {
 protected:
  void pool(int n, const std::string& scheme) {
    targets(n, scheme);
    settings.local.swap(settings.targets);
    settings.targets.clear();
  }
  std::vector<std::string> make(const std::string& name) {
    auto made = create(user(name), settings, 0644);
    EXPECT_TRUE(made) << made.status().sentence();
    std::vector<std::string> members;
    if (made)
      for (const auto& member : made->manifest.members) members.push_back(member.path);
    return members;
  }
  void write_file(const std::string& name, const std::string& text) {
    auto solo = exchange::make_solo();
    auto made = create(user(name), settings, 0644);
    ASSERT_TRUE(made) << made.status().sentence();
    auto file = engine::ProtectedFile::open(std::move(*made), {true, true, true}, settings, *solo);
    ASSERT_TRUE(file) << file.status().sentence();
    const Extent all{0, text.size()};
    ASSERT_TRUE((*file)->write(std::span(&all, 1), std::as_bytes(std::span(text))));
    ASSERT_TRUE((*file)->close());
  }
  std::string read_file(const std::string& name) {
    auto solo = exchange::make_solo();
    auto found = locate(user(name), settings);
    if (!found) return found.status().sentence();
    auto file = engine::ProtectedFile::open(std::move(*found), {true, false, false}, settings, *solo);
    if (!file) return file.status().sentence();
    std::string text(size_t(*(*file)->agreed_size()), '\0');
    const Extent all{0, text.size()};
    const auto read = (*file)->read(std::span(&all, 1), std::as_writable_bytes(std::span(text)));
    return read ? text : read.status().sentence();
  }
  int index_of(const std::string& path) const {
    for (int i = 0; i < 100; ++i)
      if (target(i) == path) return i;
    return -1;
  }
};

TEST_F(PoolTest, MarkersStandEachForItselfAndStayTheSame) {
  pool(3, "mirror:2");
  auto look = open_pool(settings);
  ASSERT_TRUE(look) << look.status().sentence();
  EXPECT_EQ(look->usable_nodes, 3u);
  std::set<std::string> texts;
  for (int i = 0; i < 3; ++i) {
    const std::string text = read(target(i) + "/" + marker_name);
    const auto marker = decode_pool_marker(std::as_bytes(std::span(text)));
    ASSERT_TRUE(marker) << marker.status().sentence();
    EXPECT_EQ(text.find(target(0)), std::string::npos) << "it names nobody";
    EXPECT_EQ(decode_marker(std::as_bytes(std::span(text))).status().kind(), Kind::version) << "who knows sets only leaves it alone";
    texts.insert(text);
  }
  EXPECT_EQ(texts.size(), 3u);
  ASSERT_TRUE(open_pool(settings));
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(texts.count(read(target(i) + "/" + marker_name)));
}

TEST_F(PoolTest, AMarkerIsReadBackAndAnyOtherTextIsNone) {
  const PoolMarker marker{std::string(32, 'a'), std::string(32, 'b'), "n3"};
  const std::string text = encode(marker);
  EXPECT_EQ(*decode_pool_marker(std::as_bytes(std::span(text))), marker);
  for (size_t cut = 0; cut < text.size(); ++cut) EXPECT_FALSE(decode_pool_marker(std::as_bytes(std::span(text).first(cut))));
  for (const char* senseless : {"{}", "[]", R"({"pool":"a","uuid":"b","node":""})", "nothing"}) {
    const std::string sealed = layout::seal("target", pool_marker_format, senseless);
    EXPECT_EQ(decode_pool_marker(std::as_bytes(std::span(sealed))).status().kind(), Kind::corrupt) << senseless;
  }
  const std::string newer = layout::seal("target", pool_marker_format + 1, "{}");
  EXPECT_EQ(decode_pool_marker(std::as_bytes(std::span(newer))).status().kind(), Kind::version);
}

TEST_F(PoolTest, EachFileHasAChoiceOfItsOwnAndAllNodesAreUsed) {
  pool(8, "rs:2+1");
  ASSERT_TRUE(open_pool(settings));
  std::map<std::string, int> used;
  std::set<std::set<std::string>> choices;
  for (int i = 0; i < 40; ++i) {
    const auto members = make("f" + std::to_string(i));
    const std::set<std::string> different(members.begin(), members.end());
    EXPECT_EQ(different.size(), 3u);
    choices.insert(different);
    for (const std::string& member : members) ++used[member];
  }
  EXPECT_EQ(used.size(), 8u);
  for (const auto& [path, times] : used) EXPECT_LT(times, 30) << path;
  EXPECT_GT(choices.size(), 15u);
}

TEST_F(PoolTest, MoreThanSixtyFourNodesAreAPool) {
  pool(70, "mirror:2");
  auto look = open_pool(settings);
  ASSERT_TRUE(look) << look.status().sentence();
  EXPECT_EQ(look->usable_nodes, 70u);
  EXPECT_EQ(make("f").size(), 2u);
  settings.striping_factor = 70;
  EXPECT_EQ(make("g").size(), 70u) << "a file's rows can go round all of them";
}

TEST_F(PoolTest, AFileIsFoundReadAndRemovedByItsManifestAlone) {
  pool(6, "rs:2+1");
  ASSERT_TRUE(open_pool(settings));
  write_file("f", "some text");
  settings.local.clear();
  settings.protect.reset();
  EXPECT_EQ(read_file("f"), "some text");
  fs::remove_all(sidecar("f"));
  EXPECT_EQ(read_file("f"), "some text") << "by the note";
  auto found = locate(user("f"), settings);
  ASSERT_TRUE(found);
  EXPECT_TRUE(found->manifest.pool);
  const std::string directory = found->manifest.directory;
  ASSERT_TRUE(remove(user("f"), settings));
  for (int i = 0; i < 6; ++i) EXPECT_FALSE(fs::exists(target(i) + "/" + directory));
}

TEST_F(PoolTest, NodesJoinAndLeaveAndPoolsOverlap) {
  pool(3, "mirror:2");
  ASSERT_TRUE(open_pool(settings));
  write_file("f", "first");
  for (int i = 3; i < 6; ++i) fs::create_directories(target(i));
  settings.local = {target(4), target(5)};
  ASSERT_TRUE(open_pool(settings)) << "a pool of its own";
  settings.local = {target(2), target(3), target(5)};
  ASSERT_TRUE(open_pool(settings)) << "of both, and one more";
  write_file("g", "second");
  EXPECT_EQ(read_file("f"), "first");
  EXPECT_EQ(read_file("g"), "second");
}

TEST_F(PoolTest, AWipedDirectoryIsALostMemberAlsoWhereANewJobTakesItAnew) {
  pool(2, "mirror:2");
  ASSERT_TRUE(open_pool(settings));
  write_file("f", "precious");
  empty(target(0));
  auto found = locate(user("f"), settings);
  ASSERT_TRUE(found);
  int lost = 0;
  for (const Member& member : found->members) {
    lost += !member.usable();
    EXPECT_TRUE(member.usable() || says(member.lost, "has no marker"));
  }
  EXPECT_EQ(lost, 1);
  write_file("beside", "begins its life degraded");
  EXPECT_EQ(read_file("beside"), "begins its life degraded");
  EXPECT_FALSE(fs::exists(target(0) + "/" + marker_name)) << "within a job nobody takes it";

  ASSERT_TRUE(open_pool(settings)) << "the next job does";
  found = locate(user("f"), settings);
  ASSERT_TRUE(found);
  for (const Member& member : found->members) EXPECT_TRUE(member.usable() || says(member.lost, "has another identity"));
  EXPECT_EQ(read_file("f"), "precious");
  EXPECT_EQ(make("g").size(), 2u);

  auto mended = engine::repair_file(user("f"), {{target(0), target(0)}}, false, settings, nullptr);
  ASSERT_TRUE(mended) << mended.status().sentence();
  EXPECT_EQ(mended->status.health, engine::Health::healthy);
  mended = engine::repair_file(user("beside"), {{target(0), target(0)}}, false, settings, nullptr);
  ASSERT_TRUE(mended) << mended.status().sentence();
  EXPECT_EQ(mended->status.health, engine::Health::healthy);
  empty(target(1));
  EXPECT_EQ(read_file("f"), "precious");
  EXPECT_EQ(read_file("beside"), "begins its life degraded");
}

// A process that has used up its descriptors reaches no node.
class NoDescriptors final : public ForwardingEnvironment {
 public:
  using ForwardingEnvironment::ForwardingEnvironment;
  Result<std::shared_ptr<target::Target>> open_target(const std::string& path, const target::DirectoryOptions&) override {
    return Status::from_errno(EMFILE, path);
  }
};

TEST_F(PoolTest, WhoHasNoDescriptorsLeftHearsOfThatAndNotOfLostNodes) {
  pool(6, "rs:4+2");
  ASSERT_TRUE(open_pool(settings));
  write_file("there", "text");
  Status read, made;
  {
    NoDescriptors none(environment());
    const ReplacedEnvironment replaced(none);
    read = locate(user("there"), settings).status();
    made = create(user("new"), settings, 0644).status();
  }
  for (const Status& status : {read, made}) {
    EXPECT_TRUE(says(status, "this process has no descriptors left for it; close files, or allow more (ulimit -n)")) << status.sentence();
    EXPECT_EQ(status.to_errno(), EMFILE);
  }
  EXPECT_FALSE(fs::exists(user("new")));
  write_file("new", "no node counts as lost");
  EXPECT_EQ(read_file("new"), "no node counts as lost");
}

// With so few no target can be opened, and to find that out one by one takes seconds.
TEST_F(PoolTest, WhoMayHaveHardlyAnyDescriptorsHearsOfThatAtOnce) {
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  rlimit few = before;
  few.rlim_cur = 8;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
  const Status status = keep_descriptors("/there", 3);
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_TRUE(says(status, "/there: this process has no descriptors left")) << status.sentence();
  EXPECT_EQ(status.to_errno(), EMFILE);
}

TEST_F(PoolTest, AFileMayBeMadeWithoutAsManyNodesAsItsCodeBearsAndNoMore) {
  pool(6, "rs:4+2");
  ASSERT_TRUE(open_pool(settings));
  empty(target(0));
  write_file("one", "without one");
  empty(target(1));
  write_file("two", "without two");
  EXPECT_EQ(read_file("two"), "without two");
  empty(target(2));
  const Status refused = create(user("three"), settings, 0644).status();
  EXPECT_TRUE(says(refused, "rs:4+2 needs 6 nodes and there are 3"));
  EXPECT_EQ(refused.to_errno(), EIO) << "the arguments of the program's call were right";
  EXPECT_FALSE(fs::exists(user("three")));
}

TEST_F(PoolTest, ALostMemberIsReplacedInTheManifestAlone) {
  pool(5, "rs:2+1");
  ASSERT_TRUE(open_pool(settings));
  write_file("f", "precious");
  auto found = locate(user("f"), settings);
  ASSERT_TRUE(found);
  std::set<std::string> members;
  for (const auto& member : found->manifest.members) members.insert(member.path);
  const std::string gone = *members.begin(), other = *members.rbegin();
  std::vector<std::string> others;
  for (const std::string& path : settings.local)
    if (!members.count(path)) others.push_back(path);
  fs::remove_all(gone);
  const uint64_t epoch = found->manifest.epoch;

  EXPECT_TRUE(says(engine::repair_file(user("f"), {{gone, other}}, false, settings, nullptr).status(), "which keeps another part"));
  EXPECT_TRUE(says(engine::repair_file(user("f"), {{others[0], others[1]}}, false, settings, nullptr).status(), "is not a member of"));
  write(root / "thesis.tex", "");
  EXPECT_TRUE(says(engine::repair_file(user("f"), {{gone, root}}, false, settings, nullptr).status(), "not empty"));

  auto mended = engine::repair_file(user("f"), {{gone, others[0]}}, false, settings, nullptr);
  ASSERT_TRUE(mended) << mended.status().sentence();
  EXPECT_EQ(mended->status.health, engine::Health::healthy);
  EXPECT_GT(mended->status.manifest.epoch, epoch);
  mended = engine::repair_file(user("f"), {{gone, others[0]}}, false, settings, nullptr);
  ASSERT_TRUE(mended) << "asked again: " << mended.status().sentence();
  EXPECT_EQ(mended->units_rebuilt, 0u);

  fs::remove_all(other);
  mended = engine::repair_file(user("f"), {}, false, settings, nullptr, &others);
  ASSERT_TRUE(mended) << mended.status().sentence();
  EXPECT_EQ(mended->status.health, engine::Health::healthy) << "onto the one live node that keeps nothing of it";
  EXPECT_EQ(read_file("f"), "precious");
  for (const std::string& path : members)
    if (path != gone && path != other) fs::remove_all(path);
  EXPECT_EQ(read_file("f"), "precious");
  EXPECT_TRUE(says(engine::repair_file(user("f"), {}, false, settings, nullptr, &others).status(), "0 live nodes"));
}

class Restriped : public PoolTest {
 protected:
  // A file on six of seven nodes, of which one is lost, and is given back by the seventh. Then another is lost.
  void SetUp() override {
    pool(7, "mirror:2");
    settings.striping_unit = 4096;
    settings.striping_factor = 6;
    ASSERT_TRUE(open_pool(settings));
    write_file("f", content);
    settings.striping_factor.reset();
    lose_first();
    const auto mended = repair();
    ASSERT_TRUE(mended) << mended.status().sentence();
    EXPECT_EQ(mended->written_anew, 0u);
    lose_first();
    ASSERT_EQ(read_file("f"), content);
    before = locate(user("f"), settings)->manifest;
  }
  void lose_first() { fs::remove_all(locate(user("f"), settings)->manifest.members[0].path); }
  Result<engine::FileRepair> repair(const engine::Progress& progress = nullptr) {
    return engine::repair_file(user("f"), {}, false, settings, progress, &settings.local);
  }
  void expect_as_before() {
    EXPECT_EQ(locate(user("f"), settings)->manifest.file_id, before.file_id);
    EXPECT_EQ(read_file("f"), content);
    expect_one_of_it();
  }
  // Nothing is left of what has not come to be, or has gone.
  void expect_one_of_it() {
    const auto now = locate(user("f"), settings);
    ASSERT_TRUE(now) << now.status().sentence();
    for (int i = 0; i < 7; ++i)
      for (const auto& entry : fs::directory_iterator(fs::exists(target(i)) ? fs::path(target(i)) : root / "home")) {
        if (!entry.path().filename().string().starts_with("f-")) continue;
        EXPECT_EQ(entry.path().filename(), now->manifest.directory) << entry.path();
      }
    std::set<std::string> names;
    for (const auto& entry : fs::directory_iterator(root / "home")) names.insert(entry.path().filename());
    EXPECT_EQ(names, (std::set<std::string>{"f", ".f.holdfast"}));
  }

  const std::string content = [] {
    std::string text(100'000, '\0');
    for (size_t i = 0; i < text.size(); ++i) text[i] = i / 20'000 % 2 ? '\0' : char('a' + i % 23);
    return text;
  }();
  layout::Manifest before;
};

TEST_F(Restriped, AFileGoesOverTheNodesThatLiveWhereTooFewAreFree) {
  fs::permissions(user("f"), fs::perms(0600));
  fs::last_write_time(user("f"), fs::file_time_type::clock::now() - std::chrono::hours(50));
  const auto time = fs::last_write_time(user("f"));
  const auto report = repair();
  ASSERT_TRUE(report) << report.status().sentence();
  EXPECT_EQ(report->written_anew, 4u) << "all that live but one, which the next repair needs";
  EXPECT_EQ(report->status.health, engine::Health::healthy);
  EXPECT_NE(report->status.manifest.file_id, before.file_id);
  EXPECT_EQ(report->status.manifest.path, user("f"));
  EXPECT_EQ(read_file("f"), content);
  EXPECT_EQ(fs::last_write_time(user("f")), time);
  EXPECT_EQ(mode_at_path(report->status.manifest), 0600u);
  expect_one_of_it();
  const auto checked = engine::verify(*locate(user("f"), settings), settings, nullptr);
  ASSERT_TRUE(checked);
  EXPECT_EQ(checked->finding_count, 0u);
  for (int more = 0; more < 3; ++more) {
    lose_first();
    const auto again = repair();
    ASSERT_TRUE(again) << again.status().sentence();
    EXPECT_EQ(again->written_anew, more == 1 ? 2u : 0u) << "one is free for each second loss";
    EXPECT_EQ(again->status.health, engine::Health::healthy);
    EXPECT_EQ(read_file("f"), content);
  }
  lose_first();
  EXPECT_TRUE(says(repair().status(), "1 lost member and 0 live nodes that keep no part of it are known")) << "two nodes are needed, and one lives";
  EXPECT_EQ(read_file("f"), content);
}

TEST_F(Restriped, AFileThatIsOpenForWritingStaysWhereItIs) {
  auto solo = exchange::make_solo();
  auto file = engine::ProtectedFile::open(*locate(user("f"), settings), {true, true, false}, settings, *solo);
  ASSERT_TRUE(file) << file.status().sentence();
  const auto refused = repair().status();
  EXPECT_EQ(refused.kind(), Kind::busy);
  EXPECT_TRUE(says(refused, "too few nodes are free for its lost members"));
  EXPECT_TRUE(says(refused, "is being written; try again when that program has closed it"));
  const Extent beginning{0, 3};
  ASSERT_TRUE((*file)->write({&beginning, 1}, std::as_bytes(std::span("xyz", 3))));
  ASSERT_TRUE((*file)->close());
  EXPECT_EQ(read_file("f"), "xyz" + content.substr(3));
  expect_one_of_it();
  const auto report = repair();
  ASSERT_TRUE(report) << report.status().sentence();
  EXPECT_EQ(report->written_anew, 4u);
  EXPECT_EQ(read_file("f"), "xyz" + content.substr(3));
}

TEST_F(Restriped, AWriterThatComesMeanwhileIsNotOvertaken) {
  auto solo = exchange::make_solo();
  Result<std::unique_ptr<engine::ProtectedFile>> writer(Kind::internal, "not yet");
  const auto refused = repair([&](uint64_t, uint64_t) {
    if (!writer) writer = engine::ProtectedFile::open(*locate(user("f"), settings), {true, true, false}, settings, *solo);
    return true;
  });
  ASSERT_TRUE(writer) << writer.status().sentence();
  EXPECT_EQ(refused.status().kind(), Kind::busy);
  ASSERT_TRUE((*writer)->close());
  expect_as_before();
}

TEST_F(Restriped, ARepairThatIsInterruptedLeavesNothing) {
  const auto report = repair([](uint64_t, uint64_t) { return false; });
  ASSERT_TRUE(report) << report.status().sentence();
  EXPECT_TRUE(report->stopped);
  EXPECT_EQ(report->written_anew, 0u);
  expect_as_before();
}

TEST_F(Restriped, AFileWithOtherNamesStaysWhereItIs) {
  fs::create_hard_link(user("f"), root / "other-name");
  EXPECT_TRUE(says(repair().status(), "has other names too"));
  expect_as_before();
}

TEST_F(Restriped, WhatTheUserNamesIsDoneOrRefused) {
  const std::string lost = before.members[0].path, onto = before.members[1].path;
  EXPECT_TRUE(says(engine::repair_file(user("f"), {{lost, onto}}, false, settings, nullptr, &settings.local).status(), "0 live nodes"));
  expect_as_before();
}

TEST_F(PoolTest, AFormerMemberThatComesBackIsNotBelieved) {
  pool(4, "rs:2+1");
  settings.striping_unit = 4096;
  ASSERT_TRUE(open_pool(settings));
  const std::string first(60000, 'a'), second(50000, 'b');
  write_file("f", first);
  auto found = locate(user("f"), settings);
  ASSERT_TRUE(found);
  std::vector<std::string> members;
  for (const auto& member : found->manifest.members) members.push_back(member.path);
  std::string spare;
  for (const std::string& path : settings.local)
    if (std::find(members.begin(), members.end(), path) == members.end()) spare = path;
  ASSERT_TRUE(engine::repair_file(user("f"), {{members[0], spare}}, false, settings, nullptr)) << "the old one is whole and stays there";
  {
    auto solo = exchange::make_solo();
    auto file = engine::ProtectedFile::open(std::move(*locate(user("f"), settings)), {true, true, false}, settings, *solo);
    ASSERT_TRUE(file) << file.status().sentence();
    const Extent all{0, second.size()};
    ASSERT_TRUE((*file)->set_size(0));
    ASSERT_TRUE((*file)->write(std::span(&all, 1), std::as_bytes(std::span(second))));
    ASSERT_TRUE((*file)->close());
  }
  EXPECT_EQ(read_file("f"), second);
  ASSERT_TRUE(engine::repair_file(user("f"), {{spare, members[0]}}, false, settings, nullptr));
  fs::remove_all(spare);
  EXPECT_EQ(read_file("f"), second);
  auto report = engine::verify(*locate(user("f"), settings), settings, nullptr);
  ASSERT_TRUE(report) << report.status().sentence();
  EXPECT_EQ(report->finding_count, 0u);
  EXPECT_EQ(report->status.health, engine::Health::healthy);
  empty(members[1]);
  EXPECT_EQ(read_file("f"), second);
}

TEST_F(PoolTest, AReplacementThatTheSidecarDoesNotKnowYetIsUnfinished) {
  pool(4, "rs:2+1");
  ASSERT_TRUE(open_pool(settings));
  write_file("f", "precious");
  fs::copy(sidecar("f"), root / "before", fs::copy_options::recursive);
  auto found = locate(user("f"), settings);
  ASSERT_TRUE(found);
  std::set<std::string> members;
  for (const auto& member : found->manifest.members) members.insert(member.path);
  fs::remove_all(*members.begin());
  ASSERT_TRUE(engine::repair_file(user("f"), {}, false, settings, nullptr, &settings.local));
  fs::remove_all(sidecar("f"));
  fs::rename(root / "before", sidecar("f"));
  found = locate(user("f"), settings);
  ASSERT_TRUE(found) << found.status().sentence();
  int untold = 0;
  for (const Member& member : found->members) untold += member.usable() && member.untold;
  EXPECT_EQ(untold, 1);
  auto mended = engine::repair_file(user("f"), {}, false, settings, nullptr);
  ASSERT_TRUE(mended) << mended.status().sentence();
  found = locate(user("f"), settings);
  ASSERT_TRUE(found);
  for (const Member& member : found->members) EXPECT_TRUE(member.usable() && !member.untold);
}

TEST_F(PoolTest, WhatCannotBeOfAPoolIsRefused) {
  pool(3, "mirror:2");
  write(target(1) + "/thesis.tex", "precious");
  EXPECT_TRUE(says(open_pool(settings).status(), "not empty"));
  EXPECT_FALSE(fs::exists(target(0) + "/" + marker_name)) << "nothing is made";
  fs::remove(target(1) + "/thesis.tex");
  ASSERT_TRUE(open_pool(settings));
  EXPECT_TRUE(says(open_or_create_set({target(0), target(1)}, settings).status(), "directory of a pool"));
  fs::create_directories(target(3)), fs::create_directories(target(4));
  ASSERT_TRUE(open_or_create_set({target(3), target(4)}, settings));
  settings.local = {target(0), target(3)};
  EXPECT_TRUE(says(open_pool(settings).status(), "belongs to target set"));
  fs::copy_file(target(0) + "/" + marker_name, target(2) + "/" + marker_name, fs::copy_options::overwrite_existing);
  settings.local = {target(0), target(2)};
  EXPECT_TRUE(says(open_pool(settings).status(), "one marker"));
  write(target(1) + "/" + marker_name, encode(PoolMarker{std::string(32, 'a'), std::string(32, 'b'), "n3"}));
  settings.local = {target(0), target(1)};
  EXPECT_TRUE(says(open_pool(settings).status(), "is the directory of node n3 by its marker"));
}

TEST_F(PoolTest, FewerNodesThanARowNeedsNamesTheLargestScheme) {
  pool(5, "rs:4+2");
  EXPECT_TRUE(says(open_pool(settings).status(), "rs:4+2 needs 6 nodes and there are 5; the largest scheme that fits is rs:3+2"));
  settings.local.resize(3);
  EXPECT_TRUE(says(open_pool(settings).status(), "the largest scheme that fits is mirror:3"));
  settings.local.resize(1);
  EXPECT_TRUE(says(open_pool(settings).status(), "none"));
}

TEST_F(PoolTest, ARowsUnitsAreSpreadOverRacks) {
  pool(9, "rs:2+1");
  settings.domains = root / "domains";
  std::string lines = "# node rack power\n";
  for (int i = 0; i < 9; ++i) lines += target(i) + " r" + std::to_string(i / 3) + " p" + std::to_string(i % 2) + "\n";
  write(settings.domains, lines);
  auto look = open_pool(settings);
  ASSERT_TRUE(look) << look.status().sentence();
  EXPECT_TRUE(look->remarks.empty());
  for (int i = 0; i < 20; ++i) {
    std::set<int> racks;
    for (const std::string& member : make("f" + std::to_string(i))) racks.insert(index_of(member) / 3);
    EXPECT_EQ(racks.size(), 3u);
  }
  settings.protect = "rs:4+1";
  look = open_pool(settings);
  ASSERT_TRUE(look);
  EXPECT_EQ(look->remarks.size(), 1u) << "two of five units are in one rack";
  fs::create_directories(target(9));
  settings.local.push_back(target(9));
  EXPECT_TRUE(says(open_pool(settings).status(), "does not say where node"));
}

TEST_F(PoolTest, RowsThatGoRoundManyNodesAreSpreadOverRacksToo) {
  pool(9, "rs:2+1");
  settings.domains = root / "domains";
  settings.striping_factor = 9;
  for (int racks : {3, 4}) {
    std::string lines;
    for (int i = 0; i < 9; ++i) lines += target(i) + " r" + std::to_string(i % racks) + "\n";
    write(settings.domains, lines);
    ASSERT_TRUE(open_pool(settings));
    for (int i = 0; i < 10; ++i) {
      const auto members = make("f" + std::to_string(racks) + "." + std::to_string(i));
      EXPECT_GE(members.size(), racks == 3 ? 9u : 8u);
      for (size_t first = 0; first < members.size(); ++first) {
        std::set<int> in;
        for (size_t u = 0; u < 3; ++u) in.insert(index_of(members[(first + u) % members.size()]) % racks);
        EXPECT_EQ(in.size(), 3u);
      }
    }
  }
}

TEST(Domains, LinesThatMakeNoSenseAreNamed) {
  const auto domains = parse_domains("n1 r1\n\n  n2 r1 p1 # comment\n", "racks");
  ASSERT_TRUE(domains);
  EXPECT_EQ(domains->at("n2"), (Domain{"r1", "p1"}));
  EXPECT_TRUE(says(parse_domains("n1 r1\nn2\n", "racks").status(), "line 2 of racks is 'n2'"));
  EXPECT_TRUE(says(parse_domains("n1 r1 p1 x\n", "racks").status(), "line 1"));
  EXPECT_TRUE(says(parse_domains("n1 r1\nn1 r2\n", "racks").status(), "once more"));
}

}  // namespace
}  // namespace holdfast::catalog
