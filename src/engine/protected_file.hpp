// A protected file: rows of units, coded, checksummed and placed on the members of a Located. The heart of Holdfast.
//
// One object per process and open; `exchange` joins the processes that opened together. Methods marked collective
// are called by all of them in the same order. All methods are safe to call from several threads of a process.
// Reads go on side by side as far as nothing that is remembered changes, all else takes turns. See docs/architecture.md for how a row changes.
#pragma once
#include <memory>
#include <vector>

#include "base/bytes.hpp"
#include "base/config.hpp"
#include "base/file_layer.hpp"
#include "base/status.hpp"
#include "catalog/located.hpp"
#include "exchange/exchange.hpp"

namespace holdfast::engine {

struct Purpose {
  bool read = true;
  bool write = false;
  bool fresh = false;  // just made by catalog::create: the members hold nothing yet
};

class ProtectedFile : public CollectiveFile {
 public:
  // Collective. `located` was found by each rank for itself (each has its own lanes); rank 0's manifest reading decides.
  // `exchange` must outlive the file. Ranks agree on the outcome: either all get a file or all get a Status.
  static Result<std::unique_ptr<ProtectedFile>> open(catalog::Located located, Purpose access, const Settings& settings,
                                                     exchange::Exchange& exchange);

  // Calls are as in file_layer.hpp. Its collective ones are MPI's of the same names; a process that is on its own makes them alone.

  // Of a process that is on its own in its open, so that the bytes' place is its own. They are committed when it returns where that is.
  // Nothing is kept of an append that failed.
  Result<Extent> append(std::span<const ByteView> pieces, bool durable) override = 0;
  Result<uint64_t> append(ByteView data, bool durable);

  virtual const catalog::Located& located() const = 0;
  // Members that this process knows to be lost or stale, by index; for messages and the job log.
  virtual std::vector<int> lost_members() const = 0;
};

}  // namespace holdfast::engine
