// What the objects of a session are called: <number>-<session id>.<rank>.<generation> for a log, .note for its note.
#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "layers/shared_records/log_scan.hpp"

namespace holdfast::layers {

struct RecordName {
  uint64_t number = 0;  // of the opening: the highest is the newest
  std::string session;
  bool note = false;
};
std::optional<RecordName> parse_record_name(std::string_view name);

PendingRecord pending_of(const ScannedEntry& found);

}  // namespace holdfast::layers
