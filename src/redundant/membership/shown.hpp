// A team, as `holdfast status --job` shows it.
#pragma once
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "redundant/membership/hub_process.hpp"
#include "redundant/membership/membership.hpp"

namespace holdfast::redundant {

nlohmann::json shown(const Membership& members, const std::vector<std::unique_ptr<Process>>& processes, int team);

}  // namespace holdfast::redundant
