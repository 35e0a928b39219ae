#include <sys/stat.h>

#include "catalog/stub.hpp"
#include "catalog/user_files.hpp"
#include "layout/sealed_text.hpp"
#include "unit/catalog/scene.hpp"

namespace holdfast::catalog {
namespace {

using FileTest = Scene;

TEST_F(FileTest, KindsOfPathsAreTold) {
  EXPECT_EQ(kind_of(user("a")), PathKind::absent);
  write(user("a"), "");
  EXPECT_EQ(kind_of(user("a")), PathKind::empty);
  write(user("a"), "content");
  EXPECT_EQ(kind_of(user("a")), PathKind::plain);
  EXPECT_EQ(kind_of(root), PathKind::other);
  EXPECT_EQ(kind_of(user("a") + "/b"), PathKind::other);
  fs::create_symlink(user("a"), user("link"));
  EXPECT_EQ(kind_of(user("link")), PathKind::plain);
  fs::create_symlink("nowhere", user("dangling"));
  EXPECT_EQ(kind_of(user("dangling")), PathKind::absent);
}

TEST_F(FileTest, AProtectedFileIsOneWhateverDirectoriesLeadToIt) {
  fs::create_directory(sidecar("out.dat"));
  write(sidecar("out.dat") + "/manifest", "");
  write(user("out.dat"), "the bytes of a file in a single directory");
  fs::create_directory(user("below"));
  fs::create_directory_symlink(root / "home", root / "way");
  for (const std::string& path : {user("below/../out.dat"), (root / "way/out.dat").string(), user("./out.dat"), user("") + "/out.dat"})
    EXPECT_EQ(kind_of(path), PathKind::protected_file) << path;
  EXPECT_EQ(kind_of(user("below/out.dat")), PathKind::absent);
  const fs::path before = fs::current_path();
  fs::current_path(root / "home");
  EXPECT_EQ(kind_of("out.dat"), PathKind::protected_file);
  EXPECT_EQ(kind_of("./out.dat"), PathKind::protected_file);
  fs::current_path(before);
}

TEST_F(FileTest, CodedFileOverTargetsIsAStubAtThePath) {
  targets(6, "rs:4+2");
  auto made = create(user("out.dat"), settings, 0644);
  ASSERT_TRUE(made) << made.status().sentence();
  EXPECT_EQ(made->manifest.geometry.placement, layout::Placement::interleaved);
  const std::string text = read(user("out.dat"));
  EXPECT_TRUE(text.starts_with("HOLDFAST-STUB 1\n"));
  EXPECT_NE(text.find("holdfast export"), std::string::npos);
  EXPECT_LE(text.size(), 4096u);
  EXPECT_EQ(kind_of(user("out.dat")), PathKind::protected_file);
  EXPECT_EQ(kind_of(user("out.dat"), false), PathKind::protected_file);
  auto found = locate(user("out.dat"), Settings());
  ASSERT_TRUE(found) << found.status().sentence();
  EXPECT_EQ(found->manifest.file_id, made->manifest.file_id);
  for (const Member& member : found->members) EXPECT_TRUE(member.usable());
}

TEST_F(FileTest, MirrorOverTargetsIsALinkToAWholeCopy) {
  targets(3, "mirror:3");
  auto made = create(user("out.dat"), settings, 0644);
  ASSERT_TRUE(made) << made.status().sentence();
  ASSERT_TRUE(fs::is_symlink(user("out.dat")));
  EXPECT_EQ(fs::read_symlink(user("out.dat")).string(), target(0) + "/" + made->manifest.directory + "/unit0");
  EXPECT_EQ(read(user("out.dat")), "");  // not dangling
  EXPECT_EQ(kind_of(user("out.dat")), PathKind::protected_file);
}

TEST_F(FileTest, TheLinkLeavesAStaleMemberForAnother) {
  targets(3, "mirror:3");
  auto made = create(user("out.dat"), settings, 0644);
  ASSERT_TRUE(made);
  made->manifest.members[0].stale = true;
  close_file(*made);
  EXPECT_TRUE(fs::read_symlink(user("out.dat")).string().starts_with(target(1)));
  for (auto& member : made->manifest.members) member.stale = true;
  close_file(*made);
  EXPECT_TRUE(read(user("out.dat")).starts_with("HOLDFAST-STUB 1\n"));
}

TEST_F(FileTest, SingleDirectoryKeepsThePlainFileAtThePath) {
  settings.protect = "mirror:2";
  settings.allow_shared_target = true;
  auto made = create(user("out.dat"), settings, 0644);
  ASSERT_TRUE(made) << made.status().sentence();
  EXPECT_EQ(made->members.size(), 2u);
  EXPECT_EQ(made->members[0].target, made->members[1].target);
  EXPECT_EQ(fs::file_size(user("out.dat")), 0u);
  EXPECT_TRUE(fs::exists(sidecar("out.dat") + "/m1.manifest"));
  EXPECT_EQ(kind_of(user("out.dat")), PathKind::protected_file);
  EXPECT_TRUE(locate(user("out.dat"), Settings()));
}

TEST_F(FileTest, SingleDirectoryInterleavedIsAStub) {
  settings.protect = "mirror:2";
  settings.placement = "interleaved";
  settings.allow_shared_target = true;
  ASSERT_TRUE(create(user("out.dat"), settings, 0644));
  EXPECT_TRUE(read(user("out.dat")).starts_with("HOLDFAST-STUB 1\n"));
  EXPECT_TRUE(fs::exists(sidecar("out.dat") + "/data"));
  EXPECT_TRUE(locate(user("out.dat"), Settings()));
}

TEST_F(FileTest, AnUnknownLayoutIsOneNode) {
  settings.protect = "mirror:2";
  Status status = create(user("out.dat"), settings, 0644).status();
  EXPECT_TRUE(says(status, "--allow-shared-target"));
  EXPECT_TRUE(says(status, "--targets"));
  EXPECT_TRUE(fs::is_empty(root / "home"));
}

TEST_F(FileTest, TheStubAloneFindsTheFile) {
  targets(6, "rs:4+2");
  auto made = create(user("out.dat"), settings, 0644);
  ASSERT_TRUE(made);
  fs::remove_all(sidecar("out.dat"));
  auto found = locate(user("out.dat"), Settings());
  ASSERT_TRUE(found) << found.status().sentence();
  EXPECT_EQ(found->manifest.file_id, made->manifest.file_id);
}

TEST_F(FileTest, TheLinkAloneFindsTheFile) {
  targets(3, "mirror:3");
  auto made = create(user("out.dat"), settings, 0644);
  ASSERT_TRUE(made);
  fs::remove_all(sidecar("out.dat"));
  auto found = locate(user("out.dat"), Settings());
  ASSERT_TRUE(found) << found.status().sentence();
  EXPECT_EQ(found->manifest.file_id, made->manifest.file_id);
}

TEST_F(FileTest, TheSidecarAloneFindsTheFile) {
  targets(6, "rs:4+2");
  ASSERT_TRUE(create(user("out.dat"), settings, 0644));
  fs::remove(user("out.dat"));
  EXPECT_EQ(kind_of(user("out.dat")), PathKind::protected_file);
  auto found = locate(user("out.dat"), Settings());
  ASSERT_TRUE(found);
  close_file(*found);
  EXPECT_TRUE(read(user("out.dat")).starts_with("HOLDFAST-STUB 1\n"));
}

TEST_F(FileTest, TheTargetsAloneFindTheFile) {
  targets(6, "rs:4+2");
  auto made = create(user("out.dat"), settings, 0644);
  ASSERT_TRUE(made);
  fs::remove_all(root / "home");
  fs::create_directory(root / "home");
  EXPECT_EQ(locate(user("out.dat"), Settings()).status().kind(), Kind::not_found);
  auto found = locate(user("out.dat"), settings);
  ASSERT_TRUE(found) << found.status().sentence();
  EXPECT_EQ(found->manifest.file_id, made->manifest.file_id);
  EXPECT_EQ(locate(user("other.dat"), settings).status().kind(), Kind::not_found);
}

TEST_F(FileTest, LookingForAFileMakesNoTargets) {
  targets(2, "mirror:2");
  EXPECT_EQ(locate(user("x"), settings).status().kind(), Kind::not_found);
  EXPECT_TRUE(fs::is_empty(target(0)));
}

TEST_F(FileTest, LostMembersAreHandedBackWithAReason) {
  targets(6, "rs:4+2");
  ASSERT_TRUE(create(user("out.dat"), settings, 0644));
  fs::remove_all(target(1));
  empty(target(4));
  auto found = locate(user("out.dat"), Settings());
  ASSERT_TRUE(found) << found.status().sentence();
  EXPECT_FALSE(found->members[1].usable());
  EXPECT_TRUE(says(found->members[4].lost, "mount missing"));
}

TEST_F(FileTest, TheNewestManifestCounts) {
  targets(6, "rs:4+2");
  auto made = create(user("out.dat"), settings, 0644);
  ASSERT_TRUE(made);
  made->manifest.epoch = 9;
  made->manifest.size = 4242;
  const std::string text = layout::encode(made->manifest);
  ASSERT_TRUE(made->members[3].target->put(made->meta_name(3, "manifest"), std::as_bytes(std::span(text.data(), text.size())), false).ok());
  auto found = locate(user("out.dat"), Settings());
  ASSERT_TRUE(found);
  EXPECT_EQ(found->manifest.size, 4242u);
}

TEST_F(FileTest, AReplacedMemberThatStillAnswersServesUntilRepairMovesIt) {
  targets(7, "rs:4+2");
  settings.targets.pop_back();
  ASSERT_TRUE(create(user("out.dat"), settings, 0644));
  ASSERT_TRUE(replace_member(target(0), target(2), target(6), settings));
  auto found = locate(user("out.dat"), Settings());
  ASSERT_TRUE(found);
  EXPECT_TRUE(found->members[2].usable());
  EXPECT_TRUE(found->replacements.empty());
  auto to_repair = locate(user("out.dat"), Settings(), {.adopt_replacements = true});
  ASSERT_TRUE(to_repair);
  EXPECT_EQ(to_repair->members[2].path, target(2));
  ASSERT_EQ(to_repair->replacements.size(), 1u);
  EXPECT_EQ(to_repair->replacements[0].index, 2);
  EXPECT_EQ(to_repair->replacements[0].path, target(6));
}

TEST_F(FileTest, AReplacedMemberIsLostUntilRepairAdoptsIt) {
  targets(7, "rs:4+2");
  settings.targets.pop_back();
  auto made = create(user("out.dat"), settings, 0644);
  ASSERT_TRUE(made);
  fs::remove_all(target(2));
  ASSERT_TRUE(replace_member(target(0), target(2), target(6), settings));
  auto found = locate(user("out.dat"), Settings());
  ASSERT_TRUE(found);
  EXPECT_TRUE(says(found->members[2].lost, "holdfast repair"));
  LocateOptions options;
  options.adopt_replacements = true;
  auto adopted = locate(user("out.dat"), Settings(), options);
  ASSERT_TRUE(adopted);
  EXPECT_FALSE(adopted->members[2].usable());
  ASSERT_EQ(adopted->replacements.size(), 1u);
  EXPECT_EQ(adopted->replacements[0].path, target(6));
  EXPECT_NE(adopted->replacements[0].uuid, adopted->manifest.members[2].uuid);
}

TEST_F(FileTest, TargetsThatMovedAreFoundWhereTheUserSays) {
  targets(2, "mirror:2");
  ASSERT_TRUE(create(user("out.dat"), settings, 0644));
  fs::rename(target(1), target(9));
  auto found = locate(user("out.dat"), Settings());
  ASSERT_TRUE(found);
  EXPECT_FALSE(found->members[1].usable());
  settings.targets = {target(0), target(9)};
  found = locate(user("out.dat"), settings);
  ASSERT_TRUE(found);
  EXPECT_TRUE(found->members[1].usable());
}

TEST_F(FileTest, AMovedStubIsTheFile) {
  targets(6, "rs:4+2");
  auto made = create(user("out.dat"), settings, 0644);
  ASSERT_TRUE(made);
  fs::rename(user("out.dat"), user("moved.dat"));
  auto found = locate(user("moved.dat"), Settings());
  ASSERT_TRUE(found) << found.status().sentence();
  EXPECT_TRUE(found->read_only.ok());
  EXPECT_EQ(found->manifest.path, user("moved.dat"));
  close_file(*found);
  EXPECT_FALSE(fs::exists(sidecar("out.dat")));
  EXPECT_TRUE(fs::exists(sidecar("moved.dat")));
  EXPECT_EQ(kind_of(user("out.dat")), PathKind::absent);
  EXPECT_EQ(locate(user("moved.dat"), Settings())->manifest.path, user("moved.dat"));
}

TEST_F(FileTest, ACopiedStubCanOnlyBeRead) {
  targets(6, "rs:4+2");
  auto made = create(user("out.dat"), settings, 0644);
  ASSERT_TRUE(made);
  fs::copy_file(user("out.dat"), user("copy.dat"));
  auto found = locate(user("copy.dat"), Settings());
  ASSERT_TRUE(found) << found.status().sentence();
  EXPECT_TRUE(says(found->read_only, "copy of the stub"));
  EXPECT_FALSE(found->path_keeper->publish(found->manifest, false).ok());
  ASSERT_TRUE(remove(user("copy.dat"), Settings()).ok());
  EXPECT_FALSE(fs::exists(user("copy.dat")));
  EXPECT_TRUE(locate(user("out.dat"), Settings()));
}

TEST_F(FileTest, AStubMovedOverAnotherFilesPathIsRefused) {
  targets(6, "rs:4+2");
  auto made = create(user("a"), settings, 0644);
  ASSERT_TRUE(made);
  close_file(*made);
  ASSERT_TRUE(create(user("b"), settings, 0644));
  fs::rename(user("b"), user("a"));
  EXPECT_TRUE(says(locate(user("a"), Settings()).status(), "another protected file"));
}

TEST_F(FileTest, ACutStubIsNotTaken) {
  targets(6, "rs:4+2");
  ASSERT_TRUE(create(user("a"), settings, 0644));
  fs::remove_all(sidecar("a"));
  fs::resize_file(user("a"), fs::file_size(user("a")) - 5);
  EXPECT_TRUE(says(locate(user("a"), Settings()).status(), "cut or edited"));
}

TEST_F(FileTest, AnEditedPlainFileIsRefusedWithTheTwoWaysOut) {
  settings.protect = "mirror:2";
  settings.allow_shared_target = true;
  auto made = create(user("out.dat"), settings, 0644);
  ASSERT_TRUE(made);
  write(user("out.dat"), "data");
  close_file(*made);
  ASSERT_TRUE(locate(user("out.dat"), Settings()));
  write(user("out.dat"), "edited");
  Status status = locate(user("out.dat"), Settings()).status();
  EXPECT_EQ(status.kind(), Kind::stale);
  EXPECT_TRUE(says(status, "holdfast import"));
  EXPECT_TRUE(says(status, "holdfast repair --revert"));
  LocateOptions options;
  options.ignore_edits = true;
  EXPECT_TRUE(locate(user("out.dat"), Settings(), options));
}

TEST_F(FileTest, ARemountedFileSystemIsNoEdit) {
  settings.protect = "mirror:2";
  settings.allow_shared_target = true;
  auto made = create(user("out.dat"), settings, 0644);
  ASSERT_TRUE(made);
  close_file(*made);
  made->manifest.path_state.device += 1;
  write(sidecar("out.dat") + "/manifest", layout::encode(made->manifest));
  EXPECT_TRUE(locate(user("out.dat"), Settings()));
  made->manifest.path_state.change_ns += 1;
  write(sidecar("out.dat") + "/manifest", layout::encode(made->manifest));
  EXPECT_EQ(locate(user("out.dat"), Settings()).status().kind(), Kind::stale);
}

// Storage has damaged a note: also seen where its device has another number.
TEST_F(FileTest, ARottedNoteOfARemountedFileSystemIsRenewed) {
  targets(6, "rs:4+2");
  auto made = create(user("out.dat"), settings, 0644);
  ASSERT_TRUE(made);
  close_file(*made);
  const std::string whole = read(user("out.dat"));
  fs::permissions(user("out.dat"), fs::perms::owner_write, fs::perm_options::add);
  std::string damaged = whole;
  damaged[60] ^= 1;
  write(user("out.dat"), damaged);
  layout::PathState& left = made->manifest.path_state;
  auto leave = [&] { write(sidecar("out.dat") + "/manifest", layout::encode(made->manifest)); };
  left = catalog::look(user("out.dat"), false)->path_state();
  left.inode += 1;
  leave();
  EXPECT_TRUE(says(locate(user("out.dat"), Settings()).status(), "somebody has written into"));
  left.device += 1;
  left.change_ns += 1;
  leave();
  EXPECT_TRUE(says(locate(user("out.dat"), Settings()).status(), "somebody has written into"));
  left.change_ns -= 1;
  leave();
  auto found = locate(user("out.dat"), Settings());
  ASSERT_TRUE(found) << found.status().sentence();
  const Status published = found->path_keeper->publish(found->manifest, false);
  ASSERT_TRUE(published.ok()) << published.sentence();
  EXPECT_EQ(read(user("out.dat")), whole);
}

TEST_F(FileTest, ANoteOfANewerFormatIsNotCalledAnEdit) {
  targets(6, "rs:4+2");
  auto made = create(user("out.dat"), settings, 0644);
  ASSERT_TRUE(made);
  const std::string newer = layout::seal("stub", stub_format + 1, std::string(stub_line) + std::string(300, 'x') + "\n{}");
  fs::permissions(user("out.dat"), fs::perms::owner_write, fs::perm_options::add);
  write(user("out.dat"), newer);
  const Status found = locate(user("out.dat"), Settings()).status();
  EXPECT_EQ(found.kind(), Kind::version);
  EXPECT_TRUE(says(found, "out.dat"));
  EXPECT_EQ(made->path_keeper->publish(made->manifest, false).kind(), Kind::version);
  EXPECT_EQ(read(user("out.dat")), newer);
}

TEST_F(FileTest, AFileBeingWrittenMayChange) {
  settings.protect = "mirror:2";
  settings.allow_shared_target = true;
  auto made = create(user("out.dat"), settings, 0644);
  ASSERT_TRUE(made);
  made->manifest.next_generation = 2;
  made->manifest.open_generations = {1};
  close_file(*made);
  write(user("out.dat"), "more");
  EXPECT_TRUE(locate(user("out.dat"), Settings()));
}

TEST_F(FileTest, ACopyEditedThroughTheLinkIsRefused) {
  targets(3, "mirror:3");
  auto made = create(user("out.dat"), settings, 0644);
  ASSERT_TRUE(made);
  close_file(*made);
  ASSERT_TRUE(locate(user("out.dat"), Settings()));
  write(user("out.dat"), "through the link");
  EXPECT_EQ(locate(user("out.dat"), Settings()).status().kind(), Kind::stale);
}

TEST_F(FileTest, AStubReplacedByAPlainFileIsRefusedAndLeftAlone) {
  targets(6, "rs:4+2");
  auto made = create(user("out.dat"), settings, 0644);
  ASSERT_TRUE(made);
  fs::remove(user("out.dat"));
  write(user("out.dat"), "mine");
  EXPECT_EQ(locate(user("out.dat"), Settings()).status().kind(), Kind::stale);
  EXPECT_FALSE(made->path_keeper->publish(made->manifest, false).ok());
  EXPECT_EQ(read(user("out.dat")), "mine");
  ASSERT_TRUE(remove(user("out.dat"), Settings()).ok());
  EXPECT_EQ(read(user("out.dat")), "mine");
  EXPECT_EQ(kind_of(user("out.dat")), PathKind::plain);
}

TEST_F(FileTest, AnEmptyFileBecomesProtectedWithItsPermissions) {
  targets(6, "rs:4+2");
  write(user("tmp"), "");
  chmod(user("tmp").c_str(), 0600);
  auto made = create(user("tmp"), settings, 0666);
  ASSERT_TRUE(made) << made.status().sentence();
  EXPECT_EQ(made->manifest.mode, 0600u);
  struct stat state;
  ASSERT_EQ(stat(user("tmp").c_str(), &state), 0);
  EXPECT_EQ(state.st_mode & 0777, 0400u);
  EXPECT_EQ(own_mode(state.st_mode, mode_in_stub(read(user("tmp")))), 0600u);
  ASSERT_EQ(stat((target(3) + "/" + made->manifest.directory).c_str(), &state), 0);
  EXPECT_EQ(state.st_mode & 0077, 0u);
}

TEST_F(FileTest, TheTargetsOfASingleDirectoryAreNotMarked) {
  settings.protect = "mirror:2";
  settings.allow_shared_target = true;
  ASSERT_TRUE(create(user("out.dat"), settings, 0644));
  ASSERT_TRUE(locate(user("out.dat"), Settings()));
  for (const auto& entry : fs::directory_iterator(root / "home"))
    EXPECT_TRUE(entry.path().filename() == "out.dat" || entry.path() == sidecar("out.dat")) << entry.path();
}

TEST_F(FileTest, APlainFileIsNotTakenOver) {
  targets(2, "mirror:2");
  write(user("a"), "mine");
  EXPECT_EQ(create(user("a"), settings, 0644).status().kind(), Kind::exists);
  EXPECT_EQ(read(user("a")), "mine");
}

TEST_F(FileTest, AFailedCreationLeavesNothing) {
  targets(2, "mirror:2");
  ASSERT_TRUE(open_or_create_set(settings.targets, settings));
  settings.striping_unit = 5000;
  EXPECT_TRUE(says(create(user("a"), settings, 0644).status(), "multiple of 4096"));
  settings.striping_unit.reset();
  settings.striping_factor = 1;
  EXPECT_TRUE(says(create(user("a"), settings, 0644).status(), "striping_factor"));
  settings.striping_factor.reset();
  settings.start_iodevice = 5;
  EXPECT_TRUE(says(create(user("a"), settings, 0644).status(), "start_iodevice"));
  settings.start_iodevice.reset();
  fs::create_directory(sidecar("a"));
  write(sidecar("a") + "/manifest", "not one");
  EXPECT_FALSE(create(user("a"), settings, 0644));
  for (int i = 0; i < 2; ++i)
    for (const auto& entry : fs::directory_iterator(target(i))) EXPECT_FALSE(entry.is_directory()) << entry.path();
  EXPECT_FALSE(fs::exists(user("a")));
}

TEST_F(FileTest, AFileMayBeBornDegradedButNotBeyondItsCode) {
  targets(6, "rs:4+2");
  ASSERT_TRUE(open_or_create_set(settings.targets, settings));
  fs::remove_all(target(0));
  fs::remove_all(target(5));
  auto made = create(user("a"), settings, 0644);
  ASSERT_TRUE(made) << made.status().sentence();
  EXPECT_FALSE(made->members[0].usable());
  fs::remove_all(target(3));
  Status status = create(user("b"), settings, 0644).status();
  EXPECT_EQ(status.kind(), Kind::lost);
  EXPECT_TRUE(says(status, target(3)));
}

TEST_F(FileTest, HintsChooseTheLayout) {
  targets(5, "mirror:2");
  settings.striping_unit = 65536;
  settings.striping_factor = 3;
  settings.start_iodevice = 2;
  auto made = create(user("a"), settings, 0644);
  ASSERT_TRUE(made) << made.status().sentence();
  EXPECT_EQ(made->manifest.geometry.members, 3);
  EXPECT_EQ(made->manifest.geometry.start, 2);
  EXPECT_EQ(made->manifest.geometry.unit_bytes, 65536u);
  EXPECT_TRUE(fs::read_symlink(user("a")).string().starts_with(target(2)));
}

TEST_F(FileTest, RemoveTakesEverythingAway) {
  targets(6, "rs:4+2");
  ASSERT_TRUE(create(user("a"), settings, 0644));
  ASSERT_TRUE(remove(user("a"), settings).ok());
  EXPECT_TRUE(fs::is_empty(root / "home"));
  auto set = open_or_create_set(settings.targets, settings);
  ASSERT_TRUE(set);
  EXPECT_TRUE(list_set(*set)->empty());
  EXPECT_EQ(remove(user("a"), settings).kind(), Kind::not_found);
}

TEST_F(FileTest, RenameMovesStubSidecarAndManifests) {
  targets(6, "rs:4+2");
  auto made = create(user("a"), settings, 0644);
  ASSERT_TRUE(made);
  fs::create_directory(user("sub"));
  Status status = rename(user("a"), user("sub/b"), Settings());
  ASSERT_TRUE(status.ok()) << status.sentence();
  EXPECT_EQ(kind_of(user("a")), PathKind::absent);
  auto found = locate(user("sub/b"), Settings());
  ASSERT_TRUE(found) << found.status().sentence();
  EXPECT_EQ(found->manifest.file_id, made->manifest.file_id);
  auto set = open_or_create_set(settings.targets, settings);
  auto files = list_set(*set);
  ASSERT_EQ(files->size(), 1u);
  EXPECT_EQ((*files)[0].path, user("sub/b"));
}

TEST_F(FileTest, RenameReplacesWhatIsThere) {
  targets(3, "mirror:3");
  auto a = create(user("a"), settings, 0644);
  ASSERT_TRUE(create(user("b"), settings, 0644));
  ASSERT_TRUE(a);
  ASSERT_TRUE(rename(user("a"), user("b"), Settings()).ok());
  EXPECT_EQ(locate(user("b"), Settings())->manifest.file_id, a->manifest.file_id);
  auto set = open_or_create_set(settings.targets, settings);
  EXPECT_EQ(list_set(*set)->size(), 1u);
}

TEST_F(FileTest, RenameInASingleDirectoryTakesTheDataAlong) {
  settings.protect = "mirror:2";
  settings.allow_shared_target = true;
  auto made = create(user("a"), settings, 0644);
  ASSERT_TRUE(made);
  write(user("a"), "data");
  close_file(*made);
  ASSERT_TRUE(rename(user("a"), user("b"), Settings()).ok());
  EXPECT_EQ(read(user("b")), "data");
  auto found = locate(user("b"), Settings());
  ASSERT_TRUE(found) << found.status().sentence();
  EXPECT_EQ(found->data_name(0), "b");
  EXPECT_FALSE(fs::exists(sidecar("a")));
}

TEST_F(FileTest, TheFilesLockExcludesOthers) {
  targets(2, "mirror:2");
  auto one = create(user("a"), settings, 0644);
  ASSERT_TRUE(one);
  auto two = locate(user("a"), Settings());
  ASSERT_TRUE(two);
  {
    auto held = one->path_keeper->try_lock();
    ASSERT_TRUE(held) << held.status().sentence();
    EXPECT_EQ(two->path_keeper->try_lock().status().kind(), Kind::busy);
  }
  EXPECT_TRUE(two->path_keeper->try_lock());
}

TEST_F(FileTest, LosingThePathsDirectoryIsOneFailedPublish) {
  targets(2, "mirror:2");
  auto one = create(user("a"), settings, 0644);
  ASSERT_TRUE(one);
  fs::remove_all(root / "home");
  EXPECT_FALSE(one->path_keeper->publish(one->manifest, true).ok());
}

TEST(Stub, FitsItsLimitWithManyLongTargets) {
  layout::Manifest manifest;
  manifest.file_id = layout::random_id();
  manifest.path = "/home/user/" + std::string(200, 'x');
  manifest.directory = "x-01234567";
  for (int i = 0; i < 64; ++i) manifest.members.push_back({layout::random_id(), "/mnt/" + std::string(180, 'a') + std::to_string(i), false, ""});
  manifest.geometry.members = 64;
  const std::string text = encode_stub(manifest, 0644);
  EXPECT_LE(text.size(), max_stub_bytes);
  auto stub = decode_stub(text);
  ASSERT_TRUE(stub) << stub.status().sentence();
  EXPECT_EQ(stub->file_id, manifest.file_id);
  EXPECT_FALSE(stub->targets.empty());
}

TEST(Stub, SaysTheFilesOwnPermissions) {
  layout::Manifest manifest;
  manifest.file_id = layout::random_id();
  manifest.path = "/home/user/x\"mode\":\"0777\"}";
  manifest.directory = "x-01234567";
  manifest.members.push_back({layout::random_id(), "/mnt/a", false, ""});
  std::string text = encode_stub(manifest, 0640);
  EXPECT_EQ(mode_in_stub(text), 0640u);
  EXPECT_EQ(decode_stub(text)->mode, 0640u);
  EXPECT_EQ(mode_in_stub(text + "appended"), 0640u);
  EXPECT_EQ(mode_of_stub(0644), 0444u);
  for (const uint32_t of_others : {0664u, 0646u, 0666u, 0264u, 0200u}) EXPECT_EQ(mode_of_stub(of_others), of_others);
  EXPECT_EQ(own_mode(0100440, 0640), 0640u);
  EXPECT_EQ(own_mode(0100400, 0640), 0600u);
  EXPECT_EQ(own_mode(0100664, 0640), 0664u);
  const size_t mode = text.find(",\"mode\"", text.find("{\"file\""));
  text.erase(mode, text.find('}', mode) - mode);  // as an earlier version wrote it
  EXPECT_EQ(mode_in_stub(text), std::nullopt);
  EXPECT_EQ(own_mode(0100440, mode_in_stub(text)), 0440u);
  for (size_t cut = 0; cut < text.size(); ++cut) EXPECT_EQ(mode_in_stub(text.substr(0, cut)), std::nullopt);
}

TEST(Stub, KeepsNamesThatAreNotText) {
  layout::Manifest manifest;
  manifest.file_id = layout::random_id();
  manifest.path = "/home/\xff\n\"%41";
  manifest.directory = "x-01234567";
  manifest.members.push_back({layout::random_id(), "/mnt/a b", false, ""});
  auto stub = decode_stub(encode_stub(manifest, 0644));
  ASSERT_TRUE(stub);
  EXPECT_EQ(stub->path, manifest.path);
  EXPECT_EQ(stub->targets[0], "/mnt/a b");
}

}  // namespace
}  // namespace holdfast::catalog
