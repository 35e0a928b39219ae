// The one policy: what it makes of an open, by what stands at the path, how it is opened, and by which way the program comes.
#include "tree/decide.hpp"

#include <gtest/gtest.h>

#include "unit/catalog/scene.hpp"

namespace holdfast::tree {
namespace {

namespace fs = std::filesystem;
using catalog::PathKind;

class Decide : public catalog::Scene {
 protected:
  Decide() {
    targets(2, "mirror:2");
    settings.path_globs = {"*.dat"};
  }
  Decision by(const Scope& scope, const std::string& name, const Standing& there, const Opening& opening) const {
    return decide(user(name), there, opening, settings, scope);
  }
  // The same by both ways.
  Way both(const std::string& name, const Standing& there, const Opening& opening) const {
    const Way way = by(mpi_io, name, there, opening).way;
    EXPECT_EQ(way, by(plain_calls, name, there, opening).way);
    return way;
  }
};

constexpr Opening read_only{}, write_only{.writes = true}, create{.writes = true, .creates = true},
    create_first{.writes = true, .creates = true, .exclusive = true};

TEST_F(Decide, a_file_that_a_glob_names_is_protected_when_it_is_made) {
  EXPECT_EQ(both("out.dat", {PathKind::absent}, create), Way::make);
  EXPECT_EQ(both("out.dat", {PathKind::absent}, create_first), Way::make);
  EXPECT_EQ(both("out.txt", {PathKind::absent}, create), Way::as_without);
  EXPECT_EQ(both("out.dat", {PathKind::absent}, write_only), Way::as_without);
}

TEST_F(Decide, a_name_that_was_asked_for_already_is_not_asked_for_again) {
  const auto named = [&](const Standing& there, const Opening& opening) {
    return decide_named(user("out.txt"), there, opening, settings, plain_calls);
  };
  EXPECT_EQ(named({PathKind::empty}, write_only).way, Way::make);
  EXPECT_EQ(named({PathKind::empty}, read_only).way, Way::as_without);
  EXPECT_NE(named({PathKind::plain}, write_only).remark, "");
}

TEST_F(Decide, an_empty_file_is_protected_when_it_is_opened_to_write) {
  EXPECT_EQ(both("out.dat", {PathKind::empty}, write_only), Way::make);
  EXPECT_EQ(both("out.dat", {PathKind::empty}, read_only), Way::as_without);
  EXPECT_EQ(both("out.dat", {PathKind::empty}, create_first), Way::as_without);
}

TEST_F(Decide, a_file_that_others_could_not_follow_stays_plain) {
  const Decision linked = by(plain_calls, "out.dat", {.kind = PathKind::empty, .has_second_names = true}, write_only);
  EXPECT_EQ(linked.way, Way::as_without);
  EXPECT_EQ(linked.remark, "");
  const Decision mapped = by(plain_calls, "out.dat", {.kind = PathKind::empty, .is_mapped = true}, write_only);
  EXPECT_EQ(mapped.way, Way::as_without);
  EXPECT_NE(mapped.remark.find("stays plain"), std::string::npos);
  EXPECT_EQ(by(plain_calls, "out.txt", {.kind = PathKind::empty, .is_mapped = true}, write_only).remark, "");
}

TEST_F(Decide, what_holds_something_stays_as_it_is_and_is_remarked_on) {
  const Decision decision = by(mpi_io, "out.dat", {PathKind::plain}, create);
  EXPECT_EQ(decision.way, Way::as_without);
  EXPECT_EQ(decision.remark, "exists and is not protected, and stays so; to protect it run: holdfast import " + user("out.dat") + " NEW");
  for (const Opening& opening : {read_only, create_first}) EXPECT_EQ(by(plain_calls, "out.dat", {PathKind::plain}, opening).remark, "");
  EXPECT_EQ(by(plain_calls, "out.txt", {PathKind::plain}, create).remark, "");
}

TEST_F(Decide, what_is_no_file_is_left_alone) { EXPECT_EQ(both("out.dat", {PathKind::other}, create), Way::as_without); }

TEST_F(Decide, a_protected_file_is_one_whatever_the_policy_says) {
  ASSERT_TRUE(catalog::create(user("out.txt"), settings, 0644).ok());
  for (const Opening& opening : {read_only, write_only, create}) EXPECT_EQ(both("out.txt", {PathKind::protected_file}, opening), Way::find);
  settings.protect.reset();
  EXPECT_EQ(both("out.txt", {PathKind::protected_file}, create), Way::find);
  const Decision first = by(plain_calls, "out.txt", {PathKind::protected_file}, create_first);
  EXPECT_EQ(first.way, Way::refuse);
  EXPECT_EQ(first.refusal.to_errno(), EEXIST);
  EXPECT_EQ(first.refusal.sentence(), "");
}

TEST_F(Decide, what_a_power_cut_has_left_of_a_creation_is_made_anew) {
  fs::create_directory(sidecar("out.dat"));
  write(sidecar("out.dat") + "/manifest", "");
  write(user("out.dat"), "");
  ASSERT_TRUE(catalog::is_torn_creation(user("out.dat")));
  EXPECT_EQ(both("out.dat", {PathKind::protected_file}, create), Way::make);
  EXPECT_EQ(both("out.dat", {PathKind::protected_file}, write_only), Way::find);
  // Where the ways differ.
  EXPECT_EQ(by(mpi_io, "out.dat", {PathKind::protected_file}, create_first).way, Way::make);
  EXPECT_EQ(by(plain_calls, "out.dat", {PathKind::protected_file}, create_first).way, Way::refuse);
}

TEST_F(Decide, without_a_glob_mpi_means_every_file_and_plain_calls_none) {
  settings.path_globs.clear();
  EXPECT_EQ(by(mpi_io, "out.txt", {PathKind::absent}, create).way, Way::make);
  EXPECT_EQ(by(plain_calls, "out.txt", {PathKind::absent}, create).way, Way::as_without);
}

TEST_F(Decide, contradictions_refuse_what_is_made_through_mpi) {
  settings.contradiction = "replication_factor and protect differ";
  const Decision decision = by(mpi_io, "out.dat", {PathKind::absent}, create);
  EXPECT_EQ(decision.way, Way::refuse);
  EXPECT_EQ(decision.refusal.sentence(), settings.contradiction);
  EXPECT_EQ(by(plain_calls, "out.dat", {PathKind::absent}, create).way, Way::make);
  EXPECT_EQ(both("out.txt", {PathKind::absent}, create), Way::as_without);
}

TEST_F(Decide, files_of_the_system_are_none_of_a_programs_plain_ones) {
  settings.path_globs = {"*"};
  for (const char* path : {"/dev/shm/out", "/dev/sda", "/proc/1/mem", "/sys/x"}) {
    EXPECT_FALSE(is_named(settings, path, plain_calls)) << path;
    EXPECT_TRUE(is_named(settings, path, mpi_io)) << path;
  }
  EXPECT_TRUE(is_named(settings, "/dev/shm/run/out", plain_calls));
}

TEST_F(Decide, plain_calls_go_by_where_the_directories_of_a_path_lead) {
  fs::create_directory_symlink(root / "home", root / "link");
  settings.path_globs = {user("*")};
  EXPECT_TRUE(is_named(settings, root / "link/out.dat", plain_calls));
  EXPECT_FALSE(is_named(settings, root / "link/out.dat", mpi_io));
  settings.path_globs = {(root / "link/*").string()};
  EXPECT_FALSE(is_named(settings, root / "link/out.dat", plain_calls));
  EXPECT_TRUE(is_named(settings, root / "link/out.dat", mpi_io));
}

TEST_F(Decide, a_glob_is_held_against_the_name_that_directories_lead_to) {
  fs::create_directories(root / "home/in.dat");
  fs::create_directory_symlink(root / "home/in.dat", root / "link");
  settings.path_globs = {"*.dat"};
  for (const std::string path : {"home/in.dat/", "home/x/../in.dat"}) EXPECT_TRUE(is_named(settings, root / path, plain_calls)) << path;
  EXPECT_TRUE(is_named(settings, root / "link/x.dat", plain_calls));
  EXPECT_FALSE(is_named(settings, root / "link/x.txt", plain_calls));
  for (const char* glob : {"/in.dat/*", "/in.da?/x.t[xy]t", "/in.*/x*", "/*", "/in.dat/x.txt", "/in.dat/x.tx[a-z]"}) {
    settings.path_globs = {(root / "home").string() + glob};
    EXPECT_TRUE(is_named(settings, root / "link/x.txt", plain_calls)) << glob;
  }
  for (const char* glob : {"/in.dat/*.tar", "/other/*.txt", "/in.dat/y.txt", "/in.dat/[yz].txt"}) {
    settings.path_globs = {(root / "home").string() + glob};
    EXPECT_FALSE(is_named(settings, root / "link/x.txt", plain_calls)) << glob;
  }
}

TEST_F(Decide, only_plain_calls_heed_mounts) {
  settings.mounts = "shared";
  settings.local_mounts = {root};
  EXPECT_FALSE(is_named(settings, user("out.dat"), plain_calls));
  EXPECT_TRUE(is_named(settings, user("out.dat"), mpi_io));
  settings.mounts = "local";
  EXPECT_TRUE(is_named(settings, user("out.dat"), plain_calls));
}

TEST_F(Decide, buffers_and_stripes_of_plain_files_are_for_jobs_that_protect_none) {
  settings.buffers = 4;
  settings.striping_factor = 8;
  settings.start_iodevice = 3;
  EXPECT_FALSE(is_buffered(settings, user("out.dat"), plain_calls));
  EXPECT_FALSE(stripes_of_plain(settings, user("out.dat"), plain_calls));
  settings.protect = "none";
  EXPECT_TRUE(is_buffered(settings, user("out.dat"), plain_calls));
  EXPECT_FALSE(is_buffered(settings, user("out.txt"), plain_calls));
  EXPECT_EQ(stripes_of_plain(settings, user("out.dat"), plain_calls), (target::StripeWish{0, 8, 3}));
  EXPECT_FALSE(stripes_of_plain(settings, user("out.txt"), plain_calls));
  settings.striping_factor.reset();
  EXPECT_FALSE(stripes_of_plain(settings, user("out.dat"), plain_calls));
}

}  // namespace
}  // namespace holdfast::tree
