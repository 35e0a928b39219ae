// The ProtectedFile itself: what protected_file.hpp promises, in terms of the rooms' parts. Split over file_open.cpp (open, and what
// is known of others), file_access.cpp (independent reads and writes), file_append.cpp, file_collective.cpp (those of all ranks), file_fold.cpp
// (from parts to rows), file_commit.cpp (sync, set_size, close) and file_late.cpp (targets that are slow). docs/coherence.md says what may be
// believed, by whom, until when.
#pragma once
#include <algorithm>
#include <chrono>
#include <memory>
#include <mutex>
#include <shared_mutex>

#include "base/turns.hpp"
#include "engine/direct_rows.hpp"
#include "engine/exclusion.hpp"
#include "engine/journal.hpp"
#include "engine/journal_overlay.hpp"
#include "engine/manifest_store.hpp"
#include "engine/members.hpp"
#include "engine/pending.hpp"
#include "engine/protected_file.hpp"
#include "engine/record_store.hpp"
#include "engine/row_exchange.hpp"
#include "engine/row_reader.hpp"
#include "engine/row_writer.hpp"

namespace holdfast::engine {

class File final : public ProtectedFile, private OtherOpeners {
 public:
  File(catalog::Located located, Purpose access, const Settings& settings, exchange::Exchange& ranks);

  Status begin();  // collective; the rest of open

  Status write(std::span<const Extent> extents, ByteView data) override;
  Result<uint64_t> read(std::span<const Extent> extents, ByteSpan into) override;
  Result<uint64_t> size() override;
  using ProtectedFile::read_all;
  using ProtectedFile::write_all;
  Status write_all(std::span<const Extent> extents, ByteView data, bool& more) override;
  Result<uint64_t> read_all(std::span<const Extent> extents, ByteSpan into, bool& more) override;
  Status sync() override;
  Status set_size(uint64_t bytes) override;
  Status allocate(int mode, const Extent& extent) override;
  Status lengthen(uint64_t bytes) override;
  using ProtectedFile::append;
  Result<Extent> append(std::span<const ByteView> pieces, bool durable) override;
  Status set_atomic(bool atomic) override;
  Result<uint64_t> agreed_size() override;
  Status close() override;
  const catalog::Located& located() const override { return located_; }
  std::vector<int> lost_members() const override;

 private:
  // file_open.cpp
  bool have_not_synced(uint64_t generation) const override;
  bool look_again() override;
  void make_missing_directories();
  Result<layout::Manifest> begin_on_rank_0();
  Result<layout::Manifest> begin_as_maker();
  Status read_at_open(layout::Manifest& manifest);
  Status begin_writing(layout::Manifest& manifest, const Others& others);
  Status finish_commits(layout::Manifest& manifest);
  void open_ahead();
  Status adopt_commits();
  void use_journals();
  // Other ranks may have written rows, or records, that this one remembers.
  void forget_rows();
  // Others have committed, or may have, since `known_generation` was the next one: nothing that is remembered counts.
  void look_anew(uint64_t known_generation);

  // file_access.cpp
  Status check_held(uint64_t end);
  bool may_write_in_place(uint64_t row, Status& status, bool looked_again = false);
  Status write_direct(std::span<const RowImage> rows);
  Status write_pending_row(uint64_t row);
  void reaches(uint64_t end);
  Status take(std::span<const Extent> extents, ByteView data);
  Status write_atomic(std::span<const Extent> extents, ByteView data);
  Status fold_many_journals();
  struct Reading;
  Reading look_up(std::span<const Extent> extents, ByteSpan into);
  bool may_begin_beside(const Reading& reading);
  Status finish(Reading& reading, RowReader::Begun& begun);
  Status lay_pending_over(const Reading& reading);
  Status read_pieces(std::span<const Extent> extents, ByteSpan into, uint64_t& before_end);
  enum class RowOrigin : uint8_t { as_committed, in_place, parts_over_own };
  RowOrigin origin_of(uint64_t row);
  Status read_parts_over_own(const RowRange& piece);
  Status read_rows(std::span<const RowRange> pieces);

  // file_collective.cpp
  struct Call;
  Status split(std::span<const Extent> extents, ByteView data, Call& call);
  Status meet(Call& call);
  Status write_whole_rows(Call& call);
  Result<uint64_t> read_with_pending(std::span<const Extent> extents, ByteSpan into);

  // file_fold.cpp
  struct Fold;
  Status write_if_whole(uint64_t row, std::span<const OutExtent> pieces, std::vector<uint64_t>& written);
  Status fold_pending(exchange::Exchange& ranks, std::vector<OutExtent> more, const Fold& how);
  Status fold_row(uint64_t row, std::span<const OutExtent> pieces, const Fold& how);
  std::map<uint64_t, uint64_t> direct_times(exchange::Exchange& ranks);
  Status choose_among_rows_written_twice(exchange::Exchange& ranks);
  Status code_as_it_lies(uint64_t row);
  Status fold_own_under_journals(exchange::Exchange& ranks, const Fold& how);
  Status read_base(uint64_t row, uint64_t valid, const Intervals& covered, const Fold& how, Buffer& buffer);

  // file_commit.cpp
  struct Commit {
    bool durable = true;
    bool final = false;         // the session ends: no new generation
    bool keep_session = false;  // one rank commits alone (atomic mode); the session's generation stays open
    bool locked = false;        // the caller holds the lock
    bool forced = false;        // also where nothing was written
    std::optional<uint64_t> new_size = {};
  };
  Status commit(exchange::Exchange& ranks, const Commit& how);
  Status try_commit(exchange::Exchange& ranks, const Commit& how);
  Status commit_locked(exchange::Exchange& ranks, const Commit& how, uint64_t end_of_all);
  Status settle_all(exchange::Exchange& ranks, bool durable, const Status& before, const std::optional<StagedManifest>& staged = {});
  Result<bool> read_for_commit(layout::Manifest& manifest);
  Result<layout::Manifest> start_commit(Locks& locks, const Commit& how);
  Result<Locks> lock_and_look();
  bool lone_may_write(exchange::Exchange& ranks) const;
  bool left_by_the_dead(uint64_t row);
  std::vector<OutExtent> zeros_behind_end(const Commit& how, uint64_t end_of_all, Bytes& zeros);
  std::vector<OutExtent> zeros_behind_cut(const Commit& how, uint64_t end_of_all, const Fold& fold, Bytes& zeros);
  bool is_behind_cut(uint64_t row, bool defer);
  Result<layout::Manifest> committed_manifest(const Commit& how, const Fold& fold, const std::vector<std::string>& journals) const;
  Result<layout::Manifest> write_committed(const Commit& how, const Fold& fold, Result<layout::Manifest> manifest);
  bool is_first_of_all() const;
  void lay_ends(const layout::Manifest& manifest, const Fold& fold, bool durable);
  void lengthen_records(uint64_t end);
  void write_back_together(exchange::Exchange& ranks);
  Status finish_commit(exchange::Exchange& ranks, const Commit& how, const Fold& fold, Journal& journal);
  std::vector<std::string> gather_journals(exchange::Exchange& ranks, const Journal& journal);
  Status adopt(exchange::Exchange& ranks, const Result<layout::Manifest>& from_rank_0);
  Status cut(uint64_t bytes);

  // file_late.cpp
  // How long the ranks wait in one call, counted in looks: these they have in common, and clocks they have not.
  struct Patience {
    static constexpr int looks_per_deadline = 20;
    explicit Patience(const Settings& settings)
        : pause(std::max<uint64_t>(1000, settings.deadline_ms * 1000 / looks_per_deadline)), most(looks_per_deadline * (settings.patience - 1)) {}
    bool over() const { return looks >= most || quiet >= looks_per_deadline; }
    std::chrono::microseconds pause;
    int most, looks = 0;
    int quiet = 0;  // looks since any rank has seen a call come back
  };
  struct Seen;
  Status agree_outside_commit(const Status& mine);
  bool wait_for_late(Patience& patience);
  Seen look_at_late(std::chrono::steady_clock::time_point since);
  void make_up_late(const Seen& seen);
  Status announce_on(int member);

  bool lone() const { return opener_ != 0 && located_.manifest.lone == opener_; }

  catalog::Located located_;
  Purpose access_;
  Settings settings_;
  exchange::Exchange& ranks_;
  std::unique_ptr<exchange::Exchange> alone_;
  Members members_;
  RecordStore records_;
  JournalOverlay journals_;
  RowWriter writer_;
  RowReader reader_;
  Spill spill_;
  Pending pending_;
  DirectRows direct_;
  Locks presence_;             // of a writer: that this rank of its opener lives
  Locks leader_;               // of a writer's rank 0, of several
  Turns mutex_;                // readers that change nothing side by side, everybody else alone
  uint64_t opener_ = 0;        // number of this opening for writing; the session's first generation
  uint64_t session_ = 0;       // generation of what this session writes before its next sync
  uint64_t file_end_ = 0;      // the end of file as this rank knows it
  uint64_t own_end_ = 0;       // of that which this opener has written and not committed; what was only seen another one may cut
  uint64_t object_limit_ = 0;  // the most bytes of an object, once the members were asked
  bool others_alive_ = false;  // rank 0, under the lock: whether other openers live
  bool nobody_came_ = false;   // the same: whether nobody else has opened or committed since this session began
  bool dirty_ = false;
  bool manifest_is_current_ = true;  // unless too few answered when it was read anew
  MemberSet losses_told_;            // the members that were lost when the ranks last agreed on them in a collective read
  bool rows_told_ = true;            // whether the other ranks know of all rows that this one has written whole, outside commits
  bool atomic_ = false;
  bool commit_failed_ = false;  // until the next one that does not: nothing goes in place outside commits
  bool committed_ = false;      // whether the last commit had anything to do; the same on all ranks
};

}  // namespace holdfast::engine
