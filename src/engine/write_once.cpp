#include "engine/write_once.hpp"

#include <algorithm>
#include <cstring>
#include <deque>

#include <fmt/format.h>

#include "engine/buffers.hpp"
#include "engine/exclusion.hpp"
#include "engine/last_manifest.hpp"
#include "engine/manifest_store.hpp"
#include "engine/row_writer.hpp"

namespace holdfast::engine {

using layout::Manifest;

namespace {

// Of content in memory, however much there is of it: redundancy and what the lanes hold come to that.
uint64_t most_bytes(const Settings& settings) { return std::min<uint64_t>(settings.buffer_bytes, 32 << 20); }
constexpr uint64_t batches_at_once = 4;
constexpr uint64_t read_bytes = 512 << 10;  // it is coded while it is in the cache

class OnceWriter {
 public:
  OnceWriter(catalog::Located& located, uint64_t bytes, const ReadContent& read, const Settings& settings)
      : located_(located),
        bytes_(bytes),
        most_bytes_(most_bytes(settings)),
        read_(read),
        members_(located, settings),
        records_(members_, located),
        writer_(members_, records_, located) {}

  Status run() {
    const Status written = write();
    if (!written.ok()) call_lost_stale(members_, located_.manifest);
    return written;
  }

 private:
  Status write() {
    HF_TRY(check_losses(members_, located_.manifest));
    HF_TRY(write_rows());
    members_.each([](int) -> MemberCall { return [](MemberHandle& handle) { return handle.settle(true); }; });
    HF_TRY(enough_left());
    return write_last_manifest(members_, located_, bytes_);
  }
  const layout::Geometry& geometry() const { return located_.manifest.geometry; }

  Status enough_left() const { return bears_more(members_, located_.manifest); }

  // Rows are read and coded while those before them are on their way to the members.
  Status write_rows() {
    const uint64_t row_bytes = geometry().row_bytes(), rows = divide_up(bytes_, row_bytes);
    const uint64_t at_once = std::clamp<uint64_t>(most_bytes_ / batches_at_once / row_bytes, 1, std::max<uint64_t>(rows, 1));
    const uint64_t most_underway = std::max<uint64_t>(most_bytes_ / (at_once * row_bytes), 1) - 1;
    std::deque<Underway> underway;
    Status status;
    for (uint64_t first = 0; first < rows && status.ok(); first += at_once) {
      status = begin_batch(first, std::min(at_once, rows - first), underway);
      while (status.ok() && underway.size() > most_underway) status = finish_first(underway);
    }
    while (!underway.empty())
      if (Status finished = finish_first(underway); status.ok()) status = std::move(finished);
    return status;
  }

  struct Underway {
    std::vector<CodedRow> rows;
    Members::Begun calls;
  };

  Status begin_batch(uint64_t first, uint64_t count, std::deque<Underway>& underway) {
    const uint64_t row_bytes = geometry().row_bytes();
    // Of its own for each batch: a call that has outlived its deadline may still read from the last one.
    const auto content = std::make_shared<Buffer>(count * row_bytes);
    if (!content->valid()) return Status(Kind::internal, "no memory for a row");
    Underway batch;
    const uint64_t rows_at_once = std::clamp<uint64_t>(read_bytes / row_bytes, 1, count);
    for (uint64_t done = 0; done < count; done += rows_at_once) {
      const uint64_t rows = std::min(rows_at_once, count - done), begin = (first + done) * row_bytes;
      const ByteSpan into = content->span().subspan(size_t(done * row_bytes), size_t(rows * row_bytes));
      const size_t valid = size_t(std::min<uint64_t>(into.size(), bytes_ - begin));
      HF_TRY(read_(begin, into.first(valid)));
      std::memset(into.data() + valid, 0, into.size() - valid);
      for (uint64_t row = done; row < done + rows; ++row) batch.rows.push_back(code(first + row, content, row * row_bytes));
    }
    underway.push_back(std::move(batch));
    underway.back().calls = writer_.begin_in_place(underway.back().rows);
    // The calls keep the memory, and give it back with the last of them: the next rows get what is still in the cache.
    for (CodedRow& row : underway.back().rows) row.redundancy.reset(), row.units.clear();
    return {};
  }

  Status finish_first(std::deque<Underway>& underway) {
    Status status = writer_.finish_in_place(underway.front().rows, underway.front().calls);
    underway.pop_front();
    return status.ok() ? enough_left() : status;
  }

  CodedRow code(uint64_t row, const std::shared_ptr<Buffer>& content, uint64_t at) const {
    RowImage image;
    image.row = row;
    image.valid = std::min(geometry().row_bytes(), bytes_ - row * geometry().row_bytes());
    for (int unit = 0; unit < geometry().scheme.k; ++unit) image.data.push_back(content->data() + at + uint64_t(unit) * geometry().unit_bytes);
    CodedRow coded = writer_.code(image, only_generation);
    keep_with(coded, content);
    return coded;
  }

  // A call that hangs outlives this one, and the content has to outlive the call.
  static void keep_with(CodedRow& row, const std::shared_ptr<Buffer>& content) {
    const auto both = std::make_shared<std::pair<std::shared_ptr<Buffer>, std::shared_ptr<Buffer>>>(row.redundancy, content);
    row.redundancy = std::shared_ptr<Buffer>(both, content.get());
  }

  catalog::Located& located_;
  const uint64_t bytes_, most_bytes_;
  const ReadContent& read_;
  Members members_;
  RecordStore records_;
  RowWriter writer_;
  // A page fault for each page of each row would cost a third of what reading and coding it do.
  const KeepMoreBuffers kept_{2 * most_bytes_};
};

}  // namespace

Status write_once(catalog::Located& located, uint64_t bytes, const ReadContent& read, const Settings& settings) {
  if (!located.manifest.is_final()) return Status(Kind::internal, "only a version of a checkpoint is written once");
  return OnceWriter(located, bytes, read, settings).run();
}

bool counts_for_others(const catalog::Located& version) { return version.manifest.settled_epoch > 0; }

Result<int> make_final(const catalog::Located& located, const layout::Version& version, const Settings& settings) {
  Members members(located, settings);
  // Without a keeper of its path its openers know nothing of each other: one that nobody has heard of may be at work.
  Locks locks;
  if (!located.path_keeper) {
    auto held = lock_file(members, located, {});
    if (!held) return held.status();
    locks = std::move(*held);
  }
  auto reading = read_manifest(members, located, settings);
  if (!reading) return reading.status();
  lose_stale_members(members, *reading);
  Manifest& manifest = reading->manifest;
  if (!manifest.journals.empty() || !manifest.open_generations.empty() || manifest.cut_to)
    return Status(Kind::busy, fmt::format("{}: not all who have opened it have closed it", version.file));
  manifest.lone = 0;
  manifest.version = version;
  manifest.path.clear();
  HF_TRY(write_manifest(members, located, manifest, true));
  return members.lost_count();
}

}  // namespace holdfast::engine
