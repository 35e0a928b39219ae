#include "cli/option_facts.hpp"

#include <sstream>

#include "base/settings/record.hpp"

namespace holdfast::cli {

bool is_positional(const CLI::Option& option) { return option.get_lnames().empty() && option.get_snames().empty(); }

std::string kind_of_value(const CLI::Option& option) {
  if (is_positional(option)) return option.get_single_name();
  const std::string type = option.get_type_name();  // with what its checks say behind a ':'
  return type.substr(0, type.find(':'));
}

std::vector<std::string> values_of(const CLI::Option& option) {
  std::vector<std::string> values;
  const std::string type = option.get_type_name();
  if (const size_t open = type.find('{'); open != std::string::npos) {  // CLI::IsMember
    std::istringstream words(type.substr(open + 1, type.rfind('}') - open - 1));
    for (std::string word; std::getline(words, word, ',');) values.push_back(word);
    return values;
  }
  if (kind_of_value(option) == "KEY") {
    for_each_record([&](const Record& record) { values.emplace_back(record.key); });
    return values;
  }
  const std::string key = kind_of_value(option).starts_with("SCHEME") ? "protect" : setting_of(option);
  const auto facts = facts_of_setting(key);
  return facts ? facts->values : values;
}

std::string setting_of(const CLI::Option& option) {
  if (option.get_group() != settings_group) return "";
  const std::string name = "--" + option.get_lnames()[0];
  std::string key;
  for_each_record([&](const Record& record) {
    if (record.option_name() == name) key = record.key;
  });
  return key;
}

const CLI::Option* option_of_setting(const CLI::App& app, std::string_view key) {
  for (const CLI::App* sub : app.get_subcommands({}))
    for (const CLI::Option* option : sub->get_options())
      if (setting_of(*option) == key) return option;
  return nullptr;
}

}  // namespace holdfast::cli
