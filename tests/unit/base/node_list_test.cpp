// Many nodes in few words, and back.
#include "base/node_list.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include <fmt/format.h>

namespace holdfast {
namespace {

using testing::ElementsAre;

std::vector<std::string> names_of(const std::string& element) {
  std::vector<std::string> names;
  EXPECT_TRUE(expand_names(element, names)) << element;
  return names;
}

TEST(NodeList, numbers_in_brackets_are_names) {
  EXPECT_THAT(names_of("n[1-3,07]-ib"), ElementsAre("n1-ib", "n2-ib", "n3-ib", "n07-ib"));
  EXPECT_THAT(names_of("n[08-10]"), ElementsAre("n08", "n09", "n10"));
  EXPECT_THAT(names_of("r[1-2]n[8-9]"), ElementsAre("r1n8", "r1n9", "r2n8", "r2n9"));
  EXPECT_THAT(names_of("n1"), ElementsAre("n1"));
  std::vector<std::string> none;
  for (const char* senseless : {"n[1-3", "n1]", "n[]", "n[3-1]", "n[a]", "n[1-99999999999]", "n[1-999999,1-999999]"})
    EXPECT_FALSE(expand_names(senseless, none)) << senseless;
}

TEST(NodeList, names_that_differ_in_the_number_at_their_end_are_said_together) {
  const std::vector<std::string> names{"n1", "n2", "n3", "n7", "n08", "n09", "n10", "m1", "n", "x2-ib", "x2-ic", "n99999999999999999999"};
  EXPECT_EQ(names_in_few_words(names, ','), "n[1-3,7,08-10],m1,n,x2-ib,x2-ic,n99999999999999999999");
  EXPECT_EQ(names_in_few_words(std::vector<std::string>{"10", "11"}, ','), "[10-11]");
  EXPECT_EQ(names_in_few_words({}, ','), "");
}

TEST(NodeList, directories_of_many_nodes_are_one_element) {
  const auto all = expand_directories("n[1-2];m:/a-{node}:/b, /plain,n3:/a/{node},");
  ASSERT_TRUE(all);
  EXPECT_THAT(*all, ElementsAre("n1:/a-n1", "n1:/b", "n2:/a-n2", "n2:/b", "m:/a-m", "m:/b", "/plain", "n3:/a/{node}"));
  for (const char* senseless : {"n[1-2;x:/a", "n[a]:/a", "n[1,2;3]:/a", ";:/a", "n 1;n2:/a"})
    EXPECT_FALSE(expand_directories(senseless)) << senseless;
  EXPECT_THAT(*expand_directories("a[1,b],c[2"), ElementsAre("a[1", "b]", "c[2")) << "directories as they were before";
}

TEST(NodeList, what_is_said_in_few_words_is_what_it_was) {
  const std::vector<std::string> several[] = {
      {},
      {"/a", "/b"},
      {"n1:/a", "/b", "n2:/a"},
      {"n1:/a-n1", "n2:/a-n2", "n3:/a-n3"},
      {"n1:/a-n1", "n1:/b", "n2:/a-n2", "n2:/b", "n3:/b"},
      {"n1:/scan1/n1", "n2:/scan1/n2", "n3:/scan1/n3"},  // a directory that has a node's name in it
      {"n1:/a/{node}", "n2:/a/{node}", "n3:/a:/b", "n4:/a:/b"},
      {"10-20:/a", "10-21:/a", "10:/a", "11:/a"},
      {"n1:/a,\\,b\\n1", "n2:/a,\\,b\\n2", "/c,\\"},  // commas and backslashes in names
  };
  for (const auto& directories : several) {
    std::vector<std::string> escaped;
    for (const std::string& directory : directories) escaped.push_back(with_escaped_commas(directory));
    EXPECT_EQ(expand_directories(directories_in_few_words(escaped)), directories);
  }
  EXPECT_EQ(directories_in_few_words(several[3]), "n[1-3]:/a-{node}");
  EXPECT_EQ(directories_in_few_words(several[4]), "n[1-2]:/a-{node}:/b,n3:/b");
}

TEST(NodeList, what_is_said_in_few_words_is_what_it_was_whatever_the_names) {
  std::mt19937 random(1);
  const auto one_of = [&](std::initializer_list<const char*> words) { return std::string(words.begin()[random() % words.size()]); };
  for (int round = 0; round < 2000; ++round) {
    std::vector<std::string> directories;
    for (size_t count = random() % 12; directories.size() < count;) {
      const std::string node = one_of({"n", "n", "n0", "9", "a.b-", ""}) + std::to_string(random() % 12);
      const std::string path = one_of({"/a", "/a-", "/n1/", "/{node}", "/a:/b"}) + one_of({"", "x", node.c_str()});
      directories.push_back(random() % 8 ? node + ":" + path : path);
    }
    ASSERT_EQ(expand_directories(directories_in_few_words(directories)), directories) << directories_in_few_words(directories);
  }
}

TEST(NodeList, of_twenty_thousand_nodes_is_short_where_their_names_are_alike) {
  std::vector<std::string> directories;
  for (int node = 1; node <= 20000; ++node) directories.push_back(fmt::format("node{:05}:/local/scratch/hf-node{:05}", node, node));
  EXPECT_EQ(directories_in_few_words(directories), "node[00001-20000]:/local/scratch/hf-{node}");
}

}  // namespace
}  // namespace holdfast
