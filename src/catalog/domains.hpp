// Which nodes are lost together: a file with a line NODE RACK [POWER] for each of them.
#pragma once
#include <map>
#include <string>
#include <string_view>

#include "base/status.hpp"

namespace holdfast::catalog {

struct Domain {
  std::string rack, power;  // the latter empty where it is not said
  bool operator==(const Domain&) const = default;
};

// Kind::invalid names the line that makes no sense. Text after '#' is for people.
Result<std::map<std::string, Domain>> parse_domains(std::string_view text, const std::string& file);
Result<std::map<std::string, Domain>> read_domains(const std::string& file);

}  // namespace holdfast::catalog
