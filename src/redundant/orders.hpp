// What a process of a team is told when it starts (HOLDFAST_REPLICA, from `holdfast run`): which team, and where the hub is.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "transport/endpoint.hpp"
#include "transport/greeting.hpp"

namespace holdfast::redundant {

inline constexpr const char* orders_variable = "HOLDFAST_REPLICA";

// What a process says that cannot take part, and ends.
inline constexpr const char* cannot_take_part = "holdfast: this process cannot be one of several replicas: ";

// A process says each second that it lives, and may be held up for some.
inline constexpr uint64_t least_deadline_ms = 5000;

struct TeamOrders {
  int team = 0, teams = 1;
  int relaunches = 0;  // for the hub alone
  transport::Reach reach = transport::Reach::node;
  uint64_t deadline_ms = 10000;
  transport::Secret secret{};
  bool compares_messages = false;
  bool apart = false;  // no node has replicas of two teams
  enum class Clock : uint8_t { decided, strict, own };
  Clock clock = Clock::decided;   // whose time, and when twins have it (docs/redundant.md)
  bool rehearses = false;         // replicas that differ are told of, and go on with what the leader does
  std::vector<int> follows = {};  // where it was started again: the team whose log it goes by, and those before
  // It has resumed from a checkpoint of its own, and joins where it changes a file as it was changed then. `if_it_can`: else it is started once more.
  enum Joins : uint8_t { from_the_beginning, if_it_can, where_it_resumes } joins = from_the_beginning;
  uint64_t log_bytes = 0;    // at most, of each rank
  bool logs_travel = false;  // teams are on several nodes: each rank's log stays on its own, and goes to whoever follows it over their connection
  int image = 0;             // how many programs the process was before this one
  std::string log = {};      // the directory; none where nothing is started again
  std::string hub;           // endpoints, a line each
};

// One line.
std::string text_of(const TeamOrders& orders);
std::optional<TeamOrders> parse_orders(const std::string& text);

}  // namespace holdfast::redundant
