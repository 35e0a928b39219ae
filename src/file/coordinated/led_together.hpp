// A file that only one team has open below. The bytes of a protected file outlive a process only by a sync, so two teams that had it open would be
// two writers. The ranks of the leading team open it together. Their twins keep what was written since the last sync; when the team is lost they open
// the file themselves and write that once more.
#pragma once
#include <functional>
#include <memory>
#include <string>

#include "base/file_layer.hpp"
#include "exchange/exchange.hpp"
#include "redundant/twins/replica.hpp"

namespace holdfast::file {

// Collective over `ranks`. `first`: the open of the program itself, which makes the file where it is to be made. `again`: a team that was lost may
// have done that already.
using OpenTogether = std::function<Result<std::unique_ptr<CollectiveFile>>(exchange::Exchange& ranks, bool first, bool again)>;

// Collective over the ranks of a team. `ranks` must outlive the file.
Result<std::unique_ptr<CollectiveFile>> led_together(OpenTogether open, redundant::Replica& replica, uint64_t subject, std::string name,
                                                     exchange::Exchange& ranks);

}  // namespace holdfast::file
