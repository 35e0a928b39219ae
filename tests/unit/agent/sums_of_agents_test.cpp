// What nodes' agents compute where the bytes lie: checksums, and sums that they make together.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <thread>
#include <utility>

#include "coding/checksum.hpp"
#include "coding/kernel.hpp"
#include "unit/agent/agent_fixture.hpp"

namespace holdfast::agent {
namespace {

using target::SumTerm;

class SumsOfAgents : public AgentOverSockets {
 protected:
  static constexpr int agents = 3;

  void SetUp() override {
    setenv("HOLDFAST_AGENTS", (home_.path() + "/agents").c_str(), 1);
    std::mt19937_64 random(3);
    for (int i = 0; i < agents; ++i) {
      begin(i);
      auto& content = contents_[size_t(i)];
      content.resize(bytes - size_t(i) * 1000);
      for (std::byte& one : content) one = std::byte(random());
      const auto object = *target::open(address(i))->get()->open("o", OpenMode::create);
      const iovec from{content.data(), content.size()};
      ASSERT_TRUE(object->write(offset, {&from, 1}).ok());
    }
  }
  void TearDown() override {
    for (int i = 0; i < agents; ++i) end(i);
    unsetenv("HOLDFAST_AGENTS");
  }
  static std::string node(int i) { return "n" + std::to_string(i + 1); }
  std::string address(int i) const { return node(i) + ":" + directories_[size_t(i)].path(); }
  void begin(int i) {
    ASSERT_EQ(start_agent({node(i), home_.path() + "/agents", {directories_[size_t(i)].path()}, transport::Reach::loopback, 0}, processes_[i]),
              "ok\n");
  }
  void end(int i) { kill_agent(processes_[i]); }
  std::vector<SumTerm> terms() const {
    std::vector<SumTerm> all;
    for (int i = 0; i < agents; ++i) all.push_back({address(i), "o", offset, bytes, uint8_t(7 + 50 * i)});
    return all;
  }
  Bytes expected() const {
    Bytes sum(bytes);
    for (int i = 0; i < agents; ++i) coding::add_times(uint8_t(7 + 50 * i), contents_[size_t(i)].data(), sum.data(), contents_[size_t(i)].size());
    return sum;
  }

  static constexpr size_t bytes = 700'000, offset = 4321;
  TemporaryDirectory directories_[agents];
  pid_t processes_[agents] = {};
  Bytes contents_[agents];
};

TEST_F(SumsOfAgents, are_made_of_what_each_of_them_has) {
  const auto first = *target::open_beside(address(0));
  Bytes sum(bytes, std::byte(9));
  for (int times = 0; times < 3; ++times) {
    const Status made = first->sum(terms(), sum);
    ASSERT_TRUE(made.ok()) << made.sentence();
    EXPECT_EQ(sum, expected());
  }
  const auto last = terms().back();
  Bytes alone(last.bytes), wanted(last.bytes);
  ASSERT_TRUE((*target::open_beside(address(2)))->sum({&last, 1}, alone).ok());
  coding::add_times(last.coefficient, contents_[2].data(), wanted.data(), contents_[2].size());
  EXPECT_EQ(alone, wanted);
}

// Who asked hears why, and the session goes on.
TEST_F(SumsOfAgents, cannot_be_had_without_one_of_them_and_can_when_it_is_back) {
  const auto first = *target::open_beside(address(0));
  Bytes sum(bytes);
  ASSERT_TRUE(first->sum(terms(), sum).ok());
  end(2);
  EXPECT_FALSE(first->sum(terms(), sum).ok());
  auto missing = terms();
  missing.pop_back(), missing[1].object = "none";
  EXPECT_EQ(first->sum(missing, sum).kind(), Kind::not_found);
  begin(2);
  const Status made = first->sum(terms(), sum);
  ASSERT_TRUE(made.ok()) << made.sentence();
  EXPECT_EQ(sum, expected());
}

TEST_F(SumsOfAgents, several_at_once_are_each_right) {
  std::vector<std::shared_ptr<target::Target>> askers;
  for (int i = 0; i < 4; ++i) askers.push_back(*target::open_beside(address(i % agents)));
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&, i] {
      auto turned = terms();
      std::rotate(turned.begin(), turned.begin() + i % agents, turned.end());
      for (int times = 0; times < 10; ++times) {
        Bytes sum(bytes);
        EXPECT_TRUE(askers[size_t(i)]->sum(turned, sum).ok());
        EXPECT_EQ(sum, expected());
      }
    });
  for (std::thread& one : threads) one.join();
}

// What the object does not have counts as zeros.
TEST_F(SumsOfAgents, checksums_are_those_of_the_bytes) {
  constexpr uint32_t block = 4096, count = 180;
  const auto object = *(*target::open_beside(address(1)))->open("o", OpenMode::read);
  const target::CheckedBlocks asked{offset, count, block, 11, 12, 3, 5};
  const auto sums = object->checksums(asked);
  ASSERT_TRUE(sums.ok()) << sums.status().sentence();
  Bytes all = contents_[1];
  all.resize(size_t(block) * count);
  for (uint32_t i = 0; i < count; ++i)
    ASSERT_EQ((*sums)[i], coding::block_checksum(11, 12, 3, 5 + i, ByteView(all).subspan(size_t(i) * block, block))) << i;
}

}  // namespace
}  // namespace holdfast::agent
