// Appending: where bytes go is decided under the file's lock and written down before the lock goes, so that nobody else decides the same.
#include "layers/protected/file.hpp"

#include <algorithm>

#include "base/meter.hpp"

namespace holdfast::layers {

// Parts of rows all of it, whole rows too: a row that goes out at once has a place before anybody else knows of it.
Status File::take_at_the_end(ByteView data) {
  const uint64_t row_bytes = rows_.geometry().row_bytes();
  for (uint64_t done = 0; done < data.size();) {
    const uint64_t at = file_end_ + done, in_row = at % row_bytes;
    const uint64_t length = std::min(data.size() - done, row_bytes - in_row);
    HF_TRY(pending_.add(at / row_bytes, in_row, data.data() + done, length));
    done += length;
  }
  return Status();
}

// What is pending was only appended, and could go to another's place if it were kept.
void File::drop_pending() {
  while (!pending_.empty()) pending_.drop(pending_.rows().begin()->first);
}

Result<uint64_t> File::append(ByteView data, bool durable) {
  const LayerTime measured;
  std::lock_guard guard(mutex_);
  if (!access_.write) return Status(Kind::access, located_.manifest.path + ": opened for reading only");
  if (!pending_.empty()) HF_TRY(commit(ranks_, {.durable = false}));
  auto locks = lock_file(members_, located_);
  if (!locks.ok()) return locks.status();
  HF_TRY(look_again());
  if (!dirty_) file_end_ = located_.manifest.size;  // another opener may have cut it
  const uint64_t at = file_end_;
  const bool was_dirty = dirty_;
  Status status = take_at_the_end(data);
  if (status.ok()) {
    file_end_ = at + data.size();
    status = commit(ranks_, {.durable = durable, .locked = true});
  }
  if (!status.ok()) {
    drop_pending();
    file_end_ = at;
    dirty_ = was_dirty;
    return status;
  }
  dirty_ = !durable;
  return at;
}

}  // namespace holdfast::layers
