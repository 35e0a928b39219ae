// What becomes of a checkpoint's file that a handle writes. Calls with `ranks` are collective.
#pragma once
#include "base/status.hpp"
#include "exchange/exchange.hpp"

namespace holdfast::frontend {

class WrittenCheckpoint {
 public:
  virtual ~WrittenCheckpoint() = default;
  // Whether each rank calls first_write() before its first write.
  virtual bool minds_first_write() const = 0;
  virtual Status first_write(bool resizes) = 0;
  // Collective, when it has been opened.
  virtual Status opened(exchange::Exchange&) { return {}; }
  // It could not be opened after all; on each rank.
  virtual void abandon() = 0;
  // When the file is closed with that status.
  virtual Status close(const Status& closed, bool and_remove, exchange::Exchange& ranks) = 0;
};

}  // namespace holdfast::frontend
