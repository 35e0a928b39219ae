// The texts that were decoded last, and what they say. What a text says never changes, so nobody has to be asked whether it still holds.
#pragma once
#include <array>
#include <cstring>
#include <mutex>
#include <optional>

#include "base/bytes.hpp"
#include "base/status.hpp"

namespace holdfast::layout {

template <class What, size_t most>
class LastDecoded {
 public:
  // What `text` says: as it was decoded before, or else by `decode_anew`.
  template <class Decode>
  Result<What> or_else(ByteView text, const Decode& decode_anew) {
    if (auto known = find(text)) return std::move(*known);
    Result<What> what = decode_anew(text);
    if (what.ok()) remember(text, *what);
    return what;
  }

 private:
  // Who cannot have the lock at once decodes by himself: it may have been held where the process was forked.
  std::optional<What> find(ByteView text) {
    std::unique_lock guard(mutex_, std::try_to_lock);
    if (!guard) return {};
    for (const Entry& entry : entries_)
      if (!text.empty() && entry.text.size() == text.size() && !std::memcmp(text.data(), entry.text.data(), text.size())) return entry.what;
    return {};
  }
  void remember(ByteView text, const What& what) {
    std::unique_lock guard(mutex_, std::try_to_lock);
    if (!guard || text.empty() || text.size() > max_text_bytes) return;
    Entry& oldest = entries_[next_++ % entries_.size()];
    oldest.text.assign(text.begin(), text.end());
    oldest.what = what;
  }

  static constexpr size_t max_text_bytes = 64 << 10;
  struct Entry {
    Bytes text;
    What what;
  };
  std::mutex mutex_;
  std::array<Entry, most> entries_;
  size_t next_ = 0;
};

}  // namespace holdfast::layout
