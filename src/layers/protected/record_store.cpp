#include "layers/protected/record_store.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace holdfast::layers {

using layout::RowRecord;

namespace {
constexpr size_t cache_limit_bytes = 16 << 20;
constexpr uint64_t load_bytes = 96 << 10;  // one read brings the records of many rows
}  // namespace

RecordStore::RecordStore(Members& members, const catalog::Located& located)
    : members_(members),
      located_(located),
      key_(layout::file_key(located.manifest.file_id)),
      slot_bytes_(layout::record_slot_bytes(located.manifest.geometry)) {}

Bytes RecordStore::encode(std::span<const RowRecord> consecutive) const {
  Bytes bytes(consecutive.size() * slot_bytes_);
  for (size_t i = 0; i < consecutive.size(); ++i)
    if (consecutive[i].generation != 0)  // a row that was never written has a slot of zeros
      layout::encode_record(located_.manifest.geometry, key_, consecutive[i], bytes.data() + i * slot_bytes_);
  return bytes;
}

Result<RowRecord> RecordStore::get(uint64_t row) {
  if (auto it = cache_.find(row); it != cache_.end()) return it->second;
  const uint64_t rows = std::max<uint64_t>(1, load_bytes / slot_bytes_);
  if (cache_.size() * slot_bytes_ > cache_limit_bytes) cache_.clear();
  HF_TRY(load(row / rows * rows, rows));
  auto it = cache_.find(row);
  if (it == cache_.end())
    return Status(Kind::lost, fmt::format("row {} of {}: its record cannot be read from any target ({})", row,
                                          located_.manifest.path, members_.describe_lost()));
  return it->second;
}

// Rows for which every available member's slot is damaged or out of reach stay out of the cache.
Status RecordStore::load(uint64_t first_row, uint64_t rows) {
  auto buffers = std::make_shared<std::vector<Bytes>>(members_.count());
  const uint64_t offset = first_row * slot_bytes_;
  std::vector<Status> answers = members_.ask_each([&](int member) -> MemberCall {
    return [buffers, member, offset, bytes = rows * slot_bytes_, name = object_name(member)](MemberHandle& handle) {
      Bytes buffer(bytes);
      auto opened = handle.object(name, target::OpenMode::read);
      if (!opened.ok()) return opened.status();
      iovec into{buffer.data(), buffer.size()};
      auto got = (*opened)->read(offset, std::span<const iovec>(&into, 1));
      if (!got.ok()) return got.status();
      buffer.resize(*got);
      (*buffers)[member] = std::move(buffer);
      return Status();
    };
  });
  // A sums object that ends before the last synced row has been cut: its silence says nothing about holes.
  const uint64_t synced_rows = located_.manifest.rows;
  for (uint64_t i = 0; i < rows; ++i) {
    const uint64_t row = first_row + i;
    RowRecord best{row, 0, {}};
    bool known = false;
    for (int member = 0; member < members_.count(); ++member) {
      if (!members_.available(member)) continue;
      if (!answers[member].ok()) {
        // No object at all: fine as long as nothing was ever synced.
        if (answers[member].kind() == Kind::not_found && row >= synced_rows) known = true;
        continue;
      }
      const Bytes& buffer = (*buffers)[member];
      if (buffer.size() < (i + 1) * slot_bytes_) {
        if (row >= synced_rows) known = true;
        continue;
      }
      auto record = layout::decode_record(located_.manifest.geometry, key_, row,
                                          ByteView(buffer).subspan(i * slot_bytes_, slot_bytes_));
      if (!record.ok()) continue;
      known = true;
      if (record->generation > best.generation) best = std::move(*record);
    }
    if (known && !cache_.contains(row)) cache_[row] = std::move(best);
  }
  return Status();
}

}  // namespace holdfast::layers
