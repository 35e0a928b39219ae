// An agent that serves over sockets, as a process has it: connections, forks, deaths, and what is no request.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <thread>

#include "base/meter.hpp"
#include "target/agent_link.hpp"
#include "target/lane.hpp"
#include "transport/link.hpp"
#include "unit/agent/agent_fixture.hpp"
#include "unit/agent/relay.hpp"

namespace holdfast::agent {
namespace {

// More than one request holds, at an odd place, by vectors of which some are empty.
TEST_F(AgentOverSockets, large_writes_and_reads_go_in_pieces) {
  const auto target = open();
  const auto object = *target->open("o", OpenMode::create);
  std::string all;
  for (int i = 0; all.size() < (5u << 20) + 4321; ++i) all += std::to_string(i) + ",";
  iovec parts[4] = {{all.data(), 100}, {nullptr, 0}, {all.data() + 100, 3 << 20}, {all.data() + 100 + (3 << 20), all.size() - 100 - (3 << 20)}};
  ASSERT_TRUE(object->write(17, parts).ok());
  EXPECT_EQ(*object->size(), all.size() + 17);
  std::string back(all.size() + 100, 'x');
  iovec into[3] = {{back.data(), 5}, {back.data() + 5, 2 << 20}, {back.data() + 5 + (2 << 20), back.size() - 5 - (2 << 20)}};
  EXPECT_EQ(*object->read(17, into), all.size());
  back.resize(all.size());
  EXPECT_EQ(back, all);
  Bytes content(3 << 20, std::byte(7));
  ASSERT_TRUE(target->put("large", content, false).ok());
  EXPECT_EQ(*target->get("large", 4 << 20), content);
  EXPECT_EQ(target->get("large", 1 << 20).status().kind(), Kind::corrupt);
}

// Two files of one process that are read and written at the same time share a connection.
TEST_F(AgentOverSockets, pieces_of_one_object_do_not_get_into_another) {
  const auto one = open(), other = open();
  const Bytes a(3 << 20, std::byte('a')), b(3 << 20, std::byte('b'));
  std::thread writer([&] {
    for (int i = 0; i < 30; ++i) {
      EXPECT_TRUE(one->put("a", a, false).ok());
      const auto got = one->get("a", 4 << 20);
      EXPECT_TRUE(got.ok() && *got == a) << got.status().sentence();
    }
  });
  for (int i = 0; i < 30; ++i) {
    EXPECT_TRUE(other->put("b", b, false).ok());
    const auto got = other->get("b", 4 << 20);
    EXPECT_TRUE(got.ok() && *got == b) << got.status().sentence();
  }
  writer.join();
}

// The profile counts them as it counts the system's calls on a directory, also where several go as one.
TEST_F(AgentOverSockets, what_is_read_written_and_synced_is_counted) {
  const auto target = open();
  const auto one = *target->open("one", OpenMode::create), other = *target->open("other", OpenMode::create);
  Meter meter;
  const MeterScope measured(&meter);
  ASSERT_TRUE(write(*one, 0, "12345").ok());
  EXPECT_EQ(read(*one, 0, 100), "12345");
  ASSERT_TRUE(one->sync().ok());
  EXPECT_EQ(meter.write_calls, 1u);
  EXPECT_EQ(meter.write_bytes, 5u);
  EXPECT_EQ(meter.read_calls, 1u);
  EXPECT_EQ(meter.read_bytes, 5u);
  EXPECT_EQ(meter.sync_calls, 1u);
  for (const Meter::Count* ns : {&meter.write_ns, &meter.read_ns, &meter.sync_ns}) EXPECT_GT(*ns, 0u);

  std::string text = "123";
  const iovec bytes{text.data(), text.size()};
  const target::Target::ObjectWrite writes[] = {{one, 5, {bytes}}, {other, 0, {bytes}}};
  const std::shared_ptr<Object> written[] = {one, other};
  ASSERT_TRUE(target->write_together(writes).ok());
  ASSERT_TRUE(target->write_and_settle(writes, written, {}, true).ok());
  ASSERT_TRUE(target->settle(written, {}, true).ok());
  ASSERT_TRUE(target->settle(written, {}, false).ok());
  EXPECT_EQ(meter.write_calls, 5u);
  EXPECT_EQ(meter.write_bytes, 5u + 12);
  EXPECT_EQ(meter.sync_calls, 3u);
  const Bytes content(10, std::byte(1));
  ASSERT_TRUE(target->put("small", content, true).ok());
  EXPECT_EQ(meter.write_calls, 6u);
  EXPECT_EQ(meter.write_bytes, 27u);
  (void)one->size();
  EXPECT_EQ(meter.read_calls + meter.write_calls + meter.sync_calls, 10u);
}

// A close costs no wait, be the agent as slow as it likes, and what is asked later gets its own answer.
TEST_F(AgentOverSockets, closes_are_not_waited_for) {
  const auto target = open();
  std::vector<std::shared_ptr<Object>> objects;
  for (int i = 0; i < 200; ++i) objects.push_back(target->open("o" + std::to_string(i), OpenMode::create).value());
  EXPECT_TRUE(write(*objects[0], 0, "kept").ok());
  kill(agent_, SIGSTOP);
  for (int i = 0; i < 50; ++i) objects.pop_back();
  kill(agent_, SIGCONT);
  objects.resize(1);
  EXPECT_EQ(read(*objects[0], 0, 4), "kept");
  EXPECT_TRUE(objects[0]->still_there().ok());
  EXPECT_EQ(target->list("").value().size(), 200u);
}

// Promise 7: no more than the program's own umask gives, whatever the agent's is.
TEST_F(AgentOverSockets, new_objects_have_the_clients_permissions) {
  const mode_t before = umask(027);
  (void)open()->open("by_umask", OpenMode::create);
  (void)open()->make_directory("directory");
  target::DirectoryOptions options;
  options.mode = 0600;
  auto with_mode = target::open(address(), options);
  ASSERT_TRUE(with_mode.ok());
  (void)(*with_mode)->open("by_mode", OpenMode::create);
  umask(before);
  auto mode_of = [&](const std::string& name) {
    struct stat state {};
    EXPECT_EQ(stat((directory_.path() + "/" + name).c_str(), &state), 0) << name;
    return state.st_mode & 07777;
  };
  EXPECT_EQ(mode_of("by_umask"), 0640u);
  EXPECT_EQ(mode_of("directory"), 0750u);
  EXPECT_EQ(mode_of("by_mode"), 0600u);
}

TEST_F(AgentOverSockets, a_second_agent_of_one_node_does_not_begin) {
  pid_t second = -1;
  EXPECT_EQ(start(second), "another agent of node n1 serves " + directory_.path() + "\n");
  waitpid(second, nullptr, 0);
  EXPECT_TRUE(open()->make_directory("served_on").ok());
}

TEST_F(AgentOverSockets, more_names_than_one_answer_holds_are_all_listed) {
  const auto target = open();
  ASSERT_TRUE(target->make_directory("d").ok());
  for (int i = 0; i < 6000; ++i) {
    const std::string path = directory_.path() + "/d/" + std::string(200, 'n') + std::to_string(i);
    ASSERT_EQ(mknod(path.c_str(), S_IFREG | 0600, 0), 0);
  }
  const auto names = target->list("d");
  ASSERT_TRUE(names.ok()) << names.status().sentence();
  EXPECT_EQ(names->size(), 6000u);
}

TEST_F(AgentOverSockets, errors_of_the_disk_come_with_their_kind_and_number) {
  const auto target = open();
  const Status missing = target->open("none", OpenMode::read).status();
  EXPECT_EQ(missing.kind(), Kind::not_found);
  EXPECT_EQ(missing.sys_errno(), ENOENT);
  EXPECT_NE(missing.sentence().find(address()), std::string::npos) << missing.sentence();
}

TEST_F(AgentOverSockets, a_killed_agent_loses_what_was_open_and_its_successor_serves_the_next) {
  auto target = open();
  auto object = *target->open("o", OpenMode::create);
  ASSERT_TRUE(write(*object, 0, "before").ok());
  end();
  EXPECT_FALSE(write(*object, 0, "after").ok());
  EXPECT_FALSE(object->sync().ok());
  begin();
  EXPECT_FALSE(object->sync().ok()) << "it was never told that nothing is missing";
  object = *open()->open("o", OpenMode::write);
  EXPECT_EQ(read(*object, 0, 100), "before");
}

TEST_F(AgentOverSockets, a_forked_child_goes_on_over_a_connection_of_its_own) {
  const auto target = open();
  const auto object = *target->open("o", OpenMode::create);
  ASSERT_TRUE(write(*object, 0, "parent").ok());
  const pid_t child = fork();
  if (child == 0) {
    bool right = read(*object, 0, 6) == "parent" && write(*object, 6, " child").ok() && target->make_directory("d").ok();
    for (int i = 0; i < 200; ++i) right &= write(*object, 100 + i, "c").ok();
    _exit(right ? 0 : 1);
  }
  for (int i = 0; i < 200; ++i) ASSERT_TRUE(write(*object, 400 + i, "p").ok());
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(read(*object, 0, 12), "parent child");
  EXPECT_EQ(read(*object, 100, 200), std::string(200, 'c'));
  EXPECT_EQ(read(*object, 400, 200), std::string(200, 'p'));
}

// The child has a copy of the socket; were it open, the agent would take the parent for alive.
TEST_F(AgentOverSockets, locks_of_a_process_end_with_it_though_its_children_live) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const pid_t parent = fork();
  if (parent == 0) {
    const auto lock = open()->try_lock("lock");
    const pid_t child = fork();
    if (child == 0) {
      close(ends[0]);
      pause();
    }
    const std::string told = std::to_string(lock.ok() ? child : -1) + "\n";
    _exit(::write(ends[1], told.data(), told.size()) == ssize_t(told.size()) ? 0 : 1);
  }
  char text[32] = "";
  ASSERT_GT(::read(ends[0], text, sizeof text - 1), 0);
  const pid_t child = atoi(text);
  ASSERT_GT(child, 0);
  ASSERT_EQ(waitpid(parent, nullptr, 0), parent);
  const auto target = open();
  Status status;
  for (int tries = 0; tries < 1000; ++tries) {
    if (status = target->try_lock("lock").status(); status.ok()) break;
    usleep(5000);
  }
  EXPECT_TRUE(status.ok()) << status.sentence();
  EXPECT_EQ(kill(child, 0), 0) << "the child lives";
  kill(child, SIGKILL);
  close(ends[0]), close(ends[1]);
}

TEST_F(AgentOverSockets, a_lock_excludes_other_processes) {
  const auto held = open()->try_lock("lock");
  ASSERT_TRUE(held.ok());
  const pid_t other = fork();
  if (other == 0) _exit(open()->try_lock("lock").status().kind() == Kind::busy ? 0 : 1);
  int status = 0;
  waitpid(other, &status, 0);
  EXPECT_EQ(status, 0);
}

// The agent hung, the client was given up, and somebody else has mended what it wanted to write: nothing may come in late.
TEST_F(AgentOverSockets, a_request_of_a_client_that_has_ended_is_not_carried_out) {
  const auto target = open();
  const auto object = *target->open("o", OpenMode::create);
  ASSERT_TRUE(write(*object, 0, "mended").ok());
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  signal(SIGUSR1, [](int) {});
  const pid_t client = fork();
  if (client == 0) {
    const auto own = *open()->open("o", OpenMode::write);
    (void)::write(ends[1], "x", 1);
    pause();
    (void)write(*own, 0, "late..");
    _exit(0);
  }
  char byte;
  ASSERT_EQ(::read(ends[0], &byte, 1), 1);
  kill(agent_, SIGSTOP);
  usleep(20000);
  kill(client, SIGUSR1);
  usleep(100000);  // the request lies with the agent's node by now
  kill(client, SIGKILL);
  waitpid(client, nullptr, 0);
  kill(agent_, SIGCONT);
  EXPECT_EQ(read(*object, 0, 6), "mended");
  usleep(50000);
  EXPECT_EQ(read(*object, 0, 6), "mended");
  close(ends[0]), close(ends[1]);
}

// After the greeting, too, nothing is believed.
TEST_F(AgentOverSockets, what_makes_no_sense_ends_its_connection_and_no_other) {
  const auto target = open();
  const auto object = *target->open("o", OpenMode::create);
  const auto secret = *target::read_secret(home_.path() + "/agents");
  target::AgentRequest senseless[5];
  senseless[0].op = 0;
  senseless[1].op = 999;
  senseless[2].op = uint16_t(target::AgentOp::write), senseless[2].bulk_bytes = ~0u;
  senseless[3].op = uint16_t(target::AgentOp::open), senseless[3].name_bytes = 1 << 20;
  std::memset(static_cast<void*>(&senseless[4]), 0xff, sizeof senseless[4]);
  for (const target::AgentRequest& request : senseless) {
    transport::Link link;
    ASSERT_TRUE(link.connect(note().endpoints, target::agent_agreement(secret, note().id), 5000).ok());
    const iovec out{const_cast<target::AgentRequest*>(&request), sizeof request};
    ASSERT_TRUE(link.send({&out, 1}).ok());
    char byte;
    const iovec in{&byte, 1};
    EXPECT_EQ(link.receive({&in, 1}).kind(), Kind::io) << "hung up";
  }
  EXPECT_TRUE(write(*object, 0, "served on").ok());
}

// Handles that are not its own, directories that it is not attached to, names that lead out.
TEST_F(AgentOverSockets, what_a_client_may_not_is_refused) {
  const auto target = open();
  const auto object = *target->open("o", OpenMode::create);
  const auto secret = *target::read_secret(home_.path() + "/agents");
  const auto channel = *target::begin_session(target::line_to(note().endpoints, target::agent_agreement(secret, note().id), 5000));
  auto kind_of = [&](target::AgentOp op, const std::string& name, uint32_t handle) {
    target::AgentRequest request;
    request.op = uint16_t(op), request.handle = handle, request.flags = 2, request.length = 10;
    target::AgentAnswer answer;
    std::string sentence;
    Bytes room(4096);
    const iovec into{room.data(), room.size()};
    EXPECT_TRUE(channel->ask(request, name, {}, answer, sentence, {&into, 1}).ok());
    return Kind(answer.kind);
  };
  EXPECT_EQ(kind_of(target::AgentOp::open, "o", 0), Kind::invalid) << "not attached";
  EXPECT_EQ(kind_of(target::AgentOp::attach, "/etc", 0), Kind::access);
  EXPECT_EQ(kind_of(target::AgentOp::attach, directory_.path(), 0), Kind::ok);
  for (uint32_t handle : {0u, 1u, 2u, ~0u}) EXPECT_EQ(kind_of(target::AgentOp::read, "", handle), Kind::stale) << handle;
  for (const char* name : {"../x", "/etc/passwd", "a/../../b"}) EXPECT_EQ(kind_of(target::AgentOp::open, name, 0), Kind::invalid) << name;
}

TEST_F(AgentOverSockets, says_who_is_connected_and_ends_when_it_is_told) {
  const auto target = open();
  const auto about = ask(home_.path() + "/agents", note());
  ASSERT_TRUE(about.ok()) << about.status().sentence();
  EXPECT_EQ(about->clients, 1u);
  EXPECT_TRUE(agent::end(home_.path() + "/agents", note()).ok());
  int status = 0;
  EXPECT_EQ(waitpid(agent_, &status, 0), agent_);
  agent_ = 0;
  EXPECT_EQ(status, 0);
  EXPECT_EQ(target->check_identity().kind(), Kind::io);
  EXPECT_EQ(target::open(address()).status().kind(), Kind::lost);
}

// The connection breaks under way, both kernels know it, and agent and client live on.
class AgentBehindARelay : public AgentOverSockets {
 protected:
  void SetUp() override {
    AgentOverSockets::SetUp();
    auto known = note();
    relay_ = std::make_unique<Relay>(known.endpoints, address_of_relay());
    known.endpoints = relay_->endpoint();
    ASSERT_TRUE(target::write_note(home_.path() + "/agents", known).ok());
  }
  virtual in_addr_t address_of_relay() const { return INADDR_LOOPBACK; }
  // As another process of the node has it.
  bool lock_is_free(const std::string& name) { return (*target::open_directory(directory_.path()))->try_lock(name).ok(); }
  std::unique_ptr<Relay> relay_;
};

TEST_F(AgentBehindARelay, a_reset_between_two_calls_is_not_seen) {
  const auto target = open();
  const auto object = *target->open("o", OpenMode::create);
  const auto lock = target->try_lock("lock");
  ASSERT_TRUE(lock.ok());
  for (int i = 0; i < 20; ++i) {
    relay_->reset_all();
    const Status written = write(*object, uint64_t(i), std::string(1, char('a' + i)));
    ASSERT_TRUE(written.ok()) << written.sentence();
    EXPECT_FALSE(lock_is_free("lock"));
  }
  EXPECT_EQ(read(*object, 0, 100), "abcdefghijklmnopqrst");
  EXPECT_TRUE(object->still_there().ok());
  EXPECT_EQ(relay_->connections(), 21u);
}

// Connections by which an address leads to another one are those between nodes.
class AgentElsewhere : public AgentBehindARelay {
 protected:
  in_addr_t address_of_relay() const override { return INADDR_LOOPBACK + 1; }
};

// A switch that starts anew. The agent has kept the session, and its locks.
TEST_F(AgentElsewhere, a_network_that_is_gone_for_a_moment_is_waited_for) {
  const auto target = open();
  const auto object = *target->open("o", OpenMode::create);
  const auto lock = target->try_lock("lock");
  ASSERT_TRUE(lock.ok());
  relay_->refuse(true);
  std::thread comes_back([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(700));
    relay_->refuse(false);
  });
  const Status written = write(*object, 0, "on");
  comes_back.join();
  ASSERT_TRUE(written.ok()) << written.sentence();
  EXPECT_TRUE(object->still_there().ok());
  EXPECT_FALSE(lock_is_free("lock"));
}

// The waits of a connection and its greeting are saved.
TEST_F(AgentBehindARelay, the_next_file_finds_the_connection_of_the_last_one) {
  for (int file = 0; file < 3; ++file) EXPECT_TRUE(open()->put("o" + std::to_string(file), Bytes(10), false).ok());
  EXPECT_EQ(relay_->connections(), 1u);
}

// Nobody has noticed: no file was open. Had one been, its session would have gone on.
TEST_F(AgentBehindARelay, a_connection_that_broke_while_no_file_was_open_is_made_anew) {
  for (int file = 0; file < 3; ++file) {
    EXPECT_TRUE(open()->put("o", Bytes(10), false).ok());
    relay_->reset_all();
  }
  EXPECT_EQ(relay_->connections(), 3u);
}

TEST_F(AgentOverSockets, a_successor_serves_the_next_file_of_a_process_that_knew_its_agent) {
  EXPECT_TRUE(open()->put("o", Bytes(10), false).ok());
  end();
  begin();
  EXPECT_EQ(open()->get("o", 100).value(), Bytes(10));
  kill(agent_, SIGSTOP);  // its successor begins before anybody hears of its end
  kill_agent(agent_);
  begin();
  EXPECT_EQ(open()->get("o", 100).value(), Bytes(10));
}

// The agent had opened the one before for the connection.
TEST_F(AgentOverSockets, the_next_file_lies_in_the_directory_that_is_there_then) {
  EXPECT_TRUE(open()->put("o", Bytes(10), false).ok());
  ASSERT_EQ(rename(directory_.path().c_str(), (home_.path() + "/before").c_str()), 0);
  ASSERT_EQ(mkdir(directory_.path().c_str(), 0700), 0);
  const auto now = open();
  ASSERT_TRUE(now);
  EXPECT_EQ(now->get("o", 100).status().kind(), Kind::not_found);
  EXPECT_TRUE(now->put("o", Bytes(20), false).ok());
  EXPECT_EQ(access((directory_.path() + "/o").c_str(), F_OK), 0);
}

TEST_F(AgentBehindARelay, a_reset_in_mid_write_is_not_seen) {
  const auto target = open();
  const auto object = *target->open("o", OpenMode::create);
  const auto lock = target->try_lock("lock");
  ASSERT_TRUE(lock.ok());
  std::string all(3 << 20, 'x');
  for (const int64_t bytes : {0, 1, 39, 40, 41, 100000, (1 << 20) + 40, (1 << 20) + 41, 2 << 20}) {
    for (char& byte : all) byte = char(byte + 1);
    relay_->reset_after(bytes);
    const Status written = write(*object, 5, all);
    ASSERT_TRUE(written.ok()) << written.sentence() << " after " << bytes;
    EXPECT_EQ(read(*object, 5, all.size()), all) << bytes;
    EXPECT_FALSE(lock_is_free("lock"));
  }
  EXPECT_EQ(relay_->connections(), 10u);
}

// Others get the lock in the end; whoever had it changes nothing under it any more.
TEST_F(AgentBehindARelay, a_lock_whose_holder_does_not_come_back_ends_and_what_it_would_change_is_refused) {
  auto target = open();
  const auto lock = target->try_lock("lock");
  ASSERT_TRUE(lock.ok());
  relay_->reset_all();
  EXPECT_FALSE(lock_is_free("lock")) << "its holder may come back";
  for (int tries = 0; tries < 1000 && !lock_is_free("lock"); ++tries) usleep(10000);
  const auto other = (*target::open_directory(directory_.path()))->try_lock("lock");
  EXPECT_TRUE(other.ok());
  EXPECT_FALSE(target->put("manifest", Bytes(3), true).ok());
  EXPECT_FALSE(target->make_directory("d").ok());
  EXPECT_EQ((*target::open_directory(directory_.path()))->list("").value(), std::vector<std::string>{"lock"});
  EXPECT_TRUE(open()->make_directory("d").ok()) << "who opens it anew may";
}

// A process that is killed is not waited for.
TEST_F(AgentBehindARelay, locks_of_a_killed_process_end_at_once) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const pid_t holder = fork();
  if (holder == 0) {
    const auto target = open();
    const auto lock = target->try_lock("lock");
    (void)*target->open_to_write("o", target::Pages::own);
    (void)::write(ends[1], lock.ok() ? "y" : "n", 1);
    pause();
  }
  char said = 0;
  ASSERT_EQ(::read(ends[0], &said, 1), 1);
  ASSERT_EQ(said, 'y');
  EXPECT_FALSE(lock_is_free("lock"));
  kill(holder, SIGKILL);
  waitpid(holder, nullptr, 0);
  int tries = 0;
  for (; tries < 200 && !lock_is_free("lock"); ++tries) usleep(10000);
  EXPECT_LT(tries, 200);
  close(ends[0]), close(ends[1]);
}

// Lanes run in processes that share the memory: they are of one process all the same.
TEST_F(AgentOverSockets, lanes_of_one_process_share_its_connection) {
  std::vector<std::shared_ptr<target::Lane>> lanes;
  std::vector<std::shared_ptr<target::Target>> targets(4);
  for (auto& target : targets) {
    lanes.push_back(target::make_companion_lane("n1", std::chrono::seconds(10)));
    ASSERT_TRUE(lanes.back()
                    ->run([&] {
                      target = open();
                      return target->make_directory("d");
                    })
                    .ok());
  }
  EXPECT_EQ(ask(home_.path() + "/agents", note())->clients, 1u);
  for (size_t i = 0; i < lanes.size(); ++i) lanes[i]->let_go(std::exchange(targets[i], nullptr));
}

}  // namespace
}  // namespace holdfast::agent
