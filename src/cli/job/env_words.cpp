#include "cli/job/env_words.hpp"

#include <algorithm>
#include <cstdlib>

#include "cli/job/program.hpp"

namespace holdfast::cli {

namespace {

bool is_variable(const std::string& word) {
  const size_t sign = word.find('=');
  return sign != std::string::npos && sign > 0;
}

}  // namespace

EnvWords env_words(std::vector<std::string> command) {
  EnvWords words;
  while (command.size() > 1 && base_name(command[0]) == "env") {
    const auto program = std::find_if_not(command.begin() + 1, command.end(), is_variable);
    if (program == command.end() || program->starts_with('-')) break;
    words.variables.insert(words.variables.end(), command.begin() + 1, program);
    command.erase(command.begin(), program);
  }
  words.command = std::move(command);
  return words;
}

std::vector<std::string> with_variables_set(const std::vector<std::string>& command) {
  EnvWords words = env_words(command);
  for (const std::string& variable : words.variables) {
    const size_t sign = variable.find('=');
    ::setenv(variable.substr(0, sign).c_str(), variable.substr(sign + 1).c_str(), 1);
  }
  return std::move(words.command);
}

}  // namespace holdfast::cli
