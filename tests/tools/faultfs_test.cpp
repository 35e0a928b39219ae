// Directory targets on a real mount that fails as storage does: what filters promise in memory holds with the kernel between.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <thread>

#include "target/directory.hpp"
#include "target/lane.hpp"
#include "unit/target/directory_fixture.hpp"

extern char** environ;

namespace holdfast::target {
namespace {

using namespace std::chrono_literals;
namespace fs = std::filesystem;

Status write(const std::shared_ptr<Object>& object, uint64_t offset, size_t count) {
  Bytes from(count, std::byte{1});
  const iovec one{from.data(), from.size()};
  return object->write(offset, std::span<const iovec>(&one, 1));
}

class OnFaultfs : public testing::Test {
 protected:
  explicit OnFaultfs(const fs::path& where = fs::temp_directory_path()) : root_(where) {}

  void SetUp() override {
    for (const char* name : {"backing", "mount"}) fs::create_directory(root_ / name);
    std::string backing = root_ / "backing", mount = root_ / "mount", control = root_ / "control";
    std::string program = FAULTFS, flag = "--control", foreground = "-f";
    char* arguments[] = {program.data(), backing.data(), mount.data(), flag.data(), control.data(), foreground.data(), nullptr};
    ASSERT_EQ(posix_spawn(&server_, program.c_str(), nullptr, nullptr, arguments, environ), 0);
    for (int i = 0; i < 500 && !mounted(); ++i) {
      if (waitpid(server_, nullptr, WNOHANG) == server_) {
        server_ = 0;
        GTEST_SKIP() << "faultfs cannot mount here";
      }
      std::this_thread::sleep_for(10ms);
    }
    ASSERT_TRUE(mounted());
    target_ = open_directory(mount).value();
  }

  void TearDown() override {
    target_.reset();
    if (server_ > 0) stop();
  }

  void stop() {
    order("");  // nothing may hang any more
    kill(server_, SIGTERM);
    for (int i = 0; i < 500; ++i) {
      if (waitpid(server_, nullptr, WNOHANG) == server_) {
        server_ = 0;
        return;
      }
      std::this_thread::sleep_for(10ms);
    }
    kill(server_, SIGKILL);
    waitpid(server_, nullptr, 0);
    umount2((root_ / "mount").c_str(), MNT_DETACH);
    server_ = 0;
    ADD_FAILURE() << "faultfs did not end";
  }

  bool mounted() {
    struct stat above, here;
    return stat(root_.path().c_str(), &above) == 0 && stat((root_ / "mount").c_str(), &here) == 0 && above.st_dev != here.st_dev;
  }

  void order(const std::string& rules) {
    std::ofstream(root_ / "control.new") << rules << "\n";
    fs::rename(root_ / "control.new", root_ / "control");
  }
  std::shared_ptr<Object> object(const std::string& name) { return target_->open(name, OpenMode::create).value(); }

  // A child process is left with a call that its target holds: it ends all the same, and nobody keeps its output open.
  void expect_an_end_under(const char* rule) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    GTEST_SKIP() << "under sanitizers companions are threads";
#endif
    auto o = object("o");
    order(rule);
    int output[2];
    ASSERT_EQ(pipe(output), 0);
    fflush(nullptr);  // or the child says again what is still waiting to be said here
    const pid_t child = fork();
    if (child == 0) {
      dup2(output[1], STDOUT_FILENO);
      close(output[0]);
      close(output[1]);
      auto lane = make_companion_lane("t", 200ms);
      const bool in_time = lane->run([o] { return write(o, 0, 10); }).kind() == Kind::timed_out;
      printf("%s", in_time ? "last words" : "late");
      exit(in_time ? 0 : 1);  // with all that a program does at its end
    }
    close(output[1]);
    int status = -1;
    for (int i = 0; i < 500 && waitpid(child, &status, WNOHANG) != child; ++i) std::this_thread::sleep_for(10ms);
    EXPECT_EQ(status, 0) << rule;
    ASSERT_EQ(fcntl(output[0], F_SETFL, O_NONBLOCK), 0);
    char said[64] = "";
    EXPECT_EQ(read(output[0], said, sizeof said), 10) << rule;
    EXPECT_STREQ(said, "last words");
    EXPECT_EQ(read(output[0], said, sizeof said), 0) << rule << ": somebody still holds the pipe";
    close(output[0]);
    order("");
    if (status == -1) waitpid(child, &status, 0);
  }

  TemporaryDirectory root_;
  pid_t server_ = 0;
  std::shared_ptr<Target> target_;
};

class OnFaultfsBelowDev : public OnFaultfs {
 protected:
  OnFaultfsBelowDev() : OnFaultfs("/dev/shm") {}
};

TEST_F(OnFaultfs, without_orders_it_is_a_directory_like_any_other) {
  ASSERT_TRUE(target_->make_directory("d").ok());
  auto o = object("d/o");
  EXPECT_TRUE(write(o, 5, 3 << 20).ok());
  EXPECT_TRUE(o->sync().ok());
  EXPECT_TRUE(o->still_there().ok());
  EXPECT_EQ(o->size().value(), 5u + (3 << 20));
  EXPECT_TRUE(target_->put("m", Bytes(100), true).ok());
  EXPECT_EQ(target_->get("m", 100).value(), Bytes(100));
  EXPECT_EQ(target_->list("").value(), (std::vector<std::string>{"d", "m"}));
  auto lock = target_->try_lock("lock");
  EXPECT_TRUE(lock.ok());
  EXPECT_EQ(target_->try_lock("lock").status().kind(), Kind::busy);
  EXPECT_TRUE(target_->remove_directory("d").ok());
  EXPECT_EQ(o->still_there().kind(), Kind::lost);
  EXPECT_TRUE(target_->check_identity().ok());
}

TEST_F(OnFaultfs, errors_arrive_with_their_errno) {
  auto o = object("o");
  order("write errno ENOSPC\nfsync errno ENOTCONN\nopen errno ESTALE\nstatfs errno EIO");
  EXPECT_EQ(write(o, 0, 10).kind(), Kind::no_space);
  EXPECT_EQ(o->sync().sys_errno(), ENOTCONN);
  EXPECT_EQ(target_->open("o", OpenMode::read).status().sys_errno(), ESTALE);
  EXPECT_FALSE(target_->space().ok());
  order("");
  EXPECT_TRUE(write(o, 0, 10).ok());
  order("write errno EIO after=1 count=1");
  EXPECT_TRUE(write(o, 0, 10).ok());
  EXPECT_FALSE(write(o, 0, 10).ok());
  EXPECT_TRUE(write(o, 0, 10).ok());
}

TEST_F(OnFaultfs, a_put_that_fails_leaves_the_old_object_whole) {
  ASSERT_TRUE(target_->put("m", Bytes(10), true).ok());
  for (const char* call : {"create", "write", "fsync", "rename"}) {
    order(std::string(call) + " errno EIO");
    EXPECT_FALSE(target_->put("m", Bytes(20), true).ok()) << call;
    order("");
    EXPECT_EQ(target_->get("m", 100).value(), Bytes(10)) << call;
    EXPECT_EQ(std::distance(fs::directory_iterator(root_ / "backing"), {}), 1) << call;
  }
}

TEST_F(OnFaultfs, a_hung_write_is_set_aside_after_its_deadline_and_readmitted_when_it_ended) {
  auto lane = make_companion_lane(target_->describe(), 200ms);
  auto o = object("o");
  order("write hang");
  EXPECT_EQ(lane->run([o] { return write(o, 0, 10); }).kind(), Kind::timed_out);
  EXPECT_FALSE(lane->readmit());
  order("");
  for (int i = 0; i < 500 && !lane->readmit(); ++i) std::this_thread::sleep_for(10ms);
  EXPECT_TRUE(lane->run([o] { return write(o, 0, 10); }).ok());
}

TEST_F(OnFaultfs, closing_an_object_of_a_hung_target_delays_nobody) {
  auto lane = make_companion_lane(target_->describe(), 200ms);
  auto o = object("o");
  order("close hang");
  const auto begin = std::chrono::steady_clock::now();
  lane->let_go(std::move(o));
  EXPECT_TRUE(lane->set_aside());
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 5s);
}

// stuck: the kernel cannot kill the call, as with a server that took it and never answers.
TEST_F(OnFaultfs, a_process_with_a_hung_call_still_ends_and_closes_its_output) {
  for (const char* rule : {"write hang", "write stuck"}) expect_an_end_under(rule);
}

// Its descriptors look like those of terminals to whoever goes by their names.
TEST_F(OnFaultfsBelowDev, a_process_with_a_hung_call_still_ends_and_closes_its_output) {
  for (const char* rule : {"write hang", "write stuck", "any stuck"}) expect_an_end_under(rule);
}

TEST_F(OnFaultfs, writes_that_are_accepted_and_lost_are_told_at_sync) {
  auto o = object("o");
  order("write lose");
  EXPECT_TRUE(write(o, 0, 10).ok());
  EXPECT_FALSE(o->sync().ok());
}

TEST_F(OnFaultfs, short_writes_are_continued_and_then_reported) {
  auto o = object("o");
  order("write short count=1");
  EXPECT_TRUE(write(o, 0, 1000).ok());
  EXPECT_EQ(o->size().value(), 1000u);
  order("write short");
  EXPECT_EQ(write(o, 0, 1000).kind(), Kind::no_space);
}

TEST_F(OnFaultfs, a_write_cut_inside_of_a_vector_goes_on_where_it_was_cut_and_leaves_the_callers_vectors_alone) {
  auto o = object("o");
  Bytes from(3000);
  for (size_t i = 0; i < from.size(); ++i) from[i] = std::byte(i * 7 + i / 256);
  const std::vector<iovec> given = {{nullptr, 0}, {&from[0], 1000}, {&from[1000], 900}, {nullptr, 0}, {&from[1900], 1100}};
  std::vector<iovec> vectors = given;
  order("write short count=2");  // after 1500 bytes, then after 750 of those that were left
  ASSERT_TRUE(o->write(0, vectors).ok());
  EXPECT_EQ(target_->get("o", 4000).value(), from);
  for (size_t i = 0; i < given.size(); ++i) {
    EXPECT_EQ(vectors[i].iov_base, given[i].iov_base);
    EXPECT_EQ(vectors[i].iov_len, given[i].iov_len);
  }
}

TEST_F(OnFaultfs, a_turned_bit_is_read_without_an_error) {
  ASSERT_TRUE(target_->put("m", Bytes(10), true).ok());
  order("read flip 17");
  Bytes expected(10);
  expected[2] = std::byte{2};
  EXPECT_EQ(target_->get("m", 10).value(), expected);
}

TEST_F(OnFaultfs, a_rate_holds_for_reads_and_writes) {
  auto o = object("o");
  order("rate 20");
  auto begin = std::chrono::steady_clock::now();
  EXPECT_TRUE(write(o, 0, 2000000).ok());
  EXPECT_GE(std::chrono::steady_clock::now() - begin, 95ms);
}

TEST_F(OnFaultfs, a_server_that_dies_is_a_lost_target_and_nothing_lands_below_its_mount) {
  auto o = object("o");
  kill(server_, SIGKILL);
  waitpid(server_, nullptr, 0);
  server_ = 0;
  EXPECT_FALSE(write(o, 0, 10).ok());
  EXPECT_EQ(target_->check_identity().kind(), Kind::lost);
  ASSERT_EQ(umount2((root_ / "mount").c_str(), MNT_DETACH), 0);
  EXPECT_EQ(target_->check_identity().kind(), Kind::lost);
  EXPECT_FALSE(target_->put("m", Bytes(10), true).ok());
  EXPECT_TRUE(fs::is_empty(root_ / "mount"));
}

}  // namespace
}  // namespace holdfast::target
