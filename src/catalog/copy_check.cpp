#include "catalog/copy_check.hpp"

#include <algorithm>
#include <mutex>
#include <vector>

#include "coding/checksum.hpp"
#include "layout/row_record.hpp"

namespace holdfast::catalog {

namespace {

// Whoever opens a file waits for this; beyond it the user decides.
constexpr uint64_t most_bytes = 256 << 20;
constexpr uint64_t step_bytes = 4 << 20;  // of one call, which has a deadline
constexpr size_t most_remembered = 64;

struct Checked {
  std::string file_id;
  uint64_t epoch = 0;
  layout::PathState state;  // whoever changes the copy changes its time
  bool operator==(const Checked&) const = default;
};

// Programs ask for a file's size over and over; the copy is read once.
class Remembered {
 public:
  bool has(const Checked& checked) {
    std::lock_guard lock(mutex_);
    return std::find(found_.begin(), found_.end(), checked) != found_.end();
  }
  void add(Checked checked) {
    std::lock_guard lock(mutex_);
    if (found_.size() >= most_remembered) found_.erase(found_.begin());
    found_.push_back(std::move(checked));
  }

 private:
  std::mutex mutex_;
  std::vector<Checked> found_;
};

Remembered& remembered() {
  static auto* one = new Remembered;
  return *one;
}

// Reads exactly into.size() bytes; what the object does not have reads as zeros.
Status read_padded(target::Object& object, uint64_t offset, ByteSpan into) {
  std::fill(into.begin(), into.end(), std::byte{});
  iovec vector{into.data(), into.size()};
  return object.read(offset, std::span<const iovec>(&vector, 1)).status();
}

// Shared with a call that outlives its deadline.
class Checker {
 public:
  Checker(layout::Manifest manifest, int member, std::string sums, std::string data)
      : manifest_(std::move(manifest)),
        key_(layout::file_key(manifest_.file_id)),
        member_(member),
        sums_name_(std::move(sums)),
        data_name_(std::move(data)),
        slot_(layout::record_slot_bytes(geometry())),
        block_(geometry().block_bytes) {}

  // Some rows more. Kind::corrupt where one does not hold what its record says.
  Status step(target::Target& target) {
    if (!data_) {
      auto sums = target.open(sums_name_, target::OpenMode::read), data = target.open(data_name_, target::OpenMode::read);
      if (!sums || !data) return sums ? data.status() : sums.status();
      sums_ = *sums;
      data_ = *data;
    }
    for (const uint64_t end = std::min(manifest_.rows, row_ + rows_of_a_step()); row_ < end; ++row_) HF_TRY(check_row());
    return {};
  }
  bool done() const { return row_ >= manifest_.rows; }

 private:
  const layout::Geometry& geometry() const { return manifest_.geometry; }
  uint64_t rows_of_a_step() const { return std::max<uint64_t>(1, step_bytes / geometry().row_bytes()); }

  Status check_row() {
    HF_TRY(read_padded(*sums_, row_ * slot_.size(), slot_));
    auto record = layout::decode_record(geometry(), key_, row_, slot_);
    if (!record) return record.status();
    for (int unit = 0; unit < geometry().scheme.width(); ++unit) {
      const layout::UnitPlace place = layout::place(geometry(), row_, unit);
      const bool here = geometry().single_directory ? place.object == 0 : place.member == member_;
      if (!here) continue;
      for (uint32_t block = 0; block < geometry().blocks_per_unit(); ++block) HF_TRY(check_block(*record, unit, block, place.offset));
    }
    return {};
  }

  Status check_block(const layout::RowRecord& record, int unit, uint32_t block, uint64_t unit_offset) {
    HF_TRY(read_padded(*data_, unit_offset + uint64_t(block) * block_.size(), block_));
    // An entry of 0: never written, zeros. A real checksum is never 0.
    const uint64_t wanted = record.hole() ? 0 : record.checksums[size_t(unit) * geometry().blocks_per_unit() + block];
    const bool zeros = std::all_of(block_.begin(), block_.end(), [](std::byte b) { return b == std::byte{}; });
    const bool holds = wanted == 0 ? zeros : wanted == std::max<uint64_t>(1, coding::block_checksum(key_, record.row, unit, block, block_));
    return holds ? Status() : Status(Kind::corrupt, "the copy does not hold what its checksums say");
  }

  const layout::Manifest manifest_;
  const uint64_t key_;
  const int member_;
  const std::string sums_name_, data_name_;
  std::shared_ptr<target::Object> sums_, data_;
  Bytes slot_, block_;
  uint64_t row_ = 0;
};

// The data object of which the member has a whole copy.
int copy_of(const layout::Geometry& g, int member) {
  if (g.single_directory) return 0;
  for (int unit = 0; unit < g.scheme.width(); ++unit)
    if (const layout::UnitPlace place = layout::place(g, 0, unit); place.member == member) return place.object;
  return -1;
}

}  // namespace

uint64_t padded_size(const layout::Manifest& manifest) { return round_up(manifest.size, manifest.geometry.block_bytes); }

bool holds_its_checksums(const Located& located, int member, const layout::PathState& now) {
  const layout::Manifest& manifest = located.manifest;
  const bool right_size = now.size == manifest.size || now.size == padded_size(manifest);
  if (manifest.size == 0 || !right_size || manifest.size > most_bytes) return false;
  if (manifest.rows != divide_up(manifest.size, manifest.geometry.row_bytes())) return false;
  const Member& holder = located.members[size_t(member)];
  const int object = copy_of(manifest.geometry, member);
  if (!holder.usable() || object < 0) return false;
  const Checked checked{manifest.file_id, manifest.epoch, now};
  if (remembered().has(checked)) return true;
  auto checker = std::make_shared<Checker>(manifest, member, located.meta_name(member, "sums"), located.data_name(object));
  while (!checker->done())
    if (!holder.lane->run([checker, target = holder.target] { return checker->step(*target); }).ok()) return false;
  remembered().add(checked);
  return true;
}

}  // namespace holdfast::catalog
