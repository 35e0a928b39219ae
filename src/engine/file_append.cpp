// Appending: where bytes go is decided under the file's lock and written down before the lock goes, so that nobody else decides the same.
#include "engine/file.hpp"

#include "base/meter.hpp"

namespace holdfast::engine {

namespace {

// The pieces as one; `room` holds them where they are several.
ByteView together(std::span<const ByteView> pieces, Bytes& room) {
  if (pieces.size() == 1) return pieces[0];
  for (const ByteView& piece : pieces) room.insert(room.end(), piece.begin(), piece.end());
  return room;
}

}  // namespace

Result<uint64_t> ProtectedFile::append(ByteView data, bool durable) {
  auto taken = append({&data, 1}, durable);
  if (!taken) return taken.status();
  return taken->offset;
}

Result<Extent> File::append(std::span<const ByteView> pieces, bool durable) {
  const LayerTime measured;
  std::lock_guard guard(mutex_);
  if (!access_.write) return Status(Kind::access, located_.manifest.path + ": opened for reading only");
  if (!pending_.empty()) HF_TRY(commit(ranks_, {.durable = false}));
  auto locks = lock_and_look();
  if (!locks.ok()) return locks.status();
  const uint64_t at = file_end_, own = own_end_;
  Bytes room;
  const ByteView data = together(pieces, room);
  const bool was_dirty = dirty_;
  // Whole rows go out from here: under the lock their place is nobody else's.
  const Extent extent{at, data.size()};
  Status status = take({&extent, 1}, data);
  if (status.ok()) {
    dirty_ = true;
    status = commit(ranks_, {.durable = durable, .locked = true});
  }
  if (!status.ok()) {
    pending_.drop_all();  // it was only appended, and could go to another's place if it were kept
    file_end_ = at;
    own_end_ = own;
    dirty_ = was_dirty;
    return status;
  }
  dirty_ = !durable;
  return extent;
}

}  // namespace holdfast::engine
