// Requests that no client of ours would make: whatever comes, the session answers, and nothing outside of the directory is touched.
#include "agent/session.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <random>

#include "base/vectors.hpp"
#include "target/agent_together.hpp"
#include "target/directory.hpp"
#include "unit/target/directory_fixture.hpp"

namespace holdfast::agent {
namespace {

using target::AgentOp;

TEST(Session, answers_whatever_it_is_asked_and_stays_in_its_directory) {
  const target::TemporaryDirectory home;
  const std::string inside = home.path() + "/served", outside = home.path() + "/outside";
  std::filesystem::create_directories(inside);
  std::filesystem::create_directories(outside);
  std::ofstream(outside + "/secret") << "secret";
  std::filesystem::create_symlink(outside, inside + "/link");
  const auto served = std::make_shared<const Served>(Served{{"/d", [&](uint32_t mode) { return target::open_directory(inside, {.mode = mode}); }}});
  const std::string names[] = {"",
                               "o",
                               "p",
                               "d",
                               "d/o",
                               "../outside/secret",
                               "link/secret",
                               "link",
                               "/etc/passwd",
                               "d/../../outside/secret",
                               "/d",
                               "\xff\n",
                               std::string("a\0b", 3),
                               std::string(4096, 'x')};
  std::mt19937_64 random(7);
  for (int round = 0; round < 50; ++round) {
    Session session(served);
    for (int i = 0; i < 400; ++i) {
      target::AgentRequest request;
      request.op = uint16_t(1 + random() % uint16_t(AgentOp::each));
      request.flags = random() % 4 ? uint16_t(random() % 4) : uint16_t(random());
      request.handle = random() % 3 ? uint32_t(random() % 8) : uint32_t(random());
      request.offset = random() % 2 ? random() % 5000 : random() % 3 ? random() >> 20 : random();
      request.length = random() % 2 ? random() % 5000 : random() % 3 ? random() >> 40 : random();
      // A hole of exabytes is nobody's aim here: it takes as long as the file system likes.
      if (request.op == uint16_t(AgentOp::truncate) || request.op == uint16_t(AgentOp::grow)) request.offset %= 1 << 20;
      const std::string& name = i == 0 ? "/d" : names[random() % std::size(names)];
      if (i == 0) request.op = uint16_t(AgentOp::attach), request.flags = 0600;
      const Bytes bulk(random() % 3 ? random() % 300 : 0, std::byte(i));
      request.name_bytes = uint32_t(name.size()), request.bulk_bytes = uint32_t(bulk.size());
      if (!sensible(request)) continue;
      const Session::Reply reply = session.answer(request, name, bulk);
      ASSERT_TRUE(sensible(reply.answer));
      ASSERT_EQ(reply.answer.sentence_bytes, reply.sentence.size());
      ASSERT_EQ(reply.answer.bulk_bytes, reply.bulk.size());
    }
  }
  std::ifstream secret(outside + "/secret");
  std::string text;
  secret >> text;
  EXPECT_EQ(text, "secret");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(outside), std::filesystem::directory_iterator()), 1);
}

// Who does not wait for an open learns of its failure from the next call.
TEST(Session, tells_why_an_object_could_not_be_opened_when_it_is_used) {
  const target::TemporaryDirectory home;
  const auto served =
      std::make_shared<const Served>(Served{{"/d", [&](uint32_t mode) { return target::open_directory(home.path(), {.mode = mode}); }}});
  Session session(served);
  auto ask = [&](AgentOp op, const std::string& name, uint32_t handle, uint16_t flags) {
    target::AgentRequest request;
    request.op = uint16_t(op), request.handle = handle, request.flags = flags, request.name_bytes = uint32_t(name.size());
    const auto answer = session.answer(request, name, {}).answer;
    return std::pair(Kind(answer.kind), answer.sys_errno);
  };
  constexpr uint16_t drawn = 512 | uint16_t(target::OpenMode::create);
  constexpr uint32_t first = target::first_drawn_handle;
  ASSERT_EQ(ask(AgentOp::attach, "/d", 0, 0600).first, Kind::ok);
  EXPECT_EQ(ask(AgentOp::open, "no/directory", first, drawn), std::pair(Kind::not_found, ENOENT));
  EXPECT_EQ(ask(AgentOp::write, "", first, 0), std::pair(Kind::not_found, ENOENT));
  EXPECT_EQ(ask(AgentOp::open, "o", first + 1, drawn).first, Kind::ok);
  EXPECT_EQ(ask(AgentOp::write, "", first + 1, 0).first, Kind::ok);
  EXPECT_EQ(ask(AgentOp::open, "p", first + 1, drawn).first, Kind::invalid) << "a handle is of one object";
  EXPECT_EQ(ask(AgentOp::open, "p", 7, drawn).first, Kind::invalid) << "the session's own";
  EXPECT_EQ(ask(AgentOp::close, "", first, 0).first, Kind::ok);
  EXPECT_EQ(ask(AgentOp::write, "", first, 0), std::pair(Kind::stale, ESTALE));
}

class Several : public testing::Test {
 protected:
  Several() { EXPECT_EQ(Kind(session_.answer(request(AgentOp::attach, 0600), "/d", {}).answer.kind), Kind::ok); }

  static target::AgentRequest request(AgentOp op, uint16_t flags = 0) {
    target::AgentRequest one;
    one.op = uint16_t(op), one.flags = flags, one.length = 100;
    return one;
  }
  void add(AgentOp op, const std::string& name) { together_.add(request(op), name); }
  // The kinds of what was carried out; nothing where they were refused.
  std::vector<Kind> ask() {
    const Session::Reply reply = session_.answer(request(AgentOp::several), "", concatenated(together_.bytes()));
    if (Kind(reply.answer.kind) != Kind::ok) return {};
    std::vector<Kind> kinds;
    const auto answers = together_.answers(reply.bulk);
    EXPECT_TRUE(answers);
    for (const auto& part : *answers) kinds.push_back(part.status().kind());
    return kinds;
  }
  bool is_there(const std::string& name) { return std::filesystem::exists(home_.path() + "/" + name); }

  const target::TemporaryDirectory home_;
  Session session_{
      std::make_shared<const Served>(Served{{"/d", [this](uint32_t mode) { return target::open_directory(home_.path(), {.mode = mode}); }}})};
  target::AgentTogether together_;
};

TEST_F(Several, are_carried_out_up_to_the_first_that_fails) {
  add(AgentOp::make_directory, "a"), add(AgentOp::remove, "not there"), add(AgentOp::make_directory, "b");
  EXPECT_EQ(ask(), (std::vector{Kind::ok, Kind::not_found}));
  EXPECT_TRUE(is_there("a"));
  EXPECT_FALSE(is_there("b"));
}

TEST_F(Several, are_looked_at_whole_before_any_is_carried_out) {
  add(AgentOp::make_directory, "a"), add(AgentOp::read, "");
  EXPECT_TRUE(ask().empty()) << "what may be long is not asked for among others";
  EXPECT_FALSE(is_there("a"));
}

TEST_F(Several, hold_no_others_and_one_look_at_a_small_object) {
  add(AgentOp::put, "m"), add(AgentOp::get, "m");
  EXPECT_EQ(ask(), (std::vector{Kind::ok, Kind::ok}));
  add(AgentOp::get, "m");
  EXPECT_TRUE(ask().empty());
  together_ = {};
  add(AgentOp::several, "");
  EXPECT_TRUE(ask().empty());
}

TEST_F(Several, are_no_more_than_fit) {
  for (size_t i = 0; i < target::most_together; ++i) add(AgentOp::make_directory, "a");
  EXPECT_TRUE(together_.fits());
  EXPECT_EQ(ask().size(), target::most_together);
  add(AgentOp::make_directory, "b");
  EXPECT_FALSE(together_.fits());
  EXPECT_TRUE(ask().empty());
}

TEST(Session, takes_pieces_of_a_put_by_their_ticket_only) {
  const target::TemporaryDirectory home;
  const auto served =
      std::make_shared<const Served>(Served{{"/d", [&](uint32_t mode) { return target::open_directory(home.path(), {.mode = mode}); }}});
  Session session(served);
  uint32_t ticket = 0;
  auto ask = [&](AgentOp op, const std::string& name, uint32_t handle, const std::string& text) {
    target::AgentRequest request;
    request.op = uint16_t(op), request.handle = handle, request.flags = op == AgentOp::attach ? 0600 : 0;
    request.name_bytes = uint32_t(name.size()), request.bulk_bytes = uint32_t(text.size());
    const auto answer = session.answer(request, name, std::as_bytes(std::span(text.data(), text.size()))).answer;
    ticket = uint32_t(answer.value);
    return Kind(answer.kind);
  };
  ASSERT_EQ(ask(AgentOp::attach, "/d", 0, ""), Kind::ok);
  EXPECT_EQ(ask(AgentOp::append, "m", 0, "given up"), Kind::ok);
  EXPECT_EQ(ask(AgentOp::put, "m", 0, "whole"), Kind::ok) << "what was begun before is not of it";
  EXPECT_EQ(target::open_directory(home.path()).value()->get("m", 100).value().size(), 5u);
  EXPECT_EQ(ask(AgentOp::put, "m", 77, "end"), Kind::stale);
  EXPECT_EQ(ask(AgentOp::append, "m", 0, "begin "), Kind::ok);
  const uint32_t begun = ticket;
  EXPECT_EQ(ask(AgentOp::append, "m", 0, "of another"), Kind::ok);
  EXPECT_NE(ticket, begun);
  EXPECT_EQ(ask(AgentOp::put, "m", begun, "end"), Kind::ok);
  EXPECT_EQ(target::open_directory(home.path()).value()->get("m", 100).value().size(), 9u);
  EXPECT_EQ(ask(AgentOp::put, "m", begun, "again"), Kind::stale);
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(ask(AgentOp::append, "m", 0, "given up"), Kind::ok);
}

}  // namespace
}  // namespace holdfast::agent
