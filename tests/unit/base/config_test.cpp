#include "base/config.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>

#include <fmt/format.h>

#include "base/settings/record.hpp"
#include "layout/geometry.hpp"

namespace holdfast {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

const char* const all_keys[] = {"protect",
                                "replication_factor",
                                "targets",
                                "path",
                                "placement",
                                "striping_unit",
                                "striping_factor",
                                "start_iodevice",
                                "allow_shared_target",
                                "close",
                                "deadline",
                                "patience",
                                "locks",
                                "lock_patience",
                                "accept_epoch",
                                "buffer_bytes",
                                "log_directory",
                                "buffer",
                                "gather_output",
                                "shared_pointer",
                                "merge",
                                "max_metadata_records",
                                "ordered",
                                "mounts",
                                "shared_mounts",
                                "local_mounts",
                                "cb_nodes",
                                "buffer_flush",
                                "profile",
                                "profile_mpi",
                                "trace",
                                "profile_exclude"};

std::string variable(std::string name) {
  for (char& c : name) c = char(toupper(c));
  return "HOLDFAST_" + name;
}

// Each test runs in an empty directory of its own with no HOLDFAST_ variable set.
class Config : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/holdfast-config-XXXXXX";
    directory = mkdtemp(name);
    before = std::filesystem::current_path();
    std::filesystem::current_path(directory);
    clear_environment();
  }
  void TearDown() override {
    clear_environment();
    std::filesystem::current_path(before);
    std::filesystem::remove_all(directory);
  }
  static void clear_environment() {
    unsetenv("HOLDFAST_CONFIG");
    for (const char* key : all_keys) unsetenv(variable(key).c_str());
    unsetenv("HOLDFAST_LOCAL");
    for (int part = 2; part < 20; ++part) unsetenv(fmt::format("HOLDFAST_LOCAL_{}", part).c_str());
  }
  void file(const std::string& text, const std::string& name = "holdfast.toml") { std::ofstream(name) << text; }
  static void set(const char* name, const std::string& value) { setenv(name, value.c_str(), 1); }
  std::string failure() {
    auto loaded = Settings::load();
    EXPECT_FALSE(loaded.ok());
    return loaded.status().sentence();
  }
  std::string directory;
  std::filesystem::path before;
};

TEST_F(Config, without_any_source_nothing_is_protected) {
  auto s = Settings::load();
  ASSERT_TRUE(s.ok());
  EXPECT_FALSE(s->protects());
  EXPECT_EQ(s->deadline_ms, 10000u);
  EXPECT_TRUE(s->hints().empty());
  EXPECT_TRUE(s->check().ok());
}

TEST_F(Config, environment_wins_over_the_file_and_options_and_hints_over_both) {
  file("protect = \"mirror:2\"\nplacement = \"separate\"\ndeadline = 3\n");
  set("HOLDFAST_PROTECT", "mirror:3");
  auto s = Settings::load();
  ASSERT_TRUE(s.ok()) << s.status().sentence();
  EXPECT_EQ(s->protect, "mirror:3");
  EXPECT_EQ(s->placement, "separate");
  EXPECT_EQ(s->deadline_ms, 3000u);
  ASSERT_TRUE(s->apply_option("protect", "rs:2+1").ok());
  EXPECT_EQ(s->protect, "rs:2+1");
  ASSERT_TRUE(s->apply_hint("replication_factor", "4").ok());
  EXPECT_EQ(s->protect, "mirror:4");
  EXPECT_TRUE(s->check().ok()) << "a higher source is no contradiction";
}

TEST_F(Config, a_named_file_is_read_in_the_place_of_the_one_here_and_must_exist) {
  file("protect = \"mirror:2\"");
  file("protect = \"rs:4+2\"", "other.toml");
  set("HOLDFAST_CONFIG", "other.toml");
  EXPECT_EQ(Settings::load()->protect, "rs:4+2");
  EXPECT_EQ(Settings::load_with("holdfast.toml")->protect, "mirror:2");
  set("HOLDFAST_CONFIG", "");
  EXPECT_FALSE(Settings::load()->protects());
  set("HOLDFAST_CONFIG", "missing.toml");
  EXPECT_THAT(failure(), AllOf(HasSubstr("missing.toml"), HasSubstr("No such file")));
}

TEST_F(Config, every_bad_value_is_one_sentence_with_the_key_the_value_and_what_is_allowed) {
  const struct {
    const char *key, *value, *allowed;
  } bad[] = {
      {"protect", "raid5", "rs:K+M"},        {"protect", "mirror:9", "1 to 8"},
      {"protect", "rs:33+2", "1 to 32"},     {"protect", "rs:4+0", "M from 1"},
      {"replication_factor", "0", "1 to 8"}, {"targets", "/a,/b,/a/", "once"},
      {"placement", "mixed", "separate"},    {"striping_unit", "1000", "4096"},
      {"striping_unit", "1GiB", "256MiB"},   {"striping_factor", "many", "number"},
      {"start_iodevice", "-2", "-1"},        {"allow_shared_target", "maybe", "true or false"},
      {"close", "soon", "durable or fast"},  {"deadline", "0", "1ms"},
      {"patience", "0", "from 1 to 1000"},   {"locks", "some", "kernel or names"},
      {"lock_patience", "0", "1ms"},         {"deadline", "10 parsecs", "500ms"},
      {"accept_epoch", "new", "epoch"},      {"buffer_bytes", "5", "1MiB"},
  };
  for (const auto& b : bad) {
    set(variable(b.key).c_str(), b.value);
    EXPECT_THAT(failure(), AllOf(HasSubstr(variable(b.key)), HasSubstr(b.value), HasSubstr(b.allowed)));
    clear_environment();
    Settings s;
    auto option = s.apply_option(b.key, b.value);
    EXPECT_THAT(option.sentence(), AllOf(HasSubstr("--"), HasSubstr(b.value), HasSubstr(b.allowed)));
    file(std::string(b.key) + " = \"" + b.value + "\"");
    EXPECT_THAT(failure(), AllOf(HasSubstr("holdfast.toml"), HasSubstr(b.key), HasSubstr(b.allowed)));
    std::filesystem::remove("holdfast.toml");
  }
}

TEST_F(Config, values_that_are_proposed_are_taken) {
  for (const char* key : all_keys) {
    const auto facts = facts_of_setting(key);
    ASSERT_TRUE(facts) << key;
    EXPECT_THAT(facts->variable, testing::StartsWith("HOLDFAST_"));
    for (const std::string& value : facts->values) EXPECT_TRUE(Settings().apply_option(key, value).ok()) << key << " " << value;
  }
  EXPECT_FALSE(facts_of_setting("elephant"));
  EXPECT_EQ(facts_of_setting("mounts")->allowed, "any, shared or local");
  EXPECT_EQ(facts_of_setting("mounts")->hint, "");
}

TEST_F(Config, a_file_that_is_not_toml_or_has_unknown_keys_is_refused) {
  file("protect = mirror:2");
  EXPECT_THAT(failure(), AllOf(HasSubstr("holdfast.toml"), HasSubstr("line 1")));
  file("protcet = \"mirror:2\"");
  EXPECT_THAT(failure(), AllOf(HasSubstr("protcet"), HasSubstr("protect")));
  file("[protect]\nx = 1");
  EXPECT_THAT(failure(), HasSubstr("protect"));
  file("targets = [\"/a,b\"]");
  EXPECT_THAT(failure(), HasSubstr("/a,b"));
  file("placement = [\"separate\", \"interleaved\"]");
  EXPECT_THAT(failure(), HasSubstr("one value"));
}

TEST_F(Config, targets_become_absolute_without_trailing_slashes) {
  set("HOLDFAST_TARGETS", "/mnt/a/, b//c/ ,./d,,");
  EXPECT_THAT(Settings::load()->targets, ElementsAre("/mnt/a", directory + "/b/c", directory + "/d"));
}

TEST_F(Config, a_files_relative_targets_are_meant_from_its_own_directory) {
  std::filesystem::create_directory("site");
  file("targets = [\"a\", \"/b/\"]\nstriping_unit = 65536\nallow_shared_target = true\n", "site/h.toml");
  set("HOLDFAST_CONFIG", "site/h.toml");
  auto s = Settings::load();
  ASSERT_TRUE(s.ok()) << s.status().sentence();
  EXPECT_THAT(s->targets, ElementsAre(directory + "/site/a", "/b"));
  EXPECT_EQ(s->striping_unit, 65536u);
  EXPECT_TRUE(s->allow_shared_target);
}

TEST_F(Config, unknown_hints_are_ignored_and_defaults_of_other_implementations_ask_for_nothing) {
  Settings s;
  EXPECT_TRUE(s.apply_hint("romio_no_indep_rw", "true").ok());
  EXPECT_TRUE(s.apply_hint("path", "*").ok());
  EXPECT_TRUE(s.path_globs.empty());
  EXPECT_TRUE(s.apply_hint("striping_unit", "0").ok());
  EXPECT_TRUE(s.apply_hint("striping_factor", "-1").ok());
  EXPECT_TRUE(s.apply_hint("start_iodevice", "-1").ok());
  EXPECT_TRUE(s.hints().empty());
  EXPECT_FALSE(s.apply_hint("holdfast_close", "later").ok());
}

TEST_F(Config, contradictions_are_one_sentence) {
  Settings both;
  ASSERT_TRUE(both.apply_hint("replication_factor", "3").ok());
  ASSERT_TRUE(both.apply_hint("holdfast_protect", "rs:4+2").ok());
  EXPECT_THAT(both.check().sentence(), AllOf(HasSubstr("replication_factor 3"), HasSubstr("rs:4+2")));
  Settings agree;
  ASSERT_TRUE(agree.apply_hint("holdfast_protect", "mirror:3").ok());
  ASSERT_TRUE(agree.apply_hint("replication_factor", "3").ok());
  EXPECT_TRUE(agree.check().ok());

  Settings few;
  ASSERT_TRUE(few.apply_option("protect", "rs:4+2").ok());
  ASSERT_TRUE(few.apply_option("targets", "/a,/b").ok());
  EXPECT_THAT(few.check().sentence(), AllOf(HasSubstr("needs 6 targets"), HasSubstr("2 are given")));

  Settings factor;
  ASSERT_TRUE(factor.apply_option("protect", "mirror:2").ok());
  ASSERT_TRUE(factor.apply_option("targets", "/a,/b,/c").ok());
  ASSERT_TRUE(factor.apply_option("start_iodevice", "2").ok());
  EXPECT_TRUE(factor.check().ok());
  ASSERT_TRUE(factor.apply_option("start_iodevice", "3").ok());
  EXPECT_THAT(factor.check().sentence(), HasSubstr("0 to 2"));
  ASSERT_TRUE(factor.apply_option("start_iodevice", "0").ok());
  ASSERT_TRUE(factor.apply_option("striping_factor", "1").ok());
  EXPECT_THAT(factor.check().sentence(), HasSubstr("striping_factor 1"));
  ASSERT_TRUE(factor.apply_option("striping_factor", "4").ok());
  EXPECT_THAT(factor.check().sentence(), HasSubstr("striping_factor 4"));
}

TEST_F(Config, the_environment_written_out_loads_the_same_settings_elsewhere) {
  const struct {
    const char *key, *value;
  } values[] = {{"protect", "rs:4+2"},
                {"targets", "/a,/b,/c,/d,/e,/f"},
                {"path", "*.dat:/scratch/*"},
                {"placement", "interleaved"},
                {"striping_unit", "64k"},
                {"striping_factor", "6"},
                {"start_iodevice", "1"},
                {"allow_shared_target", "true"},
                {"close", "fast"},
                {"deadline", "1500ms"},
                {"patience", "3"},
                {"locks", "names"},
                {"lock_patience", "30s"},
                {"accept_epoch", "7"},
                {"buffer_bytes", "8MiB"},
                {"log_directory", "/logs"},
                {"buffer", "4x16MiB"},
                {"gather_output", "/logs/out"},
                {"shared_pointer", "process"},
                {"merge", "later"},
                {"max_metadata_records", "7"},
                {"ordered", "scan"},
                {"mounts", "shared"},
                {"shared_mounts", "/data,/scratch"},
                {"local_mounts", "/nvme"},
                {"cb_nodes", "8"},
                {"buffer_flush", "5s"},
                {"profile", "true"},
                {"profile_mpi", "true"},
                {"trace", "true"},
                {"profile_exclude", "/sw/*:*.so"}};
  Settings s;
  for (const auto& v : values) ASSERT_TRUE(s.apply_option(v.key, v.value).ok()) << v.key;
  file("protect = \"mirror:2\"\n");
  for (const auto& [name, value] : s.environment()) setenv(name.c_str(), value.c_str(), 1);
  auto again = Settings::load();
  ASSERT_TRUE(again.ok()) << again.status().sentence();
  EXPECT_EQ(again->environment(), s.environment());
  EXPECT_EQ(again->hints(), s.hints());
  EXPECT_EQ(again->path_globs, s.path_globs);
  EXPECT_EQ(s.environment().size(), std::size(values) + 1);
}

// What another program gets of this one's environment by execve(2): a thousand nodes more are no reason to refuse it.
std::map<std::string, std::string> handed_on(const std::map<std::string, std::string>& environment) {
  std::vector<std::string> words;
  for (const auto& [name, value] : environment) words.push_back(name + "=" + value);
  std::vector<char*> given;
  for (std::string& word : words) given.push_back(word.data());
  given.push_back(nullptr);
  int ends[2];
  EXPECT_EQ(pipe(ends), 0);
  const pid_t child = fork();
  if (child == 0) {
    dup2(ends[1], STDOUT_FILENO);
    close(ends[0]);
    char env[] = "/usr/bin/env", zeros[] = "-0";
    char* arguments[] = {env, zeros, nullptr};
    execve(env, arguments, given.data());
    _exit(errno);
  }
  close(ends[1]);
  std::string all;
  char buffer[65536];
  for (ssize_t got; (got = read(ends[0], buffer, sizeof buffer)) > 0;) all.append(buffer, size_t(got));
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0) << strerror(WEXITSTATUS(status));
  std::map<std::string, std::string> got;
  for (size_t at = 0, end; (end = all.find('\0', at)) != std::string::npos; at = end + 1) {
    const size_t sign = all.find('=', at);
    got[all.substr(at, sign - at)] = all.substr(sign + 1, end - sign - 1);
  }
  return got;
}

TEST_F(Config, the_names_of_twenty_thousand_nodes_are_handed_on) {
  for (const bool alike : {true, false}) {
    Settings s;
    ASSERT_TRUE(s.apply_option("protect", "rs:4+2").ok());
    for (uint64_t node = 1; node <= 20000; ++node) {
      const std::string name = alike ? fmt::format("n{}", node) : fmt::format("host-{:x}.cluster", node * 0x9e3779b97f4a7c15);
      s.local.push_back(fmt::format("{}:/local/hf-{}", name, name));
    }
    const auto environment = s.environment();
    EXPECT_EQ(environment.contains("HOLDFAST_LOCAL_2"), !alike);
    clear_environment();
    for (const auto& [name, value] : handed_on(environment)) set(name.c_str(), value);
    const auto again = Settings::load();
    ASSERT_TRUE(again.ok()) << again.status().sentence().substr(0, 1000);
    EXPECT_EQ(again->local, s.local);
    EXPECT_TRUE(strange_variables().empty());
  }
}

// It goes on only where the one before is full.
TEST_F(Config, a_further_part_of_a_value_is_none_where_there_is_no_first) {
  set("HOLDFAST_LOCAL", "n1:/a,n2:/a");
  set("HOLDFAST_LOCAL_2", ",n3:/a");
  EXPECT_EQ(Settings::load()->local, (std::vector<std::string>{"n1:/a", "n2:/a"}));
  ASSERT_EQ(strange_variables().size(), 1u);
  EXPECT_EQ(strange_variables()[0].name, "HOLDFAST_LOCAL_2");
}

TEST_F(Config, a_list_of_directories_may_name_many_nodes) {
  set("HOLDFAST_LOCAL", "n[1-2]:/a-{node}");
  EXPECT_EQ(Settings::load()->local, (std::vector<std::string>{"n1:/a-n1", "n2:/a-n2"}));
  EXPECT_EQ(Settings::load()->environment()["HOLDFAST_LOCAL"], "n1:/a-n1,n2:/a-n2") << "what is short is as people write it";
  set("HOLDFAST_LOCAL", "n[1-2]:/a,n[2-3]:/a");
  EXPECT_THAT(failure(), HasSubstr("each named once"));
}

TEST_F(Config, hints_have_the_names_that_programs_use) {
  Settings s;
  ASSERT_TRUE(s.apply_hint("replication_factor", "3").ok());
  ASSERT_TRUE(s.apply_hint("striping_unit", "65536").ok());
  ASSERT_TRUE(s.apply_hint("holdfast_close", "fast").ok());
  EXPECT_EQ(s.hints(), (std::map<std::string, std::string>{
                           {"holdfast_protect", "mirror:3"}, {"replication_factor", "3"}, {"striping_unit", "65536"}, {"holdfast_close", "fast"}}));
}

TEST_F(Config, a_shared_pointer_has_one_of_six_algorithms) {
  Settings s;
  EXPECT_EQ(s.shared_pointer, "automatic");
  for (const char* name : {"window", "process", "individual", "single", "native", "automatic"}) {
    EXPECT_TRUE(s.apply_hint("holdfast_shared_pointer", name).ok());
    EXPECT_EQ(s.shared_pointer, name);
  }
  EXPECT_THAT(s.apply_hint("holdfast_shared_pointer", "sm").sentence(), HasSubstr("window, process, individual, single or native"));
  EXPECT_FALSE(s.apply_hint("holdfast_merge", "never").ok());
  EXPECT_FALSE(s.apply_hint("holdfast_max_metadata_records", "0").ok());
  EXPECT_FALSE(s.apply_hint("holdfast_ordered", "tree").ok());
  EXPECT_TRUE(s.hints().empty());
}

TEST(Sizes, have_binary_units_and_no_overflow) {
  EXPECT_EQ(*parse_size("1048576"), 1048576u);
  EXPECT_EQ(*parse_size("64k"), 65536u);
  EXPECT_EQ(*parse_size("1MiB"), 1u << 20);
  EXPECT_EQ(*parse_size(" 4 MB "), 4u << 20);
  EXPECT_EQ(*parse_size("2T"), 2ull << 40);
  for (const char* bad : {"", "k", "-1", "1.5M", "1 lightyear", "99999999999T", "18446744073709551616"}) EXPECT_FALSE(parse_size(bad).ok()) << bad;
}

TEST(Durations, are_seconds_without_a_unit) {
  EXPECT_EQ(*parse_duration_ms("10"), 10000u);
  EXPECT_EQ(*parse_duration_ms("0.5"), 500u);
  EXPECT_EQ(*parse_duration_ms("500ms"), 500u);
  EXPECT_EQ(*parse_duration_ms("2 min"), 120000u);
  for (const char* bad : {"", "s", "-1", "1e99h", "10 years", "nan", "inf"}) EXPECT_FALSE(parse_duration_ms(bad).ok()) << bad;
}

TEST(Globs, without_a_slash_match_the_name_and_with_one_the_whole_path) {
  EXPECT_TRUE(glob_matches("*.dat", "/a/b/c.dat"));
  EXPECT_FALSE(glob_matches("b*", "/a/b/c.dat"));
  EXPECT_TRUE(glob_matches("/a/*", "/a/b/c.dat"));
  EXPECT_TRUE(glob_matches("*/b/*.dat", "/a/b/c.dat"));
  EXPECT_FALSE(glob_matches("/b/*", "/a/b/c.dat"));
  EXPECT_TRUE(glob_matches("out.[0-9]", "/x/out.7"));
}

TEST(Globs, have_the_directory_of_a_relative_one_as_it_is_named) {
  for (const char* key : {"path", "checkpoint"}) {
    Settings there, job;
    const Record& record = *find_record(key);
    ASSERT_TRUE(record.take(there, {"ck/*.1:/a\\:b/*", Source::environment, "/w/12:30 {x}, *[1]\\?"})) << key;
    ASSERT_TRUE(record.take(job, {record.text(there), Source::environment, "/elsewhere"})) << key;
    EXPECT_EQ(record.text(job), record.text(there)) << key;
    const std::vector<std::string>& globs = key == std::string("path") ? job.path_globs : job.checkpoint;
    ASSERT_EQ(globs.size(), 2u) << key;
    if (key == std::string("checkpoint")) continue;
    EXPECT_TRUE(glob_matches(globs[0], "/w/12:30 {x}, *[1]\\?/ck/a.1"));
    EXPECT_FALSE(glob_matches(globs[0], "/w/12:30 {x}, *1\\?/ck/a.1"));
    EXPECT_TRUE(glob_matches(globs[1], "/a:b/c"));
  }
}

TEST(Limits, of_schemes_are_those_of_the_layout) {
  for (int k = 0; k <= 40; ++k)
    for (int m = 0; m <= 10; ++m)
      for (const std::string& scheme : {"rs:" + std::to_string(k) + "+" + std::to_string(m), "mirror:" + std::to_string(k)}) {
        Settings s;
        EXPECT_EQ(s.apply_option("protect", scheme).ok(), layout::Scheme::parse(scheme).ok()) << scheme;
      }
  for (uint64_t unit : {4095ull, 4096ull, 8192ull, 8193ull, 256ull << 20, (256ull << 20) + 4096}) {
    layout::Geometry g;
    g.unit_bytes = unit;
    g.block_bytes = 4096;
    Settings s;
    EXPECT_EQ(s.apply_option("striping_unit", std::to_string(unit)).ok(), g.check().ok()) << unit;
  }
}

}  // namespace
}  // namespace holdfast
