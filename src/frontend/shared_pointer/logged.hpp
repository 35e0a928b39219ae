// What `individual` and `single` have in common. Writes through the shared pointer go to this process's log (layers/shared_records). They get their
// places at the next collective call, at close, or from `holdfast merge`.
#pragma once
#include <memory>

#include "base/config.hpp"
#include "catalog/located.hpp"
#include "exchange/exchange.hpp"
#include "frontend/shared_pointer/shared_pointer.hpp"
#include "layers/shared_records/shared_records.hpp"

namespace holdfast::frontend {

struct RecordPlan {
  std::string path;
  Settings settings;
  const catalog::Located* located = nullptr;     // of a protected file; null: a plain one
  std::unique_ptr<exchange::Exchange> exchange;  // for the log alone
  bool deletes_on_close = false;
  bool reads = true;  // the access mode lets the program read
};

// Collective. Null, with the reason in `takeover`, where a log cannot be kept: the pointer serves then.
std::unique_ptr<RecordLog> open_records(RecordPlan plan, RecordHost& host, std::string& takeover);

}  // namespace holdfast::frontend
