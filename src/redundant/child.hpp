// What a replica starts is none: it is there once in each team. Of some of that the job is told.
#pragma once
#include <string>

#include "redundant/orders.hpp"

namespace holdfast::redundant {

// In the environment of what a replica starts: the replica's own orders, by which the hub is reached.
inline constexpr const char* child_variable = "HOLDFAST_CHILD_OF_REPLICA";

// For what `holdfast run` starts without a launcher: the variables of launchers, and their values, that were there before, as in a shell that is a batch
// system's step. Who has others is a rank of a launcher that was started since.
inline constexpr const char* ranks_before_variable = "HOLDFAST_RANKS_BEFORE";
std::string ranks_of_launchers();
bool is_rank_since();

enum class ChildDoes : uint64_t { writes = 0, starts_ranks = 1, goes_unseen = 2 };

// Returns when the hub has heard of it: what starts ranks ends the job, what writes is told of once, and so is what goes on without the library. `line`: for the user.
Status tell_of_child(const TeamOrders& orders, ChildDoes what, const std::string& line, uint64_t patience_ms);

}  // namespace holdfast::redundant
