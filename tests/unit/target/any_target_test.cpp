// What every target does, the real one and its twin in memory alike.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <random>
#include <thread>

#include "agent/session.hpp"
#include "target/agent.hpp"
#include "target/directory.hpp"
#include "target/memory.hpp"
#include "unit/target/directory_fixture.hpp"

namespace holdfast::target::any_target_tests {
namespace {

using testing::ElementsAre;

Bytes bytes(const std::string& text) {
  Bytes all(text.size());
  std::memcpy(all.data(), text.data(), text.size());
  return all;
}
iovec vector_of(ByteView view) { return {const_cast<std::byte*>(view.data()), view.size()}; }

Status write(Object& object, uint64_t offset, ByteView from) {
  iovec one = vector_of(from);
  return object.write(offset, std::span<const iovec>(&one, 1));
}
Bytes read(Object& object, uint64_t offset, size_t count) {
  Bytes into(count);
  iovec one = vector_of(into);
  auto got = object.read(offset, std::span<const iovec>(&one, 1));
  EXPECT_TRUE(got.ok()) << got.status().sentence();
  into.resize(got.ok() ? *got : 0);
  return into;
}

// A client and an agent's session with no socket between them.
class DirectChannel final : public AgentChannel {
 public:
  explicit DirectChannel(std::shared_ptr<const agent::Served> served) : session_(std::move(served)) {}
  Status ask(AgentRequest request, const std::string& name, std::span<const iovec> bulk, AgentAnswer& answer, std::string& sentence,
             std::span<const iovec> into) override {
    std::lock_guard lock(mutex_);
    ++asked;
    Bytes sent;
    for (const iovec& one : bulk) {
      const auto* from = static_cast<const std::byte*>(one.iov_base);
      sent.insert(sent.end(), from, from + one.iov_len);
    }
    request.name_bytes = uint32_t(name.size()), request.bulk_bytes = uint32_t(sent.size());
    EXPECT_TRUE(sensible(request));
    agent::Session::Reply reply = session_.answer(request, name, sent);
    EXPECT_TRUE(sensible(reply.answer));
    answer = reply.answer, sentence = reply.sentence;
    size_t done = 0;
    for (const iovec& one : into) {
      const size_t bytes = std::min(one.iov_len, reply.bulk.size() - done);
      if (bytes) std::memcpy(one.iov_base, reply.bulk.data() + done, bytes);
      done += bytes;
    }
    EXPECT_EQ(done, reply.bulk.size());
    return {};
  }
  void post(AgentRequest request, const std::string& name) override {
    AgentAnswer answer;
    std::string sentence;
    (void)ask(request, name, {}, answer, sentence, {});
  }
  bool broken() const override { return false; }
  uint64_t asked = 0;

 private:
  std::mutex mutex_;
  agent::Session session_;
};

class AnyTarget : public testing::TestWithParam<const char*> {
 protected:
  // Another handle of the same storage, as another rank has one.
  std::shared_ptr<Target> handle() {
    const std::string kind = GetParam();
    if (kind == "memory") return make_memory_target(memory_, "memory");
    if (kind == "agent") return attach_to_agent(std::make_shared<DirectChannel>(served_), "/d", "n1:/d", 0644).value();
    DirectoryOptions options;
    options.without_openat2 = kind == "walked";
    options.without_ofd_locks = kind == "walked";
    return open_directory(directory_.path(), options).value();
  }
  std::shared_ptr<Object> object(const std::string& name) { return target_->open(name, OpenMode::create).value(); }

  TemporaryDirectory directory_;
  std::shared_ptr<MemoryDirectory> memory_ = std::make_shared<MemoryDirectory>();
  std::shared_ptr<const agent::Served> served_ =
      std::make_shared<agent::Served>(agent::Served{{"/d", [this](uint32_t mode) { return open_directory(directory_.path(), {.mode = mode}); }}});
  std::shared_ptr<Target> target_ = handle();
};
INSTANTIATE_TEST_SUITE_P(Kinds, AnyTarget, testing::Values("memory", "directory", "walked", "agent"),
                         [](const auto& info) { return std::string(info.param); });

std::map<std::string, Bytes> each_of(Target& target, const Target::EachWish& wish) {
  std::map<std::string, Bytes> all;
  const Status got = target.get_each(wish, [&](const std::string& name, const Result<Bytes>& content) {
    EXPECT_TRUE(all.emplace(name, content.ok() ? *content : bytes("none")).second) << name;
  });
  EXPECT_TRUE(got.ok()) << got.sentence();
  return all;
}

TEST_P(AnyTarget, small_objects_of_all_directories_are_told_one_by_one) {
  const Bytes large(300 << 10, std::byte{7}), filling(100 << 10, std::byte{8});
  for (const char* name : {"a", "b", "c", "d", "e", "without"}) ASSERT_TRUE(target_->make_directory(name).ok());
  ASSERT_TRUE(target_->put("a/m", bytes("one"), false).ok());
  ASSERT_TRUE(target_->put("b/m", large, false).ok());
  for (const char* name : {"c/m", "d/m", "e/m"}) ASSERT_TRUE(target_->put(name, filling, false).ok());
  ASSERT_TRUE(target_->put("object", bytes("no directory"), false).ok());
  const std::map<std::string, Bytes> all{{"a", bytes("one")},      {"b", large},   {"c", filling},
                                         {"d", filling},           {"e", filling}, {"without", bytes("none")},
                                         {"object", bytes("none")}};
  EXPECT_EQ(each_of(*target_, {"", "m", 1 << 20}), all);
  EXPECT_EQ(each_of(*target_, {"", "m", 1 << 10}).at("b"), bytes("none")) << "it is larger than was asked for";
  EXPECT_EQ(target_->get_each({"nowhere", "m", 10}, {}).kind(), Kind::not_found);
  ASSERT_TRUE(target_->make_directory("a/sub").ok());
  ASSERT_TRUE(target_->put("a/sub/n", bytes("two"), false).ok());
  EXPECT_EQ(each_of(*target_, {"a", "n", 10}).at("sub"), bytes("two"));
}

TEST(AgentTarget, asks_for_many_small_objects_a_page_at_a_time) {
  constexpr int count = 2000;
  constexpr size_t each_bytes = 700;
  const TemporaryDirectory directory;
  const auto target = open_directory(directory.path(), {}).value();
  for (int i = 0; i < count; ++i) {
    ASSERT_TRUE(target->make_directory(std::to_string(i)).ok());
    ASSERT_TRUE(target->put(std::to_string(i) + "/m", Bytes(each_bytes, std::byte(i)), false).ok());
  }
  const auto served =
      std::make_shared<agent::Served>(agent::Served{{"/d", [&](uint32_t mode) { return open_directory(directory.path(), {.mode = mode}); }}});
  const auto channel = std::make_shared<DirectChannel>(served);
  const auto there = attach_to_agent(channel, "/d", "n1:/d", 0644).value();
  const uint64_t before = channel->asked;
  EXPECT_EQ(each_of(*there, {"", "m", 1 << 20}).size(), size_t(count));
  EXPECT_EQ(channel->asked - before, count * (each_bytes + 20) / most_page_bytes + 1);
}

TEST_P(AnyTarget, an_object_that_is_asked_to_be_striped_is_one_like_any_other_where_storage_does_not_stripe) {
  ASSERT_TRUE(target_->make_directory("d").ok());
  auto made = target_->make_striped("d/o", {65536, 2, any_node});
  ASSERT_TRUE(made.ok()) << made.status().sentence();
  EXPECT_EQ(*made, Stripes());
  EXPECT_EQ(target_->stripes("d/o").value(), Stripes());
  EXPECT_EQ(target_->get("d/o", 10).value(), Bytes());
  EXPECT_EQ(target_->make_striped("d/o", {65536, 2, any_node}).status().kind(), Kind::exists);
  EXPECT_EQ(target_->make_striped("e/o", {65536, 2, any_node}).status().kind(), Kind::not_found);
  EXPECT_EQ(target_->stripes("d/p").status().kind(), Kind::not_found);
  EXPECT_THAT(target_->list("d").value(), ElementsAre("o"));
}

TEST_P(AnyTarget, names_that_could_lead_out_are_refused_by_every_call) {
  for (std::string name :
       {std::string(), std::string("/etc/passwd"), std::string(".."), std::string("../x"), std::string("a/../b"), std::string("a//b"),
        std::string("./a"), std::string("a/"), std::string("a/."), std::string(256, 'x'), std::string("a\0b", 3), std::string(".holdfast-tmp.1")}) {
    EXPECT_EQ(target_->open(name, OpenMode::create).status().kind(), Kind::invalid) << name;
    EXPECT_EQ(target_->put(name, {}, false).kind(), Kind::invalid) << name;
    EXPECT_EQ(target_->get(name, 10).status().kind(), Kind::invalid) << name;
    EXPECT_EQ(target_->make_directory(name).kind(), Kind::invalid) << name;
    EXPECT_EQ(target_->remove(name).kind(), Kind::invalid) << name;
    EXPECT_EQ(target_->remove_directory(name).kind(), Kind::invalid) << name;
    EXPECT_EQ(target_->try_lock(name).status().kind(), Kind::invalid) << name;
    if (!name.empty()) {
      EXPECT_EQ(target_->list(name).status().kind(), Kind::invalid) << name;
    }
  }
  EXPECT_THAT(target_->list("").value(), ElementsAre());
}

TEST_P(AnyTarget, what_is_written_into_a_mapped_piece_another_handle_reads_at_once) {
  auto mapped = object("mapped");
  ASSERT_TRUE(write(*mapped, 0, bytes("before")).ok());
  if (!mapped->map(4096, 8192)) GTEST_SKIP() << "this file system has no mapping";
  auto other = handle()->open("mapped", OpenMode::read).value();
  EXPECT_EQ(other->size().value(), 4096u + 8192u);
  EXPECT_EQ(read(*other, 4096, 8192), Bytes(8192));
  ASSERT_TRUE(write(*mapped, 4096, bytes("first")).ok());
  ASSERT_TRUE(write(*mapped, 4096 + 8192 - 4, bytes("last")).ok());
  ASSERT_TRUE(write(*mapped, 4094, bytes("over")).ok());           // half before it
  ASSERT_TRUE(write(*mapped, 4096 + 8192 - 1, bytes("T!")).ok());  // half behind it
  EXPECT_EQ(read(*other, 4094, 7), bytes("overrst"));
  EXPECT_EQ(read(*other, 4096 + 8192 - 4, 100), bytes("lasT!"));
  EXPECT_TRUE(mapped->sync().ok());
  mapped.reset();
  EXPECT_EQ(read(*other, 4094, 7), bytes("overrst"));
}

TEST_P(AnyTarget, what_one_handle_writes_another_reads) {
  ASSERT_TRUE(target_->make_directory("d").ok());
  ASSERT_TRUE(write(*object("d/o"), 3, bytes("hello")).ok());
  auto other = handle()->open("d/o", OpenMode::read).value();
  EXPECT_EQ(read(*other, 0, 100), bytes(std::string("\0\0\0hello", 8)));
  EXPECT_EQ(read(*other, 6, 100), bytes("lo"));
  EXPECT_TRUE(read(*other, 8, 100).empty());
  EXPECT_TRUE(read(*other, 1 << 20, 100).empty());
  EXPECT_EQ(other->size().value(), 8u);
  EXPECT_FALSE(write(*other, 0, bytes("x")).ok()) << "opened for reading";
}

TEST_P(AnyTarget, thousands_of_vectors_with_empty_ones_among_them_are_one_write_and_one_read) {
  std::mt19937 random(7);
  std::vector<Bytes> parts;
  Bytes all;
  for (int i = 0; i < 5000; ++i) {
    parts.emplace_back(random() % 4 == 0 ? 0 : random() % 50, static_cast<std::byte>(random()));
    all.insert(all.end(), parts.back().begin(), parts.back().end());
  }
  std::vector<iovec> from;
  for (const Bytes& part : parts) from.push_back(vector_of(part));
  auto o = object("o");
  ASSERT_TRUE(o->write(5, from).ok());
  EXPECT_EQ(read(*o, 5, all.size() + 9), all);

  std::vector<Bytes> back;
  std::vector<iovec> into;
  for (const Bytes& part : parts) back.emplace_back(part.size());
  for (Bytes& part : back) into.push_back(vector_of(part));
  EXPECT_EQ(o->read(5, into).value(), all.size());
  EXPECT_EQ(back, parts);
  EXPECT_EQ(o->read(5 + 100, into).value(), all.size() - 100);
}

TEST_P(AnyTarget, objects_have_holes_far_out_and_cost_nothing_there) {
  auto o = object("o");
  ASSERT_TRUE(write(*o, 5ull << 32, bytes("far")).ok());
  EXPECT_EQ(o->size().value(), (5ull << 32) + 3);
  EXPECT_EQ(read(*o, 4ull << 32, 4), Bytes(4));
  EXPECT_EQ(read(*o, 5ull << 32, 4), bytes("far"));
}

TEST_P(AnyTarget, truncate_cuts_and_extends_with_zeros) {
  auto o = object("o");
  ASSERT_TRUE(write(*o, 0, bytes("abcdef")).ok());
  ASSERT_TRUE(o->truncate(2).ok());
  ASSERT_TRUE(o->truncate(5).ok());
  EXPECT_EQ(read(*o, 0, 10), bytes(std::string("ab\0\0\0", 5)));
}

TEST_P(AnyTarget, grow_extends_with_zeros_and_changes_nothing_that_is_there) {
  auto one = object("o");
  ASSERT_TRUE(one->grow(0).ok());
  EXPECT_EQ(*one->size(), 0u);
  ASSERT_TRUE(write(*one, 0, bytes("abc")).ok());
  ASSERT_TRUE(one->grow(2).ok());
  EXPECT_EQ(read(*one, 0, 10), bytes("abc"));
  ASSERT_TRUE(one->grow(5).ok());
  EXPECT_EQ(read(*one, 0, 10), bytes(std::string("abc\0\0", 5)));
  // Another handle has made it longer: the first one's wish takes nothing of that away.
  auto other = handle()->open("o", OpenMode::write).value();
  ASSERT_TRUE(write(*other, 5000, bytes("z")).ok());
  ASSERT_TRUE(one->grow(4000).ok());
  EXPECT_EQ(*one->size(), 5001u);
  EXPECT_EQ(read(*one, 5000, 10), bytes("z"));
}

TEST_P(AnyTarget, a_directory_in_an_objects_place_is_set_aside_with_what_is_in_it) {
  ASSERT_TRUE(target_->make_directory("d").ok());
  ASSERT_TRUE(target_->set_aside("d/o").ok()) << "nothing there";
  for (int again = 0; again < 2; ++again) {
    ASSERT_TRUE(target_->make_directory("d/o").ok());
    ASSERT_TRUE(target_->put("d/o/mine", bytes("kept"), false).ok());
    EXPECT_FALSE(target_->open("d/o", OpenMode::create).ok());
    ASSERT_TRUE(target_->set_aside("d/o").ok());
  }
  EXPECT_EQ(target_->get("d/aside.1.o/mine", 100).value(), bytes("kept"));
  ASSERT_TRUE(write(*object("d/o"), 0, bytes("x")).ok());
  ASSERT_TRUE(target_->set_aside("d/o").ok()) << "an object stays";
  EXPECT_EQ(target_->get("d/o", 100).value(), bytes("x"));
}

TEST_P(AnyTarget, only_create_makes_objects_and_only_in_directories_that_exist) {
  EXPECT_EQ(target_->open("o", OpenMode::read).status().kind(), Kind::not_found);
  EXPECT_EQ(target_->open("o", OpenMode::write).status().kind(), Kind::not_found);
  EXPECT_EQ(target_->open("d/o", OpenMode::create).status().kind(), Kind::not_found);
  EXPECT_EQ(target_->put("d/o", {}, false).kind(), Kind::not_found);
  EXPECT_EQ(target_->make_directory("d/e").kind(), Kind::not_found);
  EXPECT_EQ(target_->list("d").status().kind(), Kind::not_found);
  EXPECT_TRUE(target_->make_directory("d").ok());
  EXPECT_TRUE(target_->make_directory("d").ok()) << "existing is ok";
  EXPECT_TRUE(target_->make_directory("d/e").ok());
  EXPECT_TRUE(target_->open("d/e/o", OpenMode::create).ok());
  EXPECT_FALSE(target_->open("d", OpenMode::create).ok());
  EXPECT_FALSE(target_->open("d", OpenMode::read).ok());
  EXPECT_FALSE(target_->put("d", bytes("x"), false).ok());
  EXPECT_FALSE(target_->make_directory("d/e/o").ok());
}

TEST_P(AnyTarget, put_replaces_whole_and_get_is_bounded) {
  for (bool durable : {false, true}) {
    ASSERT_TRUE(target_->put("m", bytes("a first, longer content"), durable).ok());
    ASSERT_TRUE(target_->put("m", bytes("second"), durable).ok());
    EXPECT_EQ(target_->get("m", 6).value(), bytes("second"));
    EXPECT_EQ(target_->get("m", 5).status().kind(), Kind::corrupt);
    EXPECT_EQ(target_->get("none", 5).status().kind(), Kind::not_found);
    ASSERT_TRUE(target_->put("m", {}, durable).ok());
    EXPECT_TRUE(target_->get("m", 0).value().empty());
    EXPECT_THAT(target_->list("").value(), ElementsAre("m")) << "no temporary is left or shown";
  }
}

TEST_P(AnyTarget, a_reader_of_a_replaced_object_sees_old_or_new_never_a_mixture) {
  ASSERT_TRUE(target_->put("m", Bytes(5000, std::byte{0}), false).ok());
  auto other = handle();
  std::atomic<bool> done{false};
  std::thread writer([&] {
    for (int i = 1; i < 200; ++i) EXPECT_TRUE(other->put("m", Bytes(5000, static_cast<std::byte>(i)), false).ok());
    done = true;
  });
  while (!done) {
    Bytes content = target_->get("m", 10000).value();
    ASSERT_EQ(content, Bytes(5000, content[0]));
  }
  writer.join();
}

TEST_P(AnyTarget, an_object_that_was_deleted_or_replaced_is_noticed) {
  auto deleted = object("deleted"), replaced = object("replaced"), kept = object("kept");
  ASSERT_TRUE(target_->remove("deleted").ok());
  ASSERT_TRUE(target_->put("replaced", bytes("x"), false).ok());
  EXPECT_TRUE(write(*deleted, 0, bytes("goes nowhere")).ok());
  EXPECT_EQ(deleted->still_there().kind(), Kind::lost);
  EXPECT_EQ(replaced->still_there().kind(), Kind::lost);
  EXPECT_TRUE(kept->still_there().ok());
  EXPECT_TRUE(kept->sync().ok());
  object("deleted");
  EXPECT_EQ(deleted->still_there().kind(), Kind::lost) << "a new one of the same name is not it";
}

TEST_P(AnyTarget, what_cannot_be_opened_to_write_fails_there_or_at_the_next_call) {
  const auto nowhere = target_->open_to_write("no/such/o", Pages::own);
  EXPECT_EQ((nowhere.ok() ? write(**nowhere, 0, bytes("x")) : nowhere.status()).kind(), Kind::not_found);
  const auto there = target_->open_to_write("o", Pages::own);
  ASSERT_TRUE(there.ok());
  EXPECT_TRUE(write(**there, 0, bytes("content")).ok());
  EXPECT_EQ(read(*object("o"), 0, 7), bytes("content"));
}

TEST_P(AnyTarget, a_commit_settles_what_stands_there_and_refuses_what_was_replaced) {
  auto first = object("first"), second = object("second"), left = object("left");
  EXPECT_TRUE(write(*first, 0, bytes("new")).ok());
  ASSERT_TRUE(target_->remove("left").ok()) << "what was let go of is synced, and need not stand there";
  const std::shared_ptr<Object> written[] = {first, second}, before[] = {left};
  EXPECT_TRUE(target_->settle(written, before, true).ok());
  EXPECT_TRUE(target_->settle(written, {}, false).ok());
  EXPECT_TRUE(target_->settle({}, {}, true).ok());
  ASSERT_TRUE(target_->put("second", bytes("x"), false).ok());
  EXPECT_EQ(target_->settle(written, before, true).kind(), Kind::lost);
  EXPECT_EQ(target_->settle(written, before, false).kind(), Kind::lost);
}

TEST_P(AnyTarget, several_writes_are_made_in_their_order) {
  auto first = object("first"), second = target_->open_to_write("second", Pages::own).value();
  const Bytes a = bytes("aaaa"), b = bytes("bb"), c = bytes("c");
  const auto piece = [](const std::shared_ptr<Object>& object, uint64_t offset, const Bytes& from) {
    return Target::ObjectWrite{object, offset, {{const_cast<std::byte*>(from.data()), from.size()}}};
  };
  const Target::ObjectWrite writes[] = {piece(first, 0, a), piece(second, 3, c), piece(first, 1, b)};
  ASSERT_TRUE(target_->write_together(writes).ok());
  EXPECT_EQ(target_->get("first", 100).value(), bytes("abba"));
  EXPECT_EQ(target_->get("second", 100).value(), bytes(std::string("\0\0\0c", 4)));
  EXPECT_TRUE(target_->write_together({}).ok());
}

// More than an agent takes at once, in bytes or in writes.
TEST_P(AnyTarget, many_writes_are_made_in_their_order) {
  auto one = object("one");
  const Bytes large(700 << 10, std::byte(1)), small(1, std::byte(2));
  std::vector<Target::ObjectWrite> writes;
  for (const uint64_t at : {0, 700 << 10}) writes.push_back({one, at, {{const_cast<std::byte*>(large.data()), large.size()}}});
  for (uint64_t at = 0; at < 100; ++at) writes.push_back({one, at * 7, {{const_cast<std::byte*>(small.data()), small.size()}}});
  ASSERT_TRUE(target_->write_together(writes).ok());
  const Bytes all = target_->get("one", 4 << 20).value();
  ASSERT_EQ(all.size(), 1400u << 10);
  for (size_t at = 0; at < 700; ++at) ASSERT_EQ(all[at], std::byte(at % 7 ? 1 : 2)) << at;
}

TEST_P(AnyTarget, writes_end_at_the_first_that_fails) {
  ASSERT_TRUE(target_->put("there", bytes("x"), false).ok());
  auto before = object("before"), after = object("after"), readable = target_->open("there", OpenMode::read).value();
  const Bytes a = bytes("a");
  const iovec from{const_cast<std::byte*>(a.data()), a.size()};
  const Target::ObjectWrite writes[] = {{before, 0, {from}}, {readable, 0, {from}}, {after, 0, {from}}};
  ASSERT_FALSE(target_->write_together(writes).ok());
  EXPECT_EQ(target_->get("before", 10).value(), a);
  EXPECT_EQ(target_->get("after", 10).value(), Bytes());
}

TEST_P(AnyTarget, an_object_takes_the_name_of_another) {
  if (!target_->moves_objects()) {
    EXPECT_EQ(target_->move("a", "b").kind(), Kind::unsupported);
    return;
  }
  ASSERT_TRUE(target_->make_directory("d").ok());
  ASSERT_TRUE(target_->put("d/old", bytes("old"), true).ok());
  auto made = object("d/new");
  EXPECT_TRUE(write(*made, 0, bytes("newer")).ok());
  const std::shared_ptr<Object> written[] = {made};
  ASSERT_TRUE(target_->settle(written, {}, true).ok());
  ASSERT_TRUE(target_->move("d/new", "d/old").ok());
  EXPECT_EQ(target_->get("d/old", 100).value(), bytes("newer"));
  EXPECT_EQ(target_->list("d").value(), std::vector<std::string>{"old"});
  EXPECT_EQ(target_->move("d/new", "d/old").kind(), Kind::not_found);
  EXPECT_EQ(target_->move("../x", "d/old").kind(), Kind::invalid);
}

TEST_P(AnyTarget, an_object_has_two_names) {
  for (const char* name : {"d", "e"}) ASSERT_TRUE(target_->make_directory(name).ok());
  ASSERT_TRUE(target_->put("d/one", bytes("content"), true).ok());
  const Status linked = target_->link("d/one", "e/other");
  ASSERT_TRUE(linked.ok()) << linked.sentence();
  EXPECT_TRUE(target_->link("d/one", "e/other").ok()) << "it has that name already";
  EXPECT_EQ(target_->get("e/other", 100).value(), bytes("content"));
  ASSERT_TRUE(target_->remove_directory("d").ok());
  EXPECT_EQ(target_->get("e/other", 100).value(), bytes("content"));
  ASSERT_TRUE(target_->put("e/third", bytes("x"), true).ok());
  EXPECT_EQ(target_->link("e/third", "e/other").kind(), Kind::exists);
  EXPECT_EQ(target_->get("e/other", 100).value(), bytes("content"));
  EXPECT_EQ(target_->link("e/none", "e/new").kind(), Kind::not_found);
  EXPECT_EQ(target_->link("e/third", "none/new").kind(), Kind::not_found);
  EXPECT_EQ(target_->link("../x", "e/new").kind(), Kind::invalid);
  EXPECT_EQ(target_->link("e/third", "../x").kind(), Kind::invalid);
}

TEST_P(AnyTarget, an_object_whose_directory_went_away_is_noticed) {
  ASSERT_TRUE(target_->make_directory("d").ok());
  auto o = object("d/o");
  EXPECT_TRUE(o->still_there().ok());
  ASSERT_TRUE(target_->remove_directory("d").ok());
  EXPECT_EQ(o->still_there().kind(), Kind::lost);
}

TEST_P(AnyTarget, remove_directory_takes_all_below_and_nothing_beside) {
  for (const char* name : {"d", "d/e", "d/e/f", "dd"}) ASSERT_TRUE(target_->make_directory(name).ok());
  for (const char* name : {"o", "d/o", "d/e/o", "d/e/f/o", "dd/o"}) object(name);
  EXPECT_THAT(target_->list("").value(), ElementsAre("d", "dd", "o"));
  EXPECT_THAT(target_->list("d").value(), ElementsAre("e", "o"));
  ASSERT_TRUE(target_->remove_directory("d").ok());
  EXPECT_TRUE(target_->remove_directory("d").ok()) << "missing is ok";
  EXPECT_TRUE(target_->remove_directory("none/below").ok());
  EXPECT_THAT(target_->list("").value(), ElementsAre("dd", "o"));
  EXPECT_THAT(target_->list("dd").value(), ElementsAre("o"));
  EXPECT_EQ(target_->remove("none").kind(), Kind::not_found);
  EXPECT_FALSE(target_->remove("dd").ok()) << "a directory is not an object";
}

TEST_P(AnyTarget, a_lock_excludes_every_other_handle_until_it_goes) {
  auto other = handle();
  auto held = target_->try_lock("lock");
  ASSERT_TRUE(held.ok()) << held.status().sentence();
  EXPECT_EQ(other->try_lock("lock").status().kind(), Kind::busy);
  EXPECT_EQ(target_->try_lock("lock").status().kind(), Kind::busy);
  EXPECT_TRUE(other->try_lock("another").ok());
  held->reset();
  EXPECT_TRUE(other->try_lock("lock").ok());
}

TEST_P(AnyTarget, a_lock_comes_with_the_directory_that_it_lies_in_and_with_what_is_read_under_it) {
  auto other = handle();
  auto made = target_->try_lock_with({"d/lock", Hold::alone, "d", "", 0});
  ASSERT_TRUE(made.ok()) << made.status().sentence();
  EXPECT_FALSE(made->object) << "nothing was asked for";
  EXPECT_EQ(other->try_lock_with({"d/lock", Hold::alone, "d", "d/o", 100}).status().kind(), Kind::busy);
  made->lock.reset();
  auto none = other->try_lock_with({"d/lock", Hold::alone, "", "d/o", 100});
  ASSERT_TRUE(none.ok() && none->object) << "the lock is held all the same";
  EXPECT_EQ(none->object->status().kind(), Kind::not_found);
  none->lock.reset();
  const Bytes large(40000, std::byte(1));
  for (const Bytes& content : {bytes("read"), large}) {
    ASSERT_TRUE(target_->put("d/o", content, false).ok());
    auto read = other->try_lock_with({"d/lock", Hold::shared, "", "d/o", 100000});
    ASSERT_TRUE(read.ok());
    EXPECT_EQ(target_->try_lock("d/lock").status().kind(), Kind::busy);
    if (read->object || content.size() < 100) {
      EXPECT_EQ(read->object->value(), content);
    }
  }
  EXPECT_FALSE(target_->try_lock_with({"none/lock", Hold::alone, "", "d/o", 100}).ok());
  EXPECT_EQ(target_->try_lock_with({"d/lock", Hold::alone, "../d", "", 0}).status().kind(), Kind::invalid);
}

TEST_P(AnyTarget, what_is_written_is_settled_with_it) {
  auto first = object("first"), second = object("second");
  const Bytes a = bytes("aaaa"), b = bytes("bb");
  const auto piece = [](const std::shared_ptr<Object>& object, uint64_t offset, const Bytes& from) {
    return Target::ObjectWrite{object, offset, {{const_cast<std::byte*>(from.data()), from.size()}}};
  };
  const Target::ObjectWrite writes[] = {piece(first, 0, a), piece(second, 1, b)};
  const std::shared_ptr<Object> written[] = {first, second};
  ASSERT_TRUE(target_->write_and_settle(writes, written, {}, true).ok());
  EXPECT_EQ(target_->get("first", 100).value(), a);
  EXPECT_EQ(target_->get("second", 100).value(), bytes(std::string("\0bb", 3)));
  const Bytes large(1200 << 10, std::byte(1));
  const Target::ObjectWrite more[] = {piece(first, 0, large)};
  ASSERT_TRUE(target_->write_and_settle(more, written, {}, true).ok()) << "more than an agent takes at once";
  EXPECT_EQ(first->size().value(), large.size());
  ASSERT_TRUE(target_->put("second", bytes("x"), false).ok());
  EXPECT_EQ(target_->write_and_settle(writes, written, {}, true).kind(), Kind::lost) << "it was replaced";
}

TEST_P(AnyTarget, space_is_told) {
  Space space = target_->space().value();
  EXPECT_GT(space.total_bytes, 0u);
  EXPECT_LE(space.free_bytes, space.total_bytes);
}

TEST_P(AnyTarget, an_object_may_be_used_from_several_threads) {
  auto o = object("o");
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 50; ++i) EXPECT_TRUE(write(*o, (i * 4 + t) * 100, Bytes(100, static_cast<std::byte>(t))).ok());
      EXPECT_TRUE(o->sync().ok());
    });
  }
  for (auto& thread : threads) thread.join();
  for (int k = 0; k < 200; ++k) EXPECT_EQ(read(*o, k * 100, 100), Bytes(100, static_cast<std::byte>(k % 4)));
}

}  // namespace
}  // namespace holdfast::target::any_target_tests
