// The ProtectedFile itself: what protected_file.hpp promises, in terms of the rooms' parts. Split over
// file_access.cpp (independent and collective reads and writes), file_commit.cpp (open, sync, set_size, close).
#pragma once
#include <memory>
#include <mutex>

#include "layers/protected/journal.hpp"
#include "layers/protected/manifest_store.hpp"
#include "layers/protected/members.hpp"
#include "layers/protected/pending.hpp"
#include "layers/protected/protected_file.hpp"
#include "layers/protected/record_store.hpp"
#include "layers/protected/row_exchange.hpp"
#include "layers/protected/row_io.hpp"

namespace holdfast::layers {

// The exclusion of other openers (and, in atomic mode, of other ranks) while it lives.
using Locks = std::vector<std::unique_ptr<target::Lock>>;
Result<Locks> lock_file(Members& members, const catalog::Located& located);
// What every member's lock of a writer that has the file open begins with.
inline constexpr const char* writer_lock_prefix = "writer.";

class File final : public ProtectedFile {
 public:
  File(catalog::Located located, Access access, const Settings& settings, exchange::Exchange& ranks);

  Status begin();  // collective; the rest of open

  Status write(std::span<const Extent> extents, ByteView data) override;
  Result<uint64_t> read(std::span<const Extent> extents, ByteSpan into) override;
  uint64_t size() override;
  using ProtectedFile::write_all;
  Status write_all(std::span<const Extent> extents, ByteView data, bool& more) override;
  Result<uint64_t> read_all(std::span<const Extent> extents, ByteSpan into) override;
  Status sync() override;
  Status set_size(uint64_t bytes) override;
  Status set_atomic(bool atomic) override;
  uint64_t agreed_size() override;
  Status close() override;
  const catalog::Located& located() const override { return located_; }
  std::vector<int> lost_members() const override;

 private:
  // file_access.cpp
  bool is_fresh(uint64_t row, Status& status);
  Status write_direct(std::span<const RowImage> rows);
  Status write_pending_row(uint64_t row);
  Status take(std::span<const Extent> extents, ByteView data);
  Status read_pieces(std::span<const Extent> extents, ByteSpan into, uint64_t& before_end);
  Status fold_row(uint64_t row, std::span<const OutExtent> pieces, uint64_t generation, uint64_t file_end, Journal* journal);
  Status fold_pending(exchange::Exchange& ranks, bool fresh_rows_only, std::vector<OutExtent> more, uint64_t generation,
                      uint64_t file_end, Journal* journal);
  // Rank-local: adopts what other openers and ranks have committed since.
  Status look_again();
  void use_journals();

  // file_commit.cpp
  Status begin_writing(layout::Manifest& manifest);
  void open_ahead();
  struct Commit {
    bool durable = true;
    bool final = false;          // the session ends: no new generation
    bool keep_session = false;   // one rank commits alone (atomic mode); the session's generation stays open
    bool locked = false;         // the caller holds the lock
    std::optional<uint64_t> new_size = {};
  };
  Status commit(exchange::Exchange& ranks, const Commit& how);
  Status settle(exchange::Exchange& ranks, bool durable, const Status& before);
  Result<layout::Manifest> start_commit(Locks& locks, const Commit& how);
  Result<layout::Manifest> write_committed(const Commit& how, uint64_t generation, uint64_t file_end,
                                           std::vector<std::string> journals);
  void write_hole_record(uint64_t row, uint64_t generation, bool durable);
  Status fold_journals(exchange::Exchange& ranks, const Commit& how, Journal& journal);
  std::vector<std::string> gather_journals(exchange::Exchange& ranks, const Journal& journal);
  Status adopt(exchange::Exchange& ranks, const Result<layout::Manifest>& from_rank_0);
  Status cut(uint64_t bytes);

  catalog::Located located_;
  Access access_;
  Settings settings_;
  exchange::Exchange& ranks_;
  std::unique_ptr<exchange::Exchange> alone_;
  Members members_;
  RecordStore records_;
  RowIo rows_;
  Spill spill_;
  Pending pending_;
  Locks presence_;  // rank 0 of a writer: that it is alive
  std::mutex mutex_;
  uint64_t session_ = 0;   // generation of what this session writes before its next sync
  uint64_t file_end_ = 0;  // the end of file as this rank knows it
  bool dirty_ = false;
  bool atomic_ = false;
};

}  // namespace holdfast::layers
