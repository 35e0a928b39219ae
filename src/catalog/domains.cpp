#include "catalog/domains.hpp"

#include <fmt/format.h>

#include <sstream>

#include "catalog/user_files.hpp"

namespace holdfast::catalog {

namespace {

constexpr uint64_t max_domains_bytes = 64 << 20;

}  // namespace

Result<Domains> parse_domains(std::string_view text, const std::string& file) {
  Domains domains;
  std::istringstream lines{std::string(text)};
  std::string line;
  for (int number = 1; std::getline(lines, line); ++number) {
    std::istringstream words(line.substr(0, line.find('#')));
    std::string node, more;
    Domain domain;
    if (!(words >> node)) continue;
    words >> domain.rack >> domain.power;
    if (domain.rack.empty() || words >> more)
      return Status(Kind::invalid, fmt::format("line {} of {} is '{}': write NODE RACK or NODE RACK POWER", number, file, line));
    if (!domains.emplace(node, domain).second)
      return Status(Kind::invalid, fmt::format("line {} of {} names node {} once more; leave one of them out", number, file, node));
  }
  return domains;
}

Result<Domains> read_domains(const std::string& file) {
  auto text = read_small(file, max_domains_bytes);
  if (!text) return Status(text.status().kind(), fmt::format("the domains' file cannot be read: {}", text.status().sentence()));
  return parse_domains(*text, file);
}

Result<Domains> domains_of(const Settings& settings) {
  return settings.domains.empty() ? Result<Domains>(Domains()) : read_domains(settings.domains);
}

}  // namespace holdfast::catalog
