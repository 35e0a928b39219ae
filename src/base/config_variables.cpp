#include "base/config_variables.hpp"

#include <unistd.h>

#include <cstring>

namespace holdfast {

void rename_environment_variable(const char* from, const char* to) {
  const auto is = [](const char* variable, const char* name) {
    const size_t length = std::strlen(name);
    return std::strncmp(variable, name, length) == 0 && variable[length] == '=';
  };
  char** put = environ;
  for (char** at = environ; at && *at; ++at) {
    if (is(*at, to)) continue;  // of an earlier program in this process
    const bool renamed = is(*at, from);
    *put++ = renamed ? (new std::string(to + std::string(*at + std::strlen(from))))->data() : *at;  // the environment's from now on
  }
  if (put) *put = nullptr;
}

}  // namespace holdfast
