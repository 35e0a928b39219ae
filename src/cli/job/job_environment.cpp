#include "cli/job/job_environment.hpp"

#include <cstdlib>

#include "base/environment.hpp"
#include "base/settings/record.hpp"

namespace holdfast::cli {

std::vector<std::string> put_into_environment(const Settings& settings) {
  for_each_record([](const Record& record) {
    for (int part = 1; part == 1 || environment_has(record.variable(part).c_str()); ++part)
      forget_environment_variable(record.variable(part).c_str());
  });
  std::vector<std::string> names;
  for (const auto& [name, value] : settings.environment()) {
    ::setenv(name.c_str(), value.c_str(), 1);
    names.push_back(name);
  }
  return names;
}

}  // namespace holdfast::cli
