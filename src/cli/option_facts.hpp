// What completion and the manual pages ask of an option in CLI11's tree.
#pragma once
#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/config.hpp"

namespace holdfast::cli {

// Options that are settings are a group of their own in each command's help.
constexpr char settings_group[] = "Settings";

bool is_positional(const CLI::Option& option);
// As the help has it: FILE, DIR,..., SCHEME. A positional one is of the kind that its name says.
std::string kind_of_value(const CLI::Option& option);
// Values worth proposing: all that there are where the values are words; none where any text may be given.
std::vector<std::string> values_of(const CLI::Option& option);
// The setting's key in holdfast.toml; empty where the option is none.
std::string setting_of(const CLI::Option& option);
// The option that some command has for a setting; nothing where none has one.
const CLI::Option* option_of_setting(const CLI::App& app, std::string_view key);

}  // namespace holdfast::cli
