// The ways of open.hpp in a redundant job.
#pragma once
#include "file/open.hpp"
#include "redundant/twins/replica.hpp"

namespace holdfast::file {

// Collective: a file that is to be written is open below in the leading team alone; see coordinated/led_together.hpp.
struct OpenedAsReplica {
  std::unique_ptr<CollectiveFile> file;
  layout::Manifest manifest;
};
Result<OpenedAsReplica> open_as_replica(const std::string& path, const How& how, const Settings& settings, redundant::Replica& replica,
                                        exchange::Exchange& ranks);
// Of a process by itself: the file is made by the replica that leads, and found by the others.
Result<Found> find_as_replica(const std::string& path, const How& how, const Settings& settings, redundant::Replica& replica);

}  // namespace holdfast::file
