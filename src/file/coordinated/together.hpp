// A plain file that the ranks of a team have opened together, for MPI-IO.
#pragma once
#include <memory>
#include <string>

#include "base/file_layer.hpp"
#include "base/settings/replicas.hpp"
#include "exchange/exchange.hpp"
#include "redundant/twins/replica.hpp"

namespace holdfast::file {

// Collective: the first rank makes the file (open(2)'s flags), then all open it. All get a file, or all a failure.
Result<std::unique_ptr<CollectiveFile>> open_plain_together(const std::string& path, int flags, mode_t mode, const ReplicaSettings& settings,
                                                            redundant::Replica& replica, exchange::Exchange& ranks);

}  // namespace holdfast::file
