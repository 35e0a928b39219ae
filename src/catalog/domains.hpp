// Which nodes are lost together: a file with a line NODE RACK [POWER] for each of them.
#pragma once
#include <map>
#include <string>
#include <string_view>

#include "base/config.hpp"
#include "base/status.hpp"

namespace holdfast::catalog {

struct Domain {
  std::string rack, power;  // the latter empty where it is not said
  bool operator==(const Domain&) const = default;
};

using Domains = std::map<std::string, Domain>;  // by node

// Kind::invalid names the line that makes no sense. Text after '#' is for people.
Result<Domains> parse_domains(std::string_view text, const std::string& file);
Result<Domains> read_domains(const std::string& file);
// Those of `settings.domains`; none where it names no file.
Result<Domains> domains_of(const Settings& settings);

}  // namespace holdfast::catalog
