#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/magic.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>

#include "target/directory.hpp"
#include "unit/target/directory_fixture.hpp"

namespace holdfast::target::directory_tests {
namespace {

namespace fs = std::filesystem;

Status write(Object& object, uint64_t offset, size_t count) {
  Bytes from(count, std::byte{1});
  iovec one{from.data(), from.size()};
  return object.write(offset, std::span<const iovec>(&one, 1));
}

class Directory : public testing::TestWithParam<bool> {
 protected:
  std::shared_ptr<Target> open(const std::string& path) {
    DirectoryOptions options;
    options.without_openat2 = GetParam();
    return open_directory(path, options).value();
  }
  TemporaryDirectory outside_, directory_;
  std::shared_ptr<Target> target_ = open(directory_.path());
};
INSTANTIATE_TEST_SUITE_P(Resolution, Directory, testing::Values(false, true), [](const auto& info) { return info.param ? "walked" : "openat2"; });

TEST_P(Directory, a_path_that_is_no_directory_is_refused_with_its_name) {
  auto none = open_directory(directory_ / "none");
  EXPECT_EQ(none.status().kind(), Kind::not_found);
  EXPECT_NE(none.status().sentence().find(directory_ / "none"), std::string::npos);
  std::ofstream(directory_ / "file") << "x";
  EXPECT_FALSE(open_directory(directory_ / "file").ok());
  EXPECT_FALSE(open_directory("").ok());
}

TEST_P(Directory, symbolic_links_inside_are_never_followed) {
  std::ofstream(outside_ / "secret") << "secret";
  fs::create_directory(directory_ / "sub");
  fs::create_symlink(outside_ / "secret", directory_ / "link");
  fs::create_symlink(outside_.path(), directory_ / "way");
  fs::create_symlink("sub", directory_ / "near");
  for (const char* name : {"link", "way/secret", "near/secret"}) {
    EXPECT_EQ(target_->open(name, OpenMode::read).status().kind(), Kind::invalid) << name;
    EXPECT_EQ(target_->open(name, OpenMode::create).status().kind(), Kind::invalid) << name;
    EXPECT_EQ(target_->get(name, 100).status().kind(), Kind::invalid) << name;
    EXPECT_EQ(target_->try_lock(name).status().kind(), Kind::invalid) << name;
  }
  EXPECT_EQ(target_->put("way/new", {}, true).kind(), Kind::invalid);
  EXPECT_EQ(target_->make_directory("way/new").kind(), Kind::invalid);
  EXPECT_EQ(target_->remove("way/secret").kind(), Kind::invalid);
  EXPECT_EQ(target_->remove_directory("way/sub").kind(), Kind::invalid);
  EXPECT_EQ(target_->list("way").status().kind(), Kind::invalid);
  EXPECT_FALSE(target_->make_directory("way").ok()) << "a link is not the directory asked for";
  EXPECT_FALSE(target_->remove_directory("way").ok());
  EXPECT_FALSE(fs::exists(outside_ / "new"));

  // Replacing or removing the link itself is the link's end, not its goal's.
  EXPECT_TRUE(target_->put("link", {}, true).ok());
  EXPECT_TRUE(target_->remove("way").ok());
  std::ifstream in(outside_ / "secret");
  std::string content;
  in >> content;
  EXPECT_EQ(content, "secret");
}

TEST_P(Directory, removing_a_directory_removes_links_in_it_and_not_what_they_lead_to) {
  std::ofstream(outside_ / "kept") << "x";
  fs::create_directory(directory_ / "d");
  fs::create_symlink(outside_.path(), directory_ / "d/way");
  EXPECT_TRUE(target_->remove_directory("d").ok());
  EXPECT_FALSE(fs::exists(directory_ / "d"));
  EXPECT_TRUE(fs::exists(outside_ / "kept"));
}

TEST_P(Directory, what_is_in_memory_is_read_without_waiting_and_nothing_else_is_made_up) {
  auto object = target_->open("object", OpenMode::create);
  ASSERT_TRUE(object.ok());
  const std::string text = "what was just written lies in memory";
  const iovec from{const_cast<char*>(text.data()), text.size()};
  ASSERT_TRUE((*object)->write(0, std::span<const iovec>(&from, 1)).ok());
  std::string seen(text.size() + 10, '?');
  const iovec into{seen.data(), seen.size()};
  const size_t got = (*object)->read_cached(0, std::span<const iovec>(&into, 1));
  // A file system that cannot tell gives nothing; tmpfs is memory and always gives.
  struct statfs found;
  ASSERT_EQ(statfs(directory_.path().c_str(), &found), 0);
  if (got != 0 || found.f_type == TMPFS_MAGIC) {
    EXPECT_EQ(seen.substr(0, got), text);
  }
  EXPECT_EQ((*object)->read_cached(text.size(), std::span<const iovec>(&into, 1)), 0u);
}

TEST_P(Directory, a_fifo_in_an_objects_place_neither_hangs_nor_opens) {
  ASSERT_EQ(mkfifo((directory_ / "fifo").c_str(), 0600), 0);
  EXPECT_FALSE(target_->open("fifo", OpenMode::read).ok());
  EXPECT_FALSE(target_->open("fifo", OpenMode::create).ok());
  EXPECT_FALSE(target_->get("fifo", 10).ok());
}

TEST_P(Directory, new_objects_get_what_the_umask_leaves_and_no_more) {
  const mode_t before = umask(027);
  EXPECT_TRUE(target_->put("put", {}, false).ok());
  EXPECT_TRUE(target_->open("opened", OpenMode::create).ok());
  EXPECT_TRUE(target_->make_directory("made").ok());
  DirectoryOptions options;
  options.mode = 0604;
  auto narrow = open_directory(directory_.path(), options).value();
  EXPECT_TRUE(narrow->put("narrow", {}, false).ok());
  EXPECT_TRUE(narrow->make_directory("narrow_made").ok());
  umask(before);
  auto mode_of = [&](const char* name) {
    struct stat found {};
    stat((directory_ / name).c_str(), &found);
    return found.st_mode & 07777;
  };
  EXPECT_EQ(mode_of("put"), 0640u);
  EXPECT_EQ(mode_of("opened"), 0640u);
  EXPECT_EQ(mode_of("made"), 0750u);
  EXPECT_EQ(mode_of("narrow"), 0600u);
  EXPECT_EQ(mode_of("narrow_made"), 0700u);
}

TEST_P(Directory, a_directory_that_was_replaced_or_removed_is_lost_and_what_stands_there_now_is_left_alone) {
  const std::string path = directory_ / "t";
  fs::create_directory(path);
  auto target = open(path);
  EXPECT_TRUE(target->check_identity().ok());
  fs::rename(path, directory_ / "moved");
  EXPECT_EQ(target->check_identity().kind(), Kind::lost);
  fs::create_directory(path);
  EXPECT_EQ(target->check_identity().kind(), Kind::lost);
  EXPECT_TRUE(target->put("m", {}, true).ok());
  EXPECT_TRUE(fs::is_empty(path)) << "writes go to the directory that was opened";
  EXPECT_TRUE(fs::exists(directory_ / "moved/m"));
  fs::remove(path);
  fs::rename(directory_ / "moved", path);
  EXPECT_TRUE(target->check_identity().ok()) << "it came back";
}

TEST_P(Directory, an_unmounted_mount_is_lost_and_nothing_lands_below_it) {
  const std::string path = directory_ / "mount";
  fs::create_directory(path);
  if (mount("none", path.c_str(), "tmpfs", 0, "size=1m") != 0) GTEST_SKIP() << "needs the right to mount";
  auto target = open(path);
  auto object = target->open("o", OpenMode::create).value();
  EXPECT_TRUE(target->check_identity().ok());
  ASSERT_EQ(umount2(path.c_str(), MNT_DETACH), 0);
  EXPECT_EQ(target->check_identity().kind(), Kind::lost);
  (void)target->put("m", {}, false);
  (void)write(*object, 0, 10);
  EXPECT_TRUE(fs::is_empty(path));
}

TEST_P(Directory, a_full_target_says_so_after_a_short_write) {
  const std::string path = directory_ / "small";
  fs::create_directory(path);
  if (mount("none", path.c_str(), "tmpfs", 0, "size=256k") != 0) GTEST_SKIP() << "needs the right to mount";
  {
    auto target = open(path);
    auto object = target->open("o", OpenMode::create).value();
    EXPECT_EQ(write(*object, 0, 1 << 20).kind(), Kind::no_space);
    EXPECT_EQ(target->put("m", Bytes(1 << 20), true).kind(), Kind::no_space);
    EXPECT_EQ(target->list("").value(), std::vector<std::string>{"o"});
    EXPECT_EQ(std::distance(fs::directory_iterator(path), {}), 1) << "a put that failed leaves no temporary";
  }
  ASSERT_EQ(umount(path.c_str()), 0);
}

TEST_P(Directory, a_read_only_target_reads_and_refuses_to_write) {
  const std::string path = directory_ / "ro";
  fs::create_directory(path);
  if (mount("none", path.c_str(), "tmpfs", 0, "size=256k") != 0) GTEST_SKIP() << "needs the right to mount";
  {
    auto target = open(path);
    EXPECT_TRUE(target->put("m", Bytes(10), true).ok());
    ASSERT_EQ(mount("none", path.c_str(), nullptr, MS_REMOUNT | MS_RDONLY, nullptr), 0);
    EXPECT_EQ(target->get("m", 10).value(), Bytes(10));
    EXPECT_EQ(target->put("m", Bytes(10), true).kind(), Kind::read_only);
    EXPECT_EQ(target->open("m", OpenMode::write).status().kind(), Kind::read_only);
    EXPECT_EQ(target->make_directory("d").kind(), Kind::read_only);
  }
  ASSERT_EQ(umount(path.c_str()), 0);
}

TEST_P(Directory, the_path_stays_the_same_directory_after_a_chdir) {
  fs::create_directory(directory_ / "t");
  const fs::path before = fs::current_path();
  fs::current_path(directory_.path());
  auto target = open("t/");
  fs::current_path(outside_.path());
  EXPECT_TRUE(target->check_identity().ok());
  EXPECT_EQ(target->describe(), fs::canonical(directory_.path()).string() + "/t");
  fs::current_path(before);
}

// Runs `body` in a forked child and gives its exit code.
int in_child(const std::function<int()>& body) {
  pid_t pid = fork();
  if (pid == 0) {
    alarm(20);
    _exit(body());
  }
  int status = -1;
  waitpid(pid, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST_P(Directory, a_lock_excludes_other_processes_and_goes_with_the_process_that_dies) {
  int pipe_fds[2];
  ASSERT_EQ(pipe(pipe_fds), 0);
  pid_t holder = fork();
  if (holder == 0) {
    alarm(20);
    auto held = open(directory_.path())->try_lock("lock");
    char told = held.ok() ? 'y' : 'n';
    (void)!::write(pipe_fds[1], &told, 1);
    pause();
    _exit(0);
  }
  char told = 0;
  ASSERT_EQ(::read(pipe_fds[0], &told, 1), 1);
  EXPECT_EQ(told, 'y');
  EXPECT_EQ(target_->try_lock("lock").status().kind(), Kind::busy);
  kill(holder, SIGKILL);
  waitpid(holder, nullptr, 0);
  EXPECT_TRUE(target_->try_lock("lock").ok());
  ::close(pipe_fds[0]);
  ::close(pipe_fds[1]);
}

TEST_P(Directory, a_forked_child_that_ends_does_not_release_its_parents_lock) {
  auto held = target_->try_lock("lock");
  ASSERT_TRUE(held.ok());
  EXPECT_EQ(in_child([&] { return held->reset(), 0; }), 0);
  EXPECT_EQ(target_->try_lock("lock").status().kind(), Kind::busy);
}

TEST_P(Directory, a_lock_whose_object_was_removed_is_not_shared_by_two) {
  auto held = target_->try_lock("lock");
  ASSERT_TRUE(held.ok());
  ASSERT_TRUE(target_->remove("lock").ok());
  auto second = target_->try_lock("lock");
  ASSERT_TRUE(second.ok()) << "the old one is on an object that nobody can find any more";
  EXPECT_EQ(open(directory_.path())->try_lock("lock").status().kind(), Kind::busy);
}

TEST_P(Directory, descriptors_are_not_inherited_and_not_leaked) {
  auto count = [] { return std::distance(fs::directory_iterator("/proc/self/fd"), {}); };
  const auto before = count();
  {
    auto target = open(directory_.path());
    ASSERT_TRUE(target->make_directory("d").ok());
    auto object = target->open("d/o", OpenMode::create).value();
    auto lock = target->try_lock("lock");
    for (const auto& entry : fs::directory_iterator("/proc/self/fd")) {
      int fd = std::stoi(entry.path().filename());
      std::error_code ignored;
      if (fs::read_symlink(entry.path(), ignored).string().starts_with(directory_.path())) {
        EXPECT_TRUE(fcntl(fd, F_GETFD) & FD_CLOEXEC);
      }
    }
    for (int i = 0; i < 20; ++i) {
      (void)target->put("d/m", Bytes(10), true);
      (void)target->get("d/m", 10);
      (void)target->get("d/none", 10);
      (void)target->list("d");
      (void)object->still_there();
      (void)object->sync();
      (void)target->remove("d/m");
      (void)target->remove_directory("d/none");
      (void)target->try_lock("lock");
    }
  }
  EXPECT_EQ(count(), before);
}

TEST_P(Directory, writes_that_the_system_cuts_short_are_continued) {
  // A file size limit in the middle of the write: the system first writes short, then fails.
  EXPECT_EQ(in_child([&] {
              signal(SIGXFSZ, SIG_IGN);
              rlimit limit{100000, 100000};
              setrlimit(RLIMIT_FSIZE, &limit);
              auto object = target_->open("o", OpenMode::create).value();
              Status status = write(*object, 0, 200000);
              return status.sys_errno() == EFBIG && object->size().value() == 100000 ? 0 : 1;
            }),
            0);
}

}  // namespace
}  // namespace holdfast::target::directory_tests
