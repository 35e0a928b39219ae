// A protected file: rows of units, coded, checksummed and placed on the members of a Located. The heart of Holdfast.
//
// One object per process and open; `exchange` joins the processes that opened together. Methods marked collective
// are called by all of them in the same order. All methods are safe to call from several threads of a process
// (they take turns). See docs/architecture.md for how a row changes.
#pragma once
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/bytes.hpp"
#include "base/config.hpp"
#include "base/file_layer.hpp"
#include "base/status.hpp"
#include "catalog/located.hpp"
#include "exchange/exchange.hpp"

namespace holdfast::engine {

struct Access {
  bool read = true;
  bool write = false;
  bool fresh = false;  // just made by catalog::create: the members hold nothing yet
};

class ProtectedFile : public FileLayer {
 public:
  // Collective. `located` was found by each rank for itself (each has its own lanes); rank 0's manifest reading decides.
  // `exchange` must outlive the file. Ranks agree on the outcome: either all get a file or all get a Status.
  static Result<std::unique_ptr<ProtectedFile>> open(catalog::Located located, Access access, const Settings& settings, exchange::Exchange& exchange);
  // --- independent: write, read, size, as in file_layer.hpp.

  // Of a process that is on its own in its open. At the end of the file as all openers have committed it: the bytes have a place
  // of their own, and are committed, when it returns where that is. Nothing is kept of an append that failed.
  virtual Result<uint64_t> append(ByteView data, bool durable) = 0;

  // --- collective
  // `more`: whether this rank has more to write in calls that follow at once (a large transfer in bounded pieces); comes back true
  // as long as any rank has, and all then call again, with nothing where nothing is left.
  virtual Status write_all(std::span<const Extent> extents, ByteView data, bool& more) = 0;
  Status write_all(std::span<const Extent> extents, ByteView data) {
    bool more = false;
    return write_all(extents, data, more);
  }
  // Sees what other ranks have written by calls that have returned, synced or not. `more` as in write_all.
  virtual Result<uint64_t> read_all(std::span<const Extent> extents, ByteSpan into, bool& more) = 0;
  Result<uint64_t> read_all(std::span<const Extent> extents, ByteSpan into) {
    bool more = false;
    return read_all(extents, into, more);
  }
  // sync is MPI_File_sync, set_size MPI_File_set_size, close MPI_File_close; a process on its own calls them as file_layer.hpp says.
  virtual Status set_atomic(bool atomic) = 0;  // MPI_File_set_atomicity
  // Size agreed over all ranks, their unsynced writes included (MPI_SEEK_END, MPI_File_get_size after a collective write).
  virtual uint64_t agreed_size() = 0;

  virtual const catalog::Located& located() const = 0;
  // Members that this process knows to be lost or stale, by index; for messages and the job log.
  virtual std::vector<int> lost_members() const = 0;
};

}  // namespace holdfast::engine
