// What the kernel is asked to keep when something in a directory has to be durable: content, and the directories that have its name. A process that
// may not flush anything says which files it was to flush.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <functional>
#include <set>

#include "target/directory.hpp"
#include "unit/target/directory_fixture.hpp"

namespace holdfast::target {
namespace {

// Of a child, which its parent sees.
struct Flushed {
  std::atomic<size_t> count{0};
  ino_t inodes[64] = {};
};
Flushed* flushed = nullptr;

void note_flush(int, siginfo_t*, void* context) {
#if defined(__x86_64__)
  auto* registers = static_cast<ucontext_t*>(context)->uc_mcontext.gregs;
  const int fd = int(registers[REG_RDI]);
  registers[REG_RAX] = 0;
#elif defined(__aarch64__)
  auto* registers = static_cast<ucontext_t*>(context)->uc_mcontext.regs;
  const int fd = int(registers[0]);
  registers[0] = 0;
#else
  const int fd = -1;
#endif
  struct stat found {};
  const size_t at = flushed->count++;
  if (fstat(fd, &found) == 0 && at < std::size(flushed->inodes)) flushed->inodes[at] = found.st_ino;
}

bool note_flushes() {
  struct sigaction action {};
  action.sa_sigaction = note_flush;
  action.sa_flags = SA_SIGINFO;
  sock_filter code[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)), BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_fsync, 1, 0),
                        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_fdatasync, 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP),
                        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  const sock_fprog program{std::size(code), code};
  return sigaction(SIGSYS, &action, nullptr) == 0 && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

class KeptNames : public testing::Test {
 protected:
  static void SetUpTestSuite() {
#if !defined(__x86_64__) && !defined(__aarch64__)
    GTEST_SKIP() << "where a system call has its arguments is not known here";
#endif
    void* shared = mmap(nullptr, sizeof(Flushed), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    flushed = new (shared) Flushed;
  }
  void SetUp() override {
    auto target = open_directory(place_.path()).value();
    ASSERT_TRUE(target->make_directory("d").ok() && target->put("d/before", Bytes(10), true).ok());
  }
  // In a process of its own, which has opened the target anew.
  void in_a_child(const std::function<Status(Target&)>& call) {
    flushed->count = 0;
    const pid_t child = fork();
    if (child == 0) {
      auto target = open_directory(place_.path()).value();
      if (!note_flushes()) _exit(77);
      _exit(call(*target).ok() ? 0 : 1);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77) GTEST_SKIP() << "no system call may be watched here";
    ASSERT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  }
  bool is_kept(const std::string& name) const {
    struct stat found {};
    EXPECT_EQ(stat((place_ / name).c_str(), &found), 0) << name;
    ino_t* const end = flushed->inodes + std::min(flushed->count.load(), std::size(flushed->inodes));
    return std::find(flushed->inodes, end, found.st_ino) != end;
  }
  void expect_kept(const std::vector<std::string>& names) const {
    for (const std::string& name : names) EXPECT_TRUE(is_kept(name)) << "nobody asked for " << (name.empty() ? "the target itself" : name);
  }
  static Status write_ten(Object& object) {
    Bytes bytes(10);
    const iovec from{bytes.data(), bytes.size()};
    return object.write(0, {&from, 1});
  }
  TemporaryDirectory place_;
};

TEST_F(KeptNames, of_what_is_put) {
  in_a_child([](Target& target) { return target.put("d/m", Bytes(10), true); });
  expect_kept({"d/m", "d", ""});
}

TEST_F(KeptNames, of_an_object_that_is_synced) {
  in_a_child([](Target& target) {
    auto object = target.open("d/o", OpenMode::create).value();
    HF_TRY(write_ten(*object));
    return object->sync();
  });
  expect_kept({"d/o", "d", ""});
}

TEST_F(KeptNames, of_objects_that_are_settled_together) {
  in_a_child([](Target& target) {
    std::vector<std::shared_ptr<Object>> objects;
    for (const char* name : {"d/o", "d/p"}) objects.push_back(target.open(name, OpenMode::create).value());
    for (const auto& object : objects) HF_TRY(write_ten(*object));
    return target.settle(objects, {}, true);
  });
  expect_kept({"d/o", "d/p", "d", ""});
}

TEST_F(KeptNames, of_what_is_moved) {
  in_a_child([](Target& target) { return target.move("d/before", "d/after"); });
  expect_kept({"d", ""});
}

TEST_F(KeptNames, of_what_is_linked) {
  in_a_child([](Target& target) { return target.link("d/before", "d/after"); });
  expect_kept({"d", ""});
}

// What is still in it goes only when nobody can take it for the whole any more.
TEST_F(KeptNames, but_not_of_a_directory_that_is_removed) {
  in_a_child([](Target& target) { return target.remove_directory("d"); });
  expect_kept({""});
}

}  // namespace
}  // namespace holdfast::target
