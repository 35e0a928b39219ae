// On an agent's own node its directory is used by descriptor: no byte goes through the agent, and what others do through it is kept out by the same
// locks.
#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/un.h>

#include <cstring>
#include <filesystem>

#include "base/meter.hpp"
#include "target/agent_link.hpp"
#include "target/agent_near.hpp"
#include "unit/agent/agent_fixture.hpp"

namespace holdfast::agent {
namespace {

class AgentOfThisNode : public AgentOverSockets {
 protected:
  AgentOfThisNode() { reach_ = transport::Reach::network; }
  // As a process of another node has it.
  std::shared_ptr<target::Target> open_from_afar() {
    const auto secret = *target::read_secret(home_.path() + "/agents");
    auto channel = target::begin_session(target::line_to(note().endpoints, target::agent_agreement(secret, note().id), 5000));
    EXPECT_TRUE(channel.ok()) << channel.status().sentence();
    return *target::attach_to_agent(*channel, directory_.path(), address(), 0600);
  }
  uint64_t requests() { return ask(home_.path() + "/agents", note())->requests; }
};

// The agent is stopped meanwhile: whatever it had to answer would not come back.
TEST_F(AgentOfThisNode, no_byte_goes_through_it) {
  const auto target = open();
  EXPECT_EQ(target->describe(), address());
  kill(agent_, SIGSTOP);
  Meter meter;
  {
    const MeterScope measured(&meter);
    const auto object = *target->open("o", OpenMode::create);
    const std::string all(3 << 20, 'x');
    ASSERT_TRUE(write(*object, 0, all).ok());
    EXPECT_EQ(read(*object, 0, all.size()), all);
    ASSERT_TRUE(target->put("small", Bytes(100), true).ok());
    EXPECT_EQ(target->get("small", 1000).value().size(), 100u);
    EXPECT_TRUE(target->settle(std::vector{object}, {}, true).ok());
    EXPECT_TRUE(target->check_identity().ok());
    const auto lock = target->try_lock("lock");
    EXPECT_TRUE(lock.ok());
  }
  EXPECT_GE(meter.write_bytes, 3u << 20);
  EXPECT_GE(meter.read_bytes, 3u << 20);
  kill(agent_, SIGCONT);
  EXPECT_EQ(open_from_afar()->get("small", 1000).value().size(), 100u);
}

TEST_F(AgentOfThisNode, it_is_asked_for_nothing_else) {
  const auto target = open();
  const uint64_t before = requests();
  const auto object = *target->open("o", OpenMode::create);
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(write(*object, uint64_t(i), "x").ok());
  EXPECT_EQ(requests(), before + 1) << "the question for that";
}

TEST_F(AgentOfThisNode, its_locks_and_those_of_other_nodes_exclude_each_other) {
  const auto near = open(), far = open_from_afar();
  auto mine = near->try_lock("lock");
  ASSERT_TRUE(mine.ok());
  EXPECT_EQ(far->try_lock("lock").status().kind(), Kind::busy);
  mine->reset();
  const auto theirs = far->try_lock("lock", target::Hold::shared);
  ASSERT_TRUE(theirs.ok());
  EXPECT_EQ(near->try_lock("lock").status().kind(), Kind::busy);
  EXPECT_TRUE(near->try_lock("lock", target::Hold::shared).ok());
  EXPECT_EQ(near->directory_id(), far->directory_id()) << "two ways to one directory";
}

TEST_F(AgentOfThisNode, new_objects_have_the_clients_permissions) {
  const mode_t before = umask(027);
  (void)open()->open("by_umask", OpenMode::create);
  umask(before);
  struct stat state {};
  ASSERT_EQ(stat((directory_.path() + "/by_umask").c_str(), &state), 0);
  EXPECT_EQ(state.st_mode & 07777, 0640u);
}

// In a container the path leads elsewhere.
bool hide_in_a_container(const std::string& directory) {
  return unshare(geteuid() == 0 ? CLONE_NEWNS : CLONE_NEWNS | CLONE_NEWUSER) == 0 &&
         mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 && mount("none", directory.c_str(), "tmpfs", 0, nullptr) == 0;
}

TEST_F(AgentOfThisNode, it_is_right_where_the_path_leads_elsewhere) {
  const pid_t child = fork();
  if (child == 0) {
    if (!hide_in_a_container(directory_.path())) _exit(77);
    const auto target = target::open(address());
    if (!target.ok()) _exit(1);
    const auto object = (*target)->open("o", OpenMode::create);
    if (!object.ok() || !write(**object, 0, "inside").ok()) _exit(2);
    if (!std::filesystem::is_empty(directory_.path())) _exit(3);  // what is mounted there
    if (!(*target)->check_identity().ok()) _exit(4);
    std::filesystem::create_directory(directory_.path() + "/elsewhere");
    _exit((*target)->list("").value().size() == 1 ? 0 : 5);
  }
  int status = 0;
  waitpid(child, &status, 0);
  if (WEXITSTATUS(status) == 77) GTEST_SKIP() << "no namespaces here";
  EXPECT_EQ(WEXITSTATUS(status), 0);
  std::string text(6, '\0');
  EXPECT_EQ(read(**open()->open("o", OpenMode::read), 0, 6), "inside");
}

// Its ranks in a container found their directory lost as soon as nobody could tell them that it was the same.
TEST_F(AgentOfThisNode, one_that_was_killed_takes_nothing_from_who_holds_its_directory) {
  int turns[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, turns), 0);
  const pid_t child = fork();
  if (child == 0) {
    close(turns[0]);
    if (!hide_in_a_container(directory_.path())) _exit(77);
    const auto target = target::open(address());
    if (!target.ok() || !(*target)->check_identity().ok()) _exit(1);
    char word = 'r';
    if (::write(turns[1], &word, 1) != 1 || ::read(turns[1], &word, 1) != 0) _exit(2);  // until the agent is gone
    if (!(*target)->check_identity().ok()) _exit(3);
    const auto object = (*target)->open("late", OpenMode::create);
    _exit(object.ok() && write(**object, 0, "inside").ok() && (*target)->settle(std::vector{*object}, {}, true).ok() ? 0 : 4);
  }
  close(turns[1]);
  char word;
  (void)!::read(turns[0], &word, 1);
  end();
  close(turns[0]);
  int status = 0;
  waitpid(child, &status, 0);
  if (WEXITSTATUS(status) == 77) GTEST_SKIP() << "no namespaces here";
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_TRUE(std::filesystem::exists(directory_.path() + "/late"));
}

TEST_F(AgentOfThisNode, a_directory_that_was_replaced_is_lost) {
  const std::string old = directory_.path() + ".old";
  const auto target = open();
  EXPECT_TRUE(target->check_identity().ok());
  std::filesystem::rename(directory_.path(), old);
  EXPECT_EQ(target->check_identity().kind(), Kind::lost);
  std::filesystem::create_directory(directory_.path());
  EXPECT_EQ(target->check_identity().kind(), Kind::lost) << "another one";
  std::filesystem::remove(directory_.path());
  std::filesystem::rename(old, directory_.path());
  EXPECT_TRUE(target->check_identity().ok());
}

TEST_F(AgentOfThisNode, what_it_does_not_serve_it_does_not_hand_over) {
  const auto secret = *target::read_secret(home_.path() + "/agents");
  bool answered = false;
  EXPECT_TRUE(target::ask_for_directory(note(), secret, directory_.path(), answered).ok());
  for (const std::string& other : {std::string("/etc"), directory_.path() + "/..", std::string("")})
    EXPECT_EQ(target::ask_for_directory(note(), secret, other, answered).status().kind(), Kind::access) << other;
  EXPECT_TRUE(answered);
  auto by_network = note();  // by which no descriptor can come
  std::erase(by_network.endpoints, 'u');
  EXPECT_EQ(target::ask_for_directory(by_network, secret, directory_.path(), answered).status().kind(), Kind::unsupported);
}

// It stands for another node, to try things on one machine: then its clients are asked to do what those of other nodes do.
TEST_F(AgentOfThisNode, one_for_this_node_alone_is_asked_as_another_nodes) {
  end();
  reach_ = transport::Reach::node;
  begin();
  const auto target = open();
  const uint64_t before = requests();
  const auto object = *target->open("o", OpenMode::create);
  ASSERT_TRUE(write(*object, 0, "x").ok());
  EXPECT_GE(requests(), before + 2);
}

TEST(AgentNear, another_user_is_told_apart) {
  if (geteuid() != 0) GTEST_SKIP() << "needs another user";
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string name = "holdfast-test-" + std::to_string(getpid());
  std::memcpy(address.sun_path + 1, name.data(), name.size());
  const auto bytes = socklen_t(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  const raw::Fd listener(socket(AF_UNIX, SOCK_STREAM, 0));
  ASSERT_EQ(bind(listener.get(), reinterpret_cast<sockaddr*>(&address), bytes), 0);
  ASSERT_EQ(listen(listener.get(), 1), 0);
  for (const uid_t user : {0u, 65534u}) {
    const pid_t child = fork();
    if (child == 0) {
      if (setresuid(user, user, user) != 0) _exit(1);
      const raw::Fd mine(socket(AF_UNIX, SOCK_STREAM, 0));
      if (connect(mine.get(), reinterpret_cast<sockaddr*>(&address), bytes) != 0) _exit(1);
      pause();
    }
    const raw::Fd theirs(accept(listener.get(), nullptr, nullptr));
    EXPECT_EQ(target::is_own_user(theirs.get()), user == geteuid());
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
  }
}

}  // namespace
}  // namespace holdfast::agent
