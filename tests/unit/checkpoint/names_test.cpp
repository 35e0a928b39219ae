// Names: which paths are checkpoints, what local files are called, and what a job is told of its run.
#include <gtest/gtest.h>

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <thread>

#include <fmt/format.h>

#include "catalog/user_files.hpp"
#include "catalog/versions.hpp"
#include "checkpoint/local.hpp"
#include "checkpoint/pattern.hpp"
#include "checkpoint/roll.hpp"
#include "checkpoint/run.hpp"

namespace holdfast::checkpoint {
namespace {

Pattern pattern(const std::string& text) {
  auto parsed = Pattern::parse(text);
  EXPECT_TRUE(parsed.ok()) << parsed.status().sentence();
  return *parsed;
}

TEST(CheckpointPattern, says_step_and_rank_of_a_path) {
  const Pattern p = pattern("/run/ck/ck.{step}.{rank}");
  EXPECT_EQ(p.match("/run/ck/ck.30.2"), (Named{30, 2}));
  EXPECT_EQ(p.match("/run/ck/ck.00030.002"), (Named{30, 2}));
  for (const char* other : {"/run/ck/ck.30", "/run/ck/ck.30.", "/run/ck/ck.30.2.tmp", "/run/ck/ck.x.2", "/else/ck/ck.30.2", "/run/ck/ck..2",
                            "/run/ck/ck.99999999999999999999.1", "/run/ck/ck.1.4294967296", ""})
    EXPECT_FALSE(p.match(other)) << other;
  EXPECT_EQ(p.match("/run/ck/ck.9223372036854775807.1"), (Named{INT64_MAX, 1}));
  for (const char* no_manifest_has_it : {"/run/ck/ck.9223372036854775808.1", "/run/ck/ck.18446744073709551615.1"})
    EXPECT_FALSE(p.match(no_manifest_has_it)) << no_manifest_has_it;
  EXPECT_TRUE(p.may_lie_in("/run/ck"));
  for (const char* other : {"/run", "/run/ck/", "/run/ck2", "/run/ck/30", ""}) EXPECT_FALSE(p.may_lie_in(other)) << other;
  const Pattern steps = pattern("/run/ck{step}/r{rank}/of.{step}.dat");
  EXPECT_TRUE(steps.may_lie_in("/run/ck30/r2"));
  for (const char* other : {"/run/ck30", "/run/ck/r2", "/run/ck30/r2/of", "/run/ckx/r2"}) EXPECT_FALSE(steps.may_lie_in(other)) << other;
  for (const char* above : {"/run", "/run/ck", "/run/ck4", "/run/ck4/r7"}) EXPECT_TRUE(steps.may_lie_below(above)) << above;
  for (const char* other : {"/run/ck4/r7/deeper", "/runs", "/run/other", "/else"}) EXPECT_FALSE(steps.may_lie_below(other)) << other;
  const auto step_above = [](const Pattern& of, const char* directory) {
    const auto above = of.above(directory);
    return !above ? "none" : above->step ? fmt::format("{}", *above->step) : "any";
  };
  for (const char* any : {"/run", "/run/ck"}) EXPECT_EQ(step_above(p, any), "any") << any;
  for (const char* none : {"/else", "/run/ck2", "/run/ck/30", "/ru"}) EXPECT_EQ(step_above(p, none), "none") << none;
  for (const char* of_step : {"/run/ck30", "/run/ck30/r2"}) EXPECT_EQ(step_above(steps, of_step), "30") << of_step;
  for (const char* none : {"/run/ck", "/run/ck30/x", "/run/ck30/r2/deeper"}) EXPECT_EQ(step_above(steps, none), "none") << none;
  EXPECT_EQ(step_above(pattern("/run/p{rank}/{step}/u/t*"), "/run/p1"), "any");
  EXPECT_EQ(step_above(pattern("/run/p{rank}/{step}/u/t*"), "/run/p1/7/u"), "7");
  EXPECT_EQ(p.root(), "/run/ck");
  EXPECT_EQ(steps.root(), "/run");
  EXPECT_TRUE(p.may_be("ck.30.2"));
  EXPECT_FALSE(p.may_be("out.dat"));
  EXPECT_EQ(p.directory(), "/run/ck");
}

TEST(CheckpointPattern, takes_a_directory_for_each_step_and_fields_that_stand_twice) {
  const Pattern p = pattern("/run/step{step}/rank{rank}-of-{step}.chk");
  EXPECT_EQ(p.match("/run/step7/rank3-of-7.chk"), (Named{7, 3}));
  EXPECT_FALSE(p.match("/run/step7/rank3-of-8.chk"));
  EXPECT_TRUE(p.may_be("rank3-of-7.chk"));
  EXPECT_EQ(p.directory(), "");
}

TEST(CheckpointPattern, refuses_what_it_does_not_serve_in_one_sentence) {
  for (const char* bad :
       {"/ck.dat", "/ck.{step}.{node}", "/ck.{step}{rank}", "/ck/*.{rank}", "/ck/{step}/*{rank}", "/ck/{step}?/x", "shared:/r/*.dat", "/{"}) {
    const auto parsed = Pattern::parse(bad);
    ASSERT_FALSE(parsed.ok()) << bad;
    EXPECT_EQ(parsed.status().kind(), Kind::invalid);
    EXPECT_NE(parsed.status().sentence().find(bad), std::string::npos);
  }
}

TEST(CheckpointPattern, may_lack_the_step_or_the_rank) {
  const Pattern versions = pattern("/run/restart.{rank}"), of_all = pattern("/run/ck.{step}");
  EXPECT_FALSE(versions.has_step());
  EXPECT_EQ(versions.match("/run/restart.3"), (Named{0, 3}));
  EXPECT_FALSE(versions.match("/run/restart.3.tmp"));
  EXPECT_FALSE(of_all.has_rank());
  EXPECT_EQ(of_all.match("/run/ck.30"), (Named{30, 0}));
}

TEST(CheckpointPattern, takes_wildcards_as_a_shell_does) {
  const Pattern p = pattern("/run/ck/{step}/*.{rank}");
  EXPECT_TRUE(p.is_open());
  EXPECT_EQ(p.match("/run/ck/30/mesh.2"), (Named{30, 2}));
  EXPECT_EQ(p.match("/run/ck/30/mesh.1.2"), (Named{30, 2}));
  EXPECT_EQ(p.match("/run/ck/30/a.b.0002"), (Named{30, 2}));
  for (const char* other :
       {"/run/ck/30/.2", "/run/ck/30/.hidden.2", "/run/ck/30/mesh.", "/run/ck/30/mesh.x", "/run/ck/30/deep/mesh.2", "/run/ck/x/mesh.2"})
    EXPECT_FALSE(p.match(other)) << other;
  EXPECT_TRUE(p.may_lie_in("/run/ck/30"));
  EXPECT_FALSE(p.may_lie_in("/run/ck"));
  EXPECT_TRUE(p.may_be("mesh.2"));
  const Pattern parts = pattern("/run/ck/{step}/part*");
  EXPECT_FALSE(parts.has_rank());
  EXPECT_EQ(parts.match("/run/ck/30/part"), (Named{30, 0}));
  EXPECT_EQ(parts.match("/run/ck/30/part-7"), (Named{30, 0}));
  EXPECT_TRUE(parts.may_be("part-7"));
  EXPECT_FALSE(parts.may_be("whole"));
  const Pattern two = pattern("/run/??.d?*");
  for (const char* one : {"/run/ab.da", "/run/ab.dat"}) EXPECT_TRUE(two.match(one)) << one;
  for (const char* other : {"/run/a.da", "/run/abc.da", "/run/ab.d", "/run/.b.da"}) EXPECT_FALSE(two.match(other)) << other;
  const Pattern deep = pattern("/run/*/ck.{step}.?");
  EXPECT_EQ(deep.match("/run/a/ck.3.x"), (Named{3, 0}));
  for (const char* other : {"/run/a/b/ck.3.x", "/run/a/ck.3.xy", "/run/a/ck.3.", "/run/.a/ck.3.x"}) EXPECT_FALSE(deep.match(other)) << other;
  EXPECT_EQ(deep.directory(), "");
}

TEST(CheckpointPattern, one_file_has_the_same_stem_in_each_checkpoint) {
  const Pattern p = pattern("/run/ck/{step}/*.{rank}");
  EXPECT_EQ(p.stem("/run/ck/3/mesh.3"), "/run/ck/{step}/mesh.3");
  EXPECT_EQ(p.stem("/run/ck/4/mesh.3"), p.stem("/run/ck/3/mesh.3"));
  EXPECT_NE(p.stem("/run/ck/3/mesh.03"), p.stem("/run/ck/3/mesh.3"));
  EXPECT_NE(p.stem("/run/ck/03/mesh.3"), p.stem("/run/ck/3/mesh.3")) << "two files of one step";
  EXPECT_EQ(p.stem("/run/ck/03/mesh.3"), p.stem("/run/ck/04/mesh.3"));
}

TEST(CheckpointPatterns, have_no_places_for_what_wildcards_mean) {
  const auto patterns = Patterns::parse({"/ck/{step}/*.{rank}", "/head.{step}"}, {"/ck/{step}/DONE"});
  ASSERT_TRUE(patterns.ok()) << patterns.status().sentence();
  EXPECT_TRUE(patterns->are_rolled());
  EXPECT_TRUE(patterns->have_completing());
  EXPECT_EQ(patterns->files_of_all(3), 2u);
  const auto done = patterns->match("/ck/5/DONE"), head = patterns->match("/head.5"), mesh = patterns->match("/ck/5/mesh.2");
  ASSERT_TRUE(done && head && mesh);
  EXPECT_TRUE(patterns->completes(*done));
  EXPECT_FALSE(patterns->completes(*mesh));
  EXPECT_EQ((std::set<uint32_t>{patterns->place(*done, 3), patterns->place(*head, 3)}), (std::set<uint32_t>{0, 1}));
  EXPECT_EQ(patterns->place(*mesh, 3), 2u) << "beside them";
  EXPECT_EQ(patterns->stem("/ck/5/mesh.2"), "/ck/{step}/mesh.2");
  EXPECT_EQ(patterns->stem("/head.5"), "") << "it has a place";
  // What completes is that, whatever else it may be.
  const auto both = Patterns::parse({"/ck/{step}/*"}, {"/ck/{step}/DONE.{rank}"});
  EXPECT_TRUE(both->completes(*both->match("/ck/5/DONE.1")));
  EXPECT_EQ(both->place(*both->match("/ck/5/DONE.1"), 3), 1u);
  EXPECT_FALSE(both->completes(*both->match("/ck/5/else")));
  EXPECT_FALSE(Patterns::parse({"/ck.{step}.{rank}"})->are_rolled());
}

TEST(CheckpointPatterns, what_completes_is_refused_in_its_own_name) {
  const auto says = [](const std::vector<std::string>& texts, const std::string& completing) {
    const auto parsed = Patterns::parse(texts, {completing});
    return parsed ? std::string() : parsed.status().sentence();
  };
  EXPECT_NE(says({"/ck.{step}"}, "/done").find("--complete '/done': {step}, {rank} or both"), std::string::npos);
  EXPECT_NE(says({"/ck.{rank}"}, "/done.{rank}").find("--complete '/done.{rank}': a {step} must say which"), std::string::npos);
  EXPECT_NE(says({"/ck.{step}"}, "shared:/done.{step}").find("leave out 'shared:'"), std::string::npos);
  EXPECT_NE(says({}, "/done.{step}").find("no pattern says what checkpoints are"), std::string::npos);
}

TEST(CheckpointPatterns, give_each_file_of_a_checkpoint_a_place_of_its_own) {
  const auto patterns = Patterns::parse({"/ck.{step}.{rank}", "/head.{step}", "/mesh.{step}.{rank}"});
  ASSERT_TRUE(patterns.ok());
  constexpr uint32_t ranks = 3;
  EXPECT_EQ(patterns->files_of_all(ranks), 7u);
  std::set<uint32_t> places;
  for (const std::string path : {"/ck.5.0", "/ck.5.1", "/ck.5.2", "/head.5", "/mesh.5.0", "/mesh.5.1", "/mesh.5.2"}) {
    const auto named = patterns->match(path);
    ASSERT_TRUE(named) << path;
    EXPECT_EQ(named->step, 5u);
    places.insert(patterns->place(*named, ranks));
  }
  EXPECT_EQ(places, (std::set<uint32_t>{0, 1, 2, 3, 4, 5, 6}));
  EXPECT_GE(patterns->place(*patterns->match("/ck.5.3"), ranks), 7u) << "of a rank that the job has not";
  EXPECT_FALSE(patterns->match("/other.5"));
}

TEST(CheckpointPatterns, all_have_a_step_or_none_has) {
  EXPECT_TRUE(Patterns::parse({"/a.{rank}", "/b.{rank}"}).ok());
  const auto mixed = Patterns::parse({"/a.{rank}", "/b.{step}"});
  ASSERT_FALSE(mixed.ok());
  EXPECT_NE(mixed.status().sentence().find("all patterns have a {step}, or none has"), std::string::npos);
}

TEST(CheckpointNames, come_back_from_one_component) {
  const LocalName name{30, 2, 6, 3, "/home/me/a b|c%41/ck.30.2", 17, 5};
  const auto text = encode(name);
  ASSERT_TRUE(text.ok());
  EXPECT_EQ(text->find('/'), std::string::npos);
  EXPECT_EQ(decode_local_name(*text), name);
  LocalName of_another = name;
  of_another.writer = 6;
  EXPECT_EQ(decode_local_name(*encode(of_another)), of_another);
  EXPECT_EQ(decode_local_name("30.2of6.1~|ck"), (LocalName{30, 2, 6, 1, "/ck"})) << "of a writer that knows no order";
  EXPECT_EQ(decode_local_name("30.2of6.1.17~|ck"), (LocalName{30, 2, 6, 1, "/ck", 17})) << "of a writer that knows no turns";
  for (const LocalName::Kind kind : {LocalName::of_user, LocalName::roll_of_rank, LocalName::roll_of_all}) {
    const LocalName rolled{30, 0, 0, 3, "/ck/30/part", 17, 3, 6, 2, kind};
    EXPECT_EQ(decode_local_name(*encode(rolled)), rolled);
  }
  for (const char* other : {"30.0of0.1.7.2.x1of2~|a", "30.0of0.1.7.2.w1~|a", "30.0of0.1.7.2.w~|a", "30.0of0.1.7.2.~|a"})
    EXPECT_FALSE(decode_local_name(other)) << other;
  for (const char* other : {"", "ck.30.2", "30.2of6.1~", "30.2of6.1.~|a", "30.2of6.1.x~|a", "30.2of6.1.7.~|a", "30.2of6.1.7.x~|a", "30.2of6.1.7|a",
                            "30.2of6~x", "30.2of6.1~%zz", "30.2of6.1~%4", "x.2of6.1~|a"})
    EXPECT_FALSE(decode_local_name(other)) << other;
  EXPECT_EQ(encode(LocalName{1, 0, 1, 1, "/" + std::string(250, 'x')}).status().to_errno(), ENAMETOOLONG);
}

TEST(CheckpointRun, comes_back_from_its_variable_and_says_which_rank_is_where) {
  checkpoint::Run run{"0123456789abcdef", 3, checkpoint::Run::From{2, 40}, true, {"n2:/d/n2", "n5:/d/n5"}};
  EXPECT_EQ(*decode_run(encode(run)), run);
  EXPECT_EQ(node_of_rank(run, 0, "host"), "n2:/d/n2");
  EXPECT_EQ(node_of_rank(run, 3, "host"), "n5:/d/n5");
  run.simulated = false;
  run.from.reset();
  EXPECT_EQ(*decode_run(encode(run)), run);
  EXPECT_EQ(node_of_rank(run, 0, "n5"), "n5:/d/n5");
  EXPECT_EQ(node_of_rank(run, 0, "host"), "");
  run.attempt.id = 0x0199c2a5f4000b17, run.from = checkpoint::Run::From{{3, 0x0199c2a5f4000b16}, 40};
  EXPECT_EQ(*decode_run(encode(run)), run);
  EXPECT_EQ(decode_run(encode(run))->from->turn, 0u);
  run.from->turn = 17, run.from->times = 2;
  EXPECT_EQ(decode_run(encode(run))->from->turn, 17u);
  EXPECT_EQ(decode_run(encode(run))->from->times, 2u);
  EXPECT_TRUE(decode_run(encode(run))->from->last.empty());
  run.from->last_turn = 18, run.from->last_times = 3, run.from->last = {{"d835a1a2", {7, 2}}, {"3da5ea6a", {8000000000, 0}}};
  EXPECT_EQ(decode_run(encode(run))->from->last_turn, 18u);
  EXPECT_EQ(decode_run(encode(run))->from->last_times, 3u);
  EXPECT_EQ(decode_run(encode(run))->from->last, run.from->last);
  EXPECT_EQ(*decode_run(encode(run)), run);
  for (const char* bad : {"", "0123456789abcdef", "0123456789abcdef 0 0 0 nodes a", "0123456789abcdef 3.1 0 0 versions nodes a"})
    EXPECT_FALSE(decode_run(bad).ok()) << bad;
}

TEST(CheckpointRun, attempts_are_one_word) {
  EXPECT_EQ(text_of(layout::Attempt(3, 0x0199c2a5f4000b17)), "3.0199c2a5f4000b17");
  EXPECT_EQ(text_of(layout::Attempt(3)), "3");
  EXPECT_EQ(directory_of_attempt("0123456789abcdef", {3, 0xab}), ".checkpoints/0123456789abcdef/3.00000000000000ab");
  for (const layout::Attempt& one : {layout::Attempt(0), layout::Attempt(3), layout::Attempt(3, 1), layout::Attempt(~0u, ~0ull)})
    EXPECT_EQ(layout::parse_attempt(text_of(one)), one);
  for (const char* bad :
       {"", "x", "3x", "-1", "3.", "3.ab", "3.0000000000000000", "3.0199C2A5F4000B17", "3.0199c2a5f4000b17.", "4294967296", "3.0199c2a5f4000b1g"})
    EXPECT_FALSE(layout::parse_attempt(bad)) << bad;
}

// The time of its beginning says which is newer, then the number; those of before there were ids are the oldest.
TEST(CheckpointRun, attempts_are_in_the_order_of_their_beginning) {
  using layout::Attempt;
  EXPECT_LT(Attempt(7), Attempt(1, 1));
  EXPECT_LT(Attempt(7, 1), Attempt(1, 2));
  EXPECT_LT(Attempt(1), Attempt(2));
  EXPECT_LT(Attempt(1, 5), Attempt(2, 5));
  EXPECT_NE(Attempt(1, 5), Attempt(1, 6));
}

// Two jobs of one second, as a script starts them: the later one is the last.
TEST(CheckpointRun, names_sort_by_the_time_of_their_beginning) {
  const auto now = std::chrono::system_clock::time_point(std::chrono::seconds(1'700'000'000));
  for (int time = 0; time < 20; ++time) {
    const std::string first = new_run(now), second = new_run(now + std::chrono::microseconds(1));
    EXPECT_EQ(first.size(), 16u);
    EXPECT_LT(first, second);
    EXPECT_LT(new_run(now + std::chrono::microseconds(999'999)), new_run(now + std::chrono::seconds(1)));
  }
}

TEST(CheckpointRun, is_later_than_the_one_before_whatever_the_clock_says) {
  const auto now = std::chrono::system_clock::time_point(std::chrono::seconds(1'700'000'000));
  for (const auto ahead : {std::chrono::microseconds(0), std::chrono::microseconds(999'999), std::chrono::microseconds(86'400'000'000)}) {
    const std::string before = new_run(now + ahead), run = new_run(now, before);
    EXPECT_TRUE(is_run(run));
    EXPECT_LT(before, run);
  }
  const std::string early = new_run(now - std::chrono::hours(1));
  EXPECT_EQ(new_run(now, early).substr(0, 13), new_run(now).substr(0, 13));
  for (const std::string forged : {"", "zz", "ffffffffffffffff", "FFFFFFFF00000abc"})
    EXPECT_EQ(new_run(now, forged).substr(0, 13), new_run(now).substr(0, 13)) << "nothing is later than " << forged;
}

TEST(CheckpointGroups, are_disjoint_and_what_is_left_over_goes_to_the_last_ones) {
  const std::vector<std::string> nodes{"a", "b", "c", "d", "e", "f", "g", "h"};
  using Group = std::vector<std::string>;
  EXPECT_EQ(catalog::group_of(nodes, "b", 3), (Group{"b", "c", "d", "a"}));
  EXPECT_EQ(catalog::group_of(nodes, "d", 3), (Group{"d", "a", "b", "c"}));
  EXPECT_EQ(catalog::group_of(nodes, "h", 3), (Group{"h", "e", "f", "g"}));
  EXPECT_EQ(catalog::group_of({"a", "b", "c", "d", "e", "f", "g"}, "b", 3), (Group{"b", "c", "a"}));
  EXPECT_EQ(catalog::group_of({"a", "b", "c", "d", "e", "f", "g"}, "d", 3), (Group{"d", "e", "f", "g"}));
  EXPECT_EQ(catalog::group_of(nodes, "c", 6).size(), 8u);
  EXPECT_EQ(catalog::group_of(nodes, "c", 9).size(), 8u) << "a degraded version";
  EXPECT_EQ(catalog::group_of(nodes, "x", 3), Group());
}

// A node that is to keep none of its own units is the last of a group with one more.
TEST(CheckpointGroups, may_have_the_writer_come_last) {
  const std::vector<std::string> nodes{"a", "b", "c", "d", "e", "f", "g", "h"};
  using Group = std::vector<std::string>;
  EXPECT_EQ(catalog::keepers_of(nodes, "b", 3, {}, false), catalog::group_of(nodes, "b", 3));
  EXPECT_EQ(catalog::keepers_of(nodes, "b", 3, {}, true), (Group{"c", "d", "a", "b"}));
  EXPECT_EQ(catalog::keepers_of({"a", "b", "c"}, "b", 3, {}, true), (Group{"c", "a", "b"})) << "too few for any such group";
  EXPECT_EQ(catalog::keepers_of(nodes, "x", 3, {}, true), Group());
}

// Twelve nodes in three racks, and four that their file does not name: no group of six has more of a rack than it must.
TEST(CheckpointGroups, have_no_more_of_a_rack_than_they_must) {
  using Group = std::vector<std::string>;
  Group nodes;
  catalog::Domains domains;
  for (int i = 0; i < 12; ++i) {
    nodes.push_back(fmt::format("n{}:/d", 10 + i));
    domains[fmt::format("n{}", 10 + i)] = {fmt::format("r{}", i / 4), ""};
  }
  for (int unnamed = 0; unnamed <= 4; unnamed += 4) {
    for (int i = 0; i < unnamed; ++i) nodes.push_back(fmt::format("x{}:/d", i));
    for (const std::string& own : nodes) {
      const Group group = catalog::group_of(nodes, own, 6, domains);
      ASSERT_GE(group.size(), 6u);
      EXPECT_EQ(group.front(), own);
      std::map<std::string, int> racks;
      for (size_t i = 0; i < 6; ++i) {
        const auto rack = domains.find(group[i].substr(0, 3));
        if (rack == domains.end()) continue;
        EXPECT_LE(++racks[rack->second.rack], 2) << own;
      }
      // Each of its nodes has the same group.
      const Group other = catalog::group_of(nodes, group.back(), 6, domains);
      EXPECT_TRUE(std::is_permutation(group.begin(), group.end(), other.begin(), other.end())) << own;
    }
  }
  EXPECT_EQ(catalog::group_of(nodes, "n10:/d", 6, {}), catalog::group_of(nodes, "n10:/d", 6));
}

class CheckpointLocal : public ::testing::Test {
 protected:
  CheckpointLocal() {
    char name[] = "/tmp/holdfast-local-XXXXXX";
    directory = ::mkdtemp(name);
    files.emplace(directory, "0123456789abcdef", 1);
    EXPECT_TRUE(files->make().ok());
  }
  ~CheckpointLocal() override { (void)!std::system(("rm -rf " + directory).c_str()); }
  LocalName put(State state, uint32_t number) {
    const LocalName name{30, 2, 6, number, "/ck/ck.30.2"};
    write(state, name, std::to_string(number));
    return name;
  }
  void write(State state, const LocalName& name, const std::string& text) {
    const std::string path = files->path(state, name);
    std::filesystem::create_directories(std::filesystem::path(path).parent_path());
    std::ofstream(path) << text;
  }
  bool is_made(State state) const { return std::filesystem::exists(files->directory() + "/" + state_name(state)); }
  std::string directory;
  std::optional<LocalFiles> files;
};

TEST_F(CheckpointLocal, the_newest_number_of_a_file_is_what_is_seen) {
  EXPECT_FALSE(files->newest("/ck/ck.30.2"));
  put(State::restored, 0);
  EXPECT_EQ(files->newest("/ck/ck.30.2")->state, State::restored);
  put(State::kept, 1);
  const LocalName second = put(State::writing, 2);
  EXPECT_EQ(files->newest("/ck/ck.30.2")->name, second);
  EXPECT_TRUE(files->move(second, State::writing, State::torn).ok());
  EXPECT_EQ(files->newest("/ck/ck.30.2")->name.number, 1u) << "a torn one is not to be seen";
  EXPECT_EQ(files->last_number("/ck/ck.30.2"), 2u) << "and its number is not given again";
  EXPECT_FALSE(files->newest("/ck/ck.30.3"));
}

TEST_F(CheckpointLocal, directories_of_rare_states_are_made_when_something_comes_there) {
  for (const State state : all_states) EXPECT_EQ(is_made(state), !is_rare(state)) << state_name(state);
  const LocalName name = put(State::writing, 1);
  EXPECT_EQ(files->newest(name.file)->state, State::writing);
  EXPECT_TRUE(files->move(name, State::writing, State::torn).ok());
  EXPECT_TRUE(files->say_why(name, "no more").ok());
  EXPECT_TRUE(files->move(name, State::torn, State::failed).ok());
  EXPECT_EQ(files->why(name), "no more");
  EXPECT_EQ(files->list(State::failed), std::vector{name}) << "the reason is no file";
  EXPECT_TRUE(files->hide(name).ok());
  EXPECT_TRUE(files->is_hidden(name.file));
  for (const State state : {State::torn, State::failed, State::hidden}) EXPECT_TRUE(is_made(state)) << state_name(state);
  EXPECT_EQ(files->move(name, State::writing, State::twin).kind(), Kind::not_found) << "there is no such file";
  EXPECT_EQ(files->move(name, State::writing, State::kept).kind(), Kind::not_found);
}

TEST_F(CheckpointLocal, a_listing_says_of_all_files_what_a_look_says_of_each) {
  const auto other = [&](State state, uint64_t step) {
    const LocalName name{step, 0, 1, 1, "/ck/ck." + std::to_string(step)};
    write(state, name, std::to_string(step));
    return name;
  };
  for (const State state : {State::writing, State::closed, State::protecting, State::kept, State::restored, State::failed, State::torn})
    other(state, uint64_t(state) + 100);
  EXPECT_TRUE(files->hide(other(State::kept, 1)).ok());
  const LocalName again = put(State::kept, 1);
  EXPECT_TRUE(files->hide(again).ok());
  put(State::closed, 2);
  const auto seen = files->see();
  for (const State state : all_states)
    for (const LocalName& name : files->list(state)) {
      EXPECT_EQ(seen.there.count(name.file) > 0, files->newest(name.file).has_value()) << name.file;
      EXPECT_EQ(seen.removed.count(name.file) > 0, files->is_hidden(name.file)) << name.file;
    }
  EXPECT_EQ(seen.there.size(), 7u);
  ASSERT_EQ(seen.removed.size(), 1u);
  EXPECT_EQ(seen.removed.begin()->first, "/ck/ck.1");
}

TEST_F(CheckpointLocal, who_has_a_file_open_to_write_has_a_name_there) {
  const LocalName name = put(State::writing, 1);
  const std::string self = this_process();
  EXPECT_EQ(self, this_process());
  EXPECT_TRUE(self.starts_with(std::to_string(::getpid()) + ".")) << self;
  EXPECT_TRUE(files->opened(name, self).ok());
  EXPECT_FALSE(files->is_open_to_others(name, self));
  LocalName later = name;
  later.step = 40, later.written = 9;
  EXPECT_TRUE(files->opened(later, "1.0").ok());
  EXPECT_TRUE(files->is_open_to_others(name, self)) << "of whatever step it is by now";
  LocalName next = name;
  next.number = 2;
  EXPECT_FALSE(files->is_open_to_others(next, self)) << "written anew";
  files->no_longer(name, "1.0");
  EXPECT_FALSE(files->is_open_to_others(name, self));
}

TEST_F(CheckpointLocal, the_dead_are_forgotten_and_the_living_are_not) {
  const LocalName name = put(State::writing, 1);
  const std::string self = this_process(), before = std::to_string(::getpid()) + ".1";
  for (const std::string& who : {self, before, std::string("4194303.7")}) EXPECT_TRUE(files->opened(name, who).ok());
  {
    const int fd = open_for_program(files->path(State::writing, name), O_WRONLY | O_CLOEXEC, 0);
    files->forget_dead(name);
    ::close(fd);
  }
  files->no_longer(name, self);
  EXPECT_TRUE(files->is_open_to_others(name, self)) << "while somebody writes nothing is known of who that is";
  EXPECT_TRUE(files->opened(name, self).ok());
  files->forget_dead(name);
  EXPECT_FALSE(files->is_open_to_others(name, self)) << "a number that came again is another process";
  EXPECT_TRUE(files->is_open_to_others(name, "")) << "this one lives";
}

// What shares descriptors with a process ends after that, also where it was killed with it.
TEST_F(CheckpointLocal, the_dead_whose_descriptors_live_a_moment_longer_are_forgotten) {
  const LocalName name = put(State::writing, 1);
  EXPECT_TRUE(files->opened(name, "4194303.7").ok());
  const int fd = open_for_program(files->path(State::writing, name), O_WRONLY | O_CLOEXEC, 0);
  std::thread other([fd] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    ::close(fd);
  });
  files->forget_dead(name);
  other.join();
  EXPECT_FALSE(files->is_open_to_others(name, "")) << "whoever closes it now closes it last";
}

TEST_F(CheckpointLocal, a_rank_rolls_what_it_has_written_of_a_step) {
  const auto write = [&](State state, const std::string& file, uint64_t step, uint32_t number, uint64_t at, uint32_t writer = 1) {
    const LocalName name{step, 0, 0, number, file, at, 1, 2, writer};
    this->write(state, name, "content");
    return name;
  };
  write(State::kept, "/ck/10/a", 10, 1, 1);
  const LocalName again = write(State::closed, "/ck/10/a", 10, 2, 5);
  const LocalName open = write(State::writing, "/ck/10/b", 10, 1, 2);
  const LocalName torn = write(State::torn, "/ck/10/c", 10, 1, 3);
  write(State::restored, "/ck/10/old", 10, 0, 0);
  write(State::closed, "/ck/10/of another rank", 10, 1, 4, 0);
  write(State::closed, "/ck/20/a", 20, 1, 6);
  const OfRank own = of_rank(*files, 1);
  ASSERT_EQ(own.files.size(), 2u);
  EXPECT_EQ(own.files.at(10), (std::vector<LocalName>{again, open, torn}));
  EXPECT_TRUE(roll(*files, own, open, own.files.at(10)).ok());
  const OfRank rolled = of_rank(*files, 1);
  ASSERT_TRUE(rolled.rolls.contains(10));
  EXPECT_EQ(rolled.files, own.files) << "it is no file of the user's";
  const LocalName note = rolled.rolls.at(10);
  const auto content = catalog::read_small(files->path(State::closed, note), 4096);
  const auto patterns = Patterns::parse({"/ck/{step}/*"});
  const auto version = version_of(note, {"0123456789abcdef", 1, {}, false, {}}, *patterns, *content);
  ASSERT_TRUE(version.ok()) << version.status().sentence();
  EXPECT_EQ(version->roll, (layout::Roll{false, {{"/ck/10/a", 2, 5}, {"/ck/10/b", 1, 2}, {"/ck/10/c", 1, 3}}}));
  EXPECT_EQ(version->writer, 1u);
  EXPECT_EQ(name_of(*version), note);
  // What it has removed since is not listed, unless it is written again.
  LocalName removed = open;
  EXPECT_TRUE(files->hide(removed).ok());
  EXPECT_EQ(of_rank(*files, 1).files.at(10), (std::vector<LocalName>{again, torn}));
  removed.number = 0;
  for (const LocalName& note : files->list(State::hidden)) EXPECT_TRUE(catalog::unlink_file(files->path(State::hidden, note)).ok());
  EXPECT_TRUE(files->hide(removed).ok());
  EXPECT_EQ(of_rank(*files, 1).files.at(10).size(), 3u);
  // The same is not said twice, and something newer is.
  EXPECT_TRUE(roll(*files, rolled, open, rolled.files.at(10)).ok());
  EXPECT_EQ(of_rank(*files, 1).rolls.at(10).number, 1u);
  write(State::closed, "/ck/10/d", 10, 1, 7);
  const OfRank later = of_rank(*files, 1);
  EXPECT_TRUE(roll(*files, later, open, later.files.at(10)).ok());
  EXPECT_EQ(of_rank(*files, 1).rolls.at(10).number, 2u);
  EXPECT_FALSE(files->newest(note.file)) << "no program sees it";
}

TEST_F(CheckpointLocal, a_removed_file_is_hidden_until_it_is_written_anew) {
  const LocalName first = put(State::kept, 1);
  EXPECT_TRUE(files->hide(first).ok());
  EXPECT_FALSE(files->newest("/ck/ck.30.2"));
  EXPECT_TRUE(files->is_hidden("/ck/ck.30.2"));
  put(State::writing, 2);
  EXPECT_EQ(files->newest("/ck/ck.30.2")->name.number, 2u);
  EXPECT_FALSE(files->is_hidden("/ck/ck.30.2"));
}

TEST_F(CheckpointLocal, what_is_older_than_a_version_whose_copy_gave_way_is_not_seen) {
  const auto state_of = [&] { return files->newest("/ck/ck.30.2") ? std::optional(files->newest("/ck/ck.30.2")->state) : std::nullopt; };
  put(State::restored, 0);
  put(State::failed, 1);
  EXPECT_TRUE(files->evict(put(State::kept, 2)).ok());
  EXPECT_FALSE(state_of());
  EXPECT_TRUE(files->see().there.empty());
  EXPECT_EQ(files->evicted_number("/ck/ck.30.2"), 2u);
  EXPECT_EQ(files->evicted_number("/ck/ck.30.3"), std::nullopt);
  put(State::restored, 2);
  EXPECT_EQ(state_of(), State::restored) << "that version, from the pool";
  EXPECT_EQ(files->evicted_number("/ck/ck.30.2"), std::nullopt);
  EXPECT_EQ(files->see().there.size(), 1u);
  put(State::closed, 3);
  EXPECT_EQ(state_of(), State::closed);
}

TEST_F(CheckpointLocal, a_version_whose_copy_gave_way_is_removed_only_after_it_was_written) {
  EXPECT_TRUE(files->hide(put(State::kept, 1)).ok());
  const LocalName second = put(State::kept, 2);
  EXPECT_TRUE(files->evict(second).ok());
  EXPECT_FALSE(files->newest("/ck/ck.30.2"));
  EXPECT_FALSE(files->is_hidden("/ck/ck.30.2"));
  EXPECT_TRUE(files->see().removed.empty());
  EXPECT_TRUE(files->hide(second).ok());
  EXPECT_TRUE(files->is_hidden("/ck/ck.30.2"));
  EXPECT_EQ(files->evicted_number("/ck/ck.30.2"), std::nullopt);
  EXPECT_EQ(files->see().removed.size(), 1u);
}

TEST_F(CheckpointLocal, a_writer_is_known_to_the_kernel_whatever_its_descriptor) {
  const LocalName name = put(State::closed, 1);
  const std::string path = files->path(State::closed, name);
  EXPECT_FALSE(has_writers(path));
  const int fd = open_for_program(path, O_RDWR | O_CLOEXEC, 0);
  EXPECT_TRUE(has_writers(path));
  const int other = ::dup(fd);
  ::close(fd);
  EXPECT_TRUE(has_writers(path)) << "a duplicate";
  void* const mapped = ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, other, 0);
  ::close(other);
  EXPECT_TRUE(has_writers(path)) << "a mapping";
  ::munmap(mapped, 4096);
  EXPECT_FALSE(has_writers(path));
  const int reader = open_for_program(path, O_RDONLY | O_CLOEXEC, 0);
  EXPECT_FALSE(has_writers(path));
  ::close(reader);
}

// A file that completes a checkpoint, and is named as one of it as well.
TEST(Patterns, that_are_named_twice_count_once) {
  const auto once = Patterns::parse({"/ck/{step}/a.{rank}"}, {"/ck/{step}/DONE"});
  const auto twice = Patterns::parse({"/ck/{step}/a.{rank}", "/ck/{step}/DONE", "/ck/{step}/a.{rank}"}, {"/ck/{step}/DONE"});
  ASSERT_TRUE(once && twice);
  EXPECT_EQ(twice->files_of_all(2), once->files_of_all(2));
  EXPECT_TRUE(twice->completes(*twice->match("/ck/1/DONE")));
}

}  // namespace
}  // namespace holdfast::checkpoint
