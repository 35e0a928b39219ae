// Walks the records of all settings: what is true of one is true of each.
#include "base/settings/record.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

namespace holdfast {
namespace {

using testing::HasSubstr;

const std::string base = "/base";

bool take(const Record& record, Settings& s, const std::string& value) { return record.take(s, Given{value, Source::command_line, base}); }

std::vector<std::string> values_that_are_taken(const Record& record) {
  struct {
    std::vector<std::string> operator()(const Flag&) const { return {"true", "no", "on", "0"}; }
    std::vector<std::string> operator()(const Number<int>& n) const { return {std::to_string(n.least), std::to_string(n.most)}; }
    std::vector<std::string> operator()(const Number<uint64_t>& n) const { return {std::to_string(n.least), std::to_string(n.most)}; }
    std::vector<std::string> operator()(const OptionalNumber& n) const { return {std::to_string(n.least), "7", "-1", "0"}; }
    std::vector<std::string> operator()(const Size& size) const { return {std::to_string(size.least), std::to_string(size.most), "4 MiB"}; }
    std::vector<std::string> operator()(const Duration& d) const {
      return {std::to_string(d.least_ms) + "ms", std::to_string(d.most_ms) + "ms", "90"};
    }
    std::vector<std::string> operator()(const Path&) const { return {"/x/y", "z", ""}; }
    std::vector<std::string> operator()(const Directories&) const { return {"/a,/b", "n1:/a,n2:/a", "c", ""}; }
    std::vector<std::string> operator()(const Globs&) const { return {"*.dat:/scratch/*", "!/sw/*:*/x", "out/*", ""}; }
    std::vector<std::string> operator()(const Patterns&) const { return {"/ck/{step}.{rank}", "ck.{step}:/x", ""}; }
    std::vector<std::string> operator()(const Word&) const { return {}; }
    std::vector<std::string> operator()(const OptionalWord&) const { return {}; }
    std::vector<std::string> operator()(const Either&) const { return {}; }
    std::vector<std::string> operator()(const Special&) const { return {}; }
  } by_kind;
  auto values = std::visit(by_kind, record.kind);
  for (const std::string& proposed : record.proposals()) values.push_back(proposed);
  if (record.key == "accept_epoch") values.insert(values.end(), {"0", "7"});
  if (record.key == "cb_nodes") values.insert(values.end(), {"-1", "0", "8"});
  return values;
}

std::vector<std::string> values_that_are_refused(const Record& record) {
  struct {
    std::vector<std::string> operator()(const Flag&) const { return {"maybe"}; }
    std::vector<std::string> operator()(const Number<int>& n) const { return {std::to_string(n.least - 1), std::to_string(n.most + 1), "3x"}; }
    std::vector<std::string> operator()(const Number<uint64_t>& n) const {
      return {std::to_string(n.least - 1), std::to_string(n.most + 1), "-1", "99999999999999999999"};
    }
    std::vector<std::string> operator()(const OptionalNumber&) const { return {"-2", "1.5"}; }
    std::vector<std::string> operator()(const Size& size) const { return {std::to_string(size.least - 1), std::to_string(size.most + 1)}; }
    std::vector<std::string> operator()(const Duration& d) const {
      return {std::to_string(d.least_ms - 1) + "ms", std::to_string(d.most_ms + 1) + "ms"};
    }
    std::vector<std::string> operator()(const Directories&) const { return {"/a,/b,/a/"}; }
    std::vector<std::string> operator()(const Path&) const { return {}; }
    std::vector<std::string> operator()(const Globs&) const { return {}; }
    std::vector<std::string> operator()(const Patterns&) const { return {}; }
    std::vector<std::string> operator()(const Word&) const { return {""}; }
    std::vector<std::string> operator()(const OptionalWord&) const { return {""}; }
    std::vector<std::string> operator()(const Either&) const { return {""}; }
    std::vector<std::string> operator()(const Special&) const { return {"", "-2"}; }
  } by_kind;
  auto values = std::visit(by_kind, record.kind);
  if (!std::holds_alternative<Directories>(record.kind) && !record.allowed().empty()) values.emplace_back("elephant");
  return values;
}

std::map<std::string, std::string> texts_of(const Settings& s) {
  std::map<std::string, std::string> texts;
  for_each_record([&](const Record& record) { texts[std::string(record.key)] = record.text(s); });
  return texts;
}

TEST(Records, have_names_of_their_own) {
  std::set<std::string> names;
  size_t records = 0;
  for_each_record([&](const Record& record) {
    ++records;
    EXPECT_THAT(record.key, testing::MatchesRegex("[a-z_]+"));
    names.insert({std::string(record.key), record.variable(), record.option_name()});
    EXPECT_EQ(find_record(record.key), &record);
  });
  EXPECT_GT(records, 30u);
  EXPECT_EQ(names.size(), 3 * records);
  EXPECT_EQ(find_record("elephant"), nullptr);
}

TEST(Records, have_words_for_people) {
  for_each_record([](const Record& record) {
    EXPECT_THAT(record.help, testing::MatchesRegex("[^\n|]{15,}[^.]")) << record.key;
    if (*record.more) {
      EXPECT_THAT(record.more, testing::MatchesRegex("[^\n|]{15,}[.]")) << record.key;
    }
    EXPECT_EQ(*record.value == 0, record.is_flag()) << record.key << ": what stands for its value in the help";
  });
}

TEST(Records, a_value_becomes_text_and_the_text_becomes_the_value) {
  for_each_record([](const Record& record) {
    const auto values = values_that_are_taken(record);
    EXPECT_GT(values.size(), 1u) << record.key;
    for (const std::string& value : values) {
      Settings first, second;
      ASSERT_TRUE(take(record, first, value)) << record.key << " " << value;
      const std::string text = record.text(first);
      if (text.empty()) continue;
      ASSERT_TRUE(take(record, second, text)) << record.key << " " << text;
      EXPECT_EQ(record.text(second), text) << record.key;
      EXPECT_EQ(texts_of(second), texts_of(first)) << record.key << " " << text;
    }
  });
}

TEST(Records, a_value_changes_its_own_setting_and_no_other) {
  const auto fresh = texts_of(Settings());
  for_each_record([&](const Record& record) {
    bool changed = false;
    for (const std::string& value : values_that_are_taken(record)) {
      Settings s;
      ASSERT_TRUE(take(record, s, value));
      auto now = texts_of(s);
      changed |= now[std::string(record.key)] != record.text(Settings());
      now[std::string(record.key)] = record.text(Settings());
      EXPECT_EQ(now, fresh) << record.key << " " << value;
    }
    EXPECT_TRUE(changed) << record.key;
  });
}

TEST(Records, the_default_is_a_value_that_is_taken) {
  for_each_record([](const Record& record) {
    const std::string text = record.text(Settings());
    Settings s;
    if (text.empty()) return;
    EXPECT_TRUE(take(record, s, text)) << record.key << " " << text;
    EXPECT_EQ(texts_of(s), texts_of(Settings())) << record.key;
  });
}

TEST(Records, a_refusal_names_the_option_the_value_and_what_is_allowed_and_changes_nothing) {
  size_t refused = 0;
  for_each_record([&](const Record& record) {
    for (const std::string& value : values_that_are_refused(record)) {
      Settings s;
      const Status status = s.apply_option(record.key, value);
      ASSERT_FALSE(status.ok()) << record.key << " " << value;
      EXPECT_EQ(status.sentence(), record.option_name() + " is '" + value + "': allowed is " + record.allowed());
      EXPECT_FALSE(record.allowed().empty()) << record.key;
      EXPECT_EQ(texts_of(s), texts_of(Settings())) << record.key;
      ++refused;
    }
  });
  EXPECT_GT(refused, 50u);
}

TEST(Records, what_is_allowed_names_the_words_and_the_bounds) {
  const auto allowed = [](const char* key) { return find_record(key)->allowed(); };
  EXPECT_EQ(allowed("mounts"), "any, shared or local");
  EXPECT_EQ(allowed("placement"), "interleaved or separate");
  EXPECT_EQ(allowed("shared_pointer"), "automatic, window, process, individual, single or native");
  EXPECT_EQ(allowed("close"), "durable or fast");
  EXPECT_EQ(allowed("profile"), "true or false");
  EXPECT_EQ(allowed("deadline"), "a time from 1ms to 24h, for example 10, 500ms or 2min");
  EXPECT_EQ(allowed("patience"), "a number of deadlines from 1 to 1000");
  EXPECT_EQ(allowed("buffer_bytes"), "a size from 1MiB to 1TiB");
  EXPECT_EQ(allowed("max_metadata_records"), "a number of records from 1 to 4294967296");
  EXPECT_EQ(allowed("path"), "");
}

TEST(Records, what_is_set_is_in_the_environment_and_a_hint_in_the_hints) {
  for_each_record([](const Record& record) {
    for (const std::string& value : values_that_are_taken(record)) {
      Settings s;
      ASSERT_TRUE(take(record, s, value));
      const bool set = record.text(s) != record.text(Settings());
      const auto environment = s.environment();
      EXPECT_EQ(environment.count(record.variable()), size_t(set)) << record.key << " " << value;
      EXPECT_EQ(environment.size(), set ? 2u : 1u) << record.key;
      EXPECT_EQ(s.hints().count(record.hint_name()), size_t(set && record.hint != Hint::none)) << record.key << " " << value;
    }
  });
}

TEST(Records, hints_are_taken_by_the_names_that_they_are_listed_with) {
  for_each_record([](const Record& record) {
    for (const std::string& value : values_that_are_taken(record)) {
      Settings by_hint, by_option;
      ASSERT_TRUE(by_hint.apply_hint(record.hint == Hint::none ? "holdfast_" + std::string(record.key) : record.hint_name(), value).ok());
      ASSERT_TRUE(by_option.apply_option(record.key, value).ok());
      EXPECT_EQ(record.text(by_hint), record.text(record.hint == Hint::none ? Settings() : by_option)) << record.key << " " << value;
    }
  });
}

}  // namespace
}  // namespace holdfast
