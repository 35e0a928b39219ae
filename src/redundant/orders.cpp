#include "redundant/orders.hpp"

#include <algorithm>
#include <sstream>
#include <string_view>

#include <fmt/format.h>

#include "redundant/map.hpp"

namespace holdfast::redundant {

namespace {

std::string hex_of(const transport::Secret& secret) {
  std::string text;
  for (const std::byte byte : secret) text += fmt::format("{:02x}", unsigned(byte));
  return text;
}

bool from_hex(const std::string& text, transport::Secret& secret) {
  if (text.size() != 2 * secret.size() || text.find_first_not_of("0123456789abcdef") != std::string::npos) return false;
  for (size_t i = 0; i < secret.size(); ++i) secret[i] = std::byte(std::stoi(text.substr(2 * i, 2), nullptr, 16));
  return true;
}

// A character each, of those that no shell and no launcher takes for something else.
constexpr std::string_view digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_.";
static_assert(digits.size() == most_teams);
std::string text_of_teams(const std::vector<int>& teams) {
  std::string text;
  for (const int team : teams) text += digits[size_t(team)];
  return text.empty() ? "-" : text;
}

}  // namespace

std::string text_of(const TeamOrders& orders) {
  std::string hub = orders.hub;
  std::replace(hub.begin(), hub.end(), '\n', ';');
  return fmt::format("{} {} {} {} {} {} {} {} {} {} {} {} {} {} {}\t{}", orders.team, orders.teams, int(orders.reach), int(orders.apart),
                     orders.deadline_ms, hex_of(orders.secret), int(orders.compares_messages), int(orders.rehearses), orders.log_bytes,
                     int(orders.logs_travel), int(orders.joins), int(orders.clock), orders.image, text_of_teams(orders.follows), hub, orders.log);
}

std::optional<TeamOrders> parse_orders(const std::string& text) {
  TeamOrders orders;
  int reach = 0, joins = 0, clock = 0;
  std::string secret, follows;
  std::istringstream words(text);
  if (!(words >> orders.team >> orders.teams >> reach >> orders.apart >> orders.deadline_ms >> secret) || !from_hex(secret, orders.secret) ||
      !(words >> orders.compares_messages >> orders.rehearses >> orders.log_bytes >> orders.logs_travel >> joins >> clock >> orders.image >> follows))
    return std::nullopt;
  for (const char team : follows)
    if (const size_t number = digits.find(team); number != digits.npos) orders.follows.push_back(int(number));
  std::getline(words >> std::ws, orders.hub, '\t');
  std::getline(words, orders.log);
  std::replace(orders.hub.begin(), orders.hub.end(), ';', '\n');
  orders.reach = transport::Reach(reach);
  orders.joins = TeamOrders::Joins(joins);
  orders.clock = TeamOrders::Clock(clock);
  const int most = orders.follows.empty() ? orders.teams : most_teams;
  const bool sane = orders.teams >= 1 && orders.teams <= most_replicas && orders.team >= 0 && orders.team < most && reach >= 0 && reach <= 2 &&
                    joins >= 0 && joins <= TeamOrders::where_it_resumes && clock >= 0 && clock <= int(TeamOrders::Clock::own);
  if (!sane || orders.hub.empty()) return std::nullopt;
  return orders;
}

}  // namespace holdfast::redundant
