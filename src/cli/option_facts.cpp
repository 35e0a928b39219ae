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

}  // namespace holdfast::cli
