#include "layers/shared_records/log_scan.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include <fmt/format.h>

namespace holdfast::layers {

using layout::Entry;
using layout::entry_header_bytes;

Result<std::vector<ScannedEntry>> own_entries(RecordLog& log, uint64_t session, uint64_t& from, uint64_t to, size_t most) {
  std::vector<ScannedEntry> found;
  std::array<std::byte, entry_header_bytes> header;
  while (from < to && found.size() < most) {
    Result<Entry> entry(Kind::corrupt, "");
    auto sound = [&] {
      entry = layout::decode_entry(log.key(), from, header);
      return entry.ok();
    };
    if (Status status = log.read_checked(from, header, sound); !status.ok()) return status;
    if (entry->session == session) found.push_back({*entry, from});
    from = layout::entry_end(from, entry->length);
  }
  return found;
}

namespace {

bool sound_records(uint64_t key, std::span<const PendingRecord> records, const std::byte* span_start, uint64_t span_at) {
  return std::all_of(records.begin(), records.end(), [&](const PendingRecord& r) {
    return layout::entry_checksum(key, ByteView(span_start + (r.position - span_at), r.length)) == r.checksum;
  });
}

}  // namespace

Status read_packed(uint64_t key, std::span<const PendingRecord> records, ByteSpan packed,
                   const std::function<Status(uint64_t, ByteSpan, const std::function<bool()>&)>& read) {
  constexpr uint64_t piece_bytes = 256 << 10;  // stays in the processor's cache between the two copies
  Bytes piece;
  uint64_t at = 0;
  for (size_t i = 0; i < records.size();) {
    const uint64_t begin = records[i].position;
    size_t end = i + 1;
    // Neighbours, with little between them that is not theirs.
    while (end < records.size() && records[end].position >= records[end - 1].position + records[end - 1].length &&
           records[end].position - (records[end - 1].position + records[end - 1].length) < 4096 &&
           records[end].position + records[end].length - begin <= piece_bytes)
      ++end;
    const auto some = records.subspan(i, end - i);
    if (some.size() == 1) {
      const ByteSpan into = packed.subspan(at, some[0].length);
      HF_TRY(read(begin, into, [&] { return layout::entry_checksum(key, into) == some[0].checksum; }));
      at += some[0].length;
    } else {
      piece.resize(some.back().position + some.back().length - begin);
      HF_TRY(read(begin, piece, [&] { return sound_records(key, some, piece.data(), begin); }));
      for (const PendingRecord& record : some) {
        std::memcpy(packed.data() + at, piece.data() + (record.position - begin), record.length);
        at += record.length;
      }
    }
    i = end;
  }
  return Status();
}

Result<std::shared_ptr<LeftLog>> LeftLog::open(const Shelf& shelf, const std::string& object_name) {
  auto log = std::make_shared<LeftLog>();
  log->name_ = object_name;
  log->key_ = layout::log_key(object_name);
  Status last(Kind::not_found, fmt::format("{}: the log {} is gone", shelf.where(), object_name));
  for (const Shelf::Holder& holder : shelf.holders()) {
    auto opened = std::make_shared<std::pair<std::shared_ptr<target::Object>, uint64_t>>();
    const Status status = holder.run([opened, target = holder.target, name = holder.prefix + object_name] {
      auto object = target->open(name, target::OpenMode::read);
      if (!object.ok()) return object.status();
      auto size = (*object)->size();
      if (size.ok()) *opened = {*object, *size};
      return size.status();
    });
    if (!status.ok()) {
      if (status.kind() != Kind::not_found) last = status;
      continue;
    }
    log->copies_.push_back({holder, opened->first, opened->second});
    log->end_ = std::max(log->end_, opened->second);
  }
  if (log->copies_.empty()) return last;
  return log;
}

Status LeftLog::read_copy(const Copy& copy, uint64_t offset, ByteSpan into) {
  auto buffer = std::make_shared<Bytes>(into.size());
  const Status status = copy.holder.run([buffer, offset, object = copy.object] {
    iovec vector{buffer->data(), buffer->size()};
    return object->read(offset, std::span<const iovec>(&vector, 1)).status();
  });
  if (status.ok() && !into.empty()) std::memcpy(into.data(), buffer->data(), into.size());
  return status;
}

Status LeftLog::read_checked(uint64_t offset, ByteSpan into, const std::function<bool()>& sound) {
  Status last(Kind::corrupt, fmt::format("the log {} is damaged at byte {}", name_, offset));
  for (const Copy& copy : copies_) {
    const Status status = read_copy(copy, offset, into);
    if (!status.ok()) last = status;
    else if (sound()) return status;
  }
  // Entries that were told to be written may lie half in their places, half in the stage.
  for (const Staged& stage : staged_) {
    if (offset + into.size() <= stage.from || offset >= stage.end()) continue;
    const uint64_t begin = std::max(offset, stage.from), end = std::min(offset + into.size(), stage.end());
    std::copy_n(stage.bytes.begin() + std::ptrdiff_t(begin - stage.from), end - begin, into.begin() + std::ptrdiff_t(begin - offset));
    if (sound()) return Status();
  }
  return last;
}

// The newest filling of a stage: each entry says its place, and places only grow.
void LeftLog::load_stage(uint64_t position, uint64_t length) {
  for (const Copy& copy : copies_) {
    Bytes area(length);
    if (!read_copy(copy, position, area).ok()) continue;
    uint64_t first = 0, end = 0;  // of the filling, in the area
    uint64_t newest = 0;          // how far its entries are from their places
    for (uint64_t i = 0; i + entry_header_bytes <= area.size(); i += 8) {
      const auto found = layout::staged_entry(key_, ByteView(area).subspan(i));
      if (!found || found->first < position + length || found->first - (position + i) < newest) continue;
      if (found->first - (position + i) > newest) first = i;
      newest = found->first - (position + i);
      end = std::min<uint64_t>(area.size(), layout::entry_end(i, found->second.length));
    }
    if (newest == 0) continue;
    area.erase(area.begin() + std::ptrdiff_t(end), area.end());
    area.erase(area.begin(), area.begin() + std::ptrdiff_t(first));
    staged_.push_back({position + first + newest, std::move(area)});
    end_ = std::max(end_, staged_.back().end());
  }
}

Result<Entry> LeftLog::staged_entry_at(uint64_t position) const {
  Status last(Kind::not_found, "the log ends here");
  for (const Staged& stage : staged_) {
    if (position < stage.from || position >= stage.end()) continue;
    const ByteView there = ByteView(stage.bytes).subspan(position - stage.from);
    auto entry = layout::decode_entry(key_, position, there);
    last = Status(Kind::corrupt, "torn");
    if (entry.ok() && entry->length <= there.size() - entry_header_bytes &&
        layout::entry_checksum(key_, there.subspan(entry_header_bytes, entry->length)) == entry->checksum)
      return entry;
  }
  return last;
}

// Not found at the end of all copies. `refused`: a copy could not be read, or only by a newer Holdfast: without it nothing can be said.
Result<Entry> LeftLog::whole_entry(uint64_t position, Status& refused) {
  Status last(Kind::not_found, "the log ends here");
  for (const Copy& copy : copies_) {
    if (copy.size <= position) continue;
    std::array<std::byte, entry_header_bytes> header{};
    const ByteSpan there = ByteSpan(header).first(std::min<uint64_t>(header.size(), copy.size - position));
    if (Status status = read_copy(copy, position, there); !status.ok()) {
      refused = status;
      continue;
    }
    auto entry = layout::decode_entry(key_, position, there);
    if (entry.status().kind() == Kind::version) refused = entry.status();
    if (entry.status().kind() == Kind::not_found) continue;
    last = Status(Kind::corrupt, "torn");
    if (entry.ok() && entry->kind == layout::EntryKind::stage) return entry;
    if (!entry.ok() || entry->length > copy.size - std::min(copy.size, position + entry_header_bytes)) continue;
    Bytes payload(entry->length);
    if (Status status = read_copy(copy, position + entry_header_bytes, payload); !status.ok()) {
      refused = status;
      continue;
    }
    if (layout::entry_checksum(key_, payload) == entry->checksum) return entry;
  }
  auto staged = staged_entry_at(position);
  return staged.status().kind() == Kind::not_found ? last : staged;
}

// Where the next sound header is after one that was not; the end where there is none.
uint64_t LeftLog::next_entry(uint64_t after) {
  uint64_t found = end_;
  for (const Staged& stage : staged_)
    for (uint64_t at = std::max(round_up(after, 8), stage.from); at < stage.end() && at < found; at += 8)
      if (layout::staged_entry(key_, ByteView(stage.bytes).subspan(at - stage.from))) found = at;
  constexpr uint64_t window_bytes = 1 << 20;
  Bytes window(window_bytes + entry_header_bytes);
  for (uint64_t at = after; at < found; at += window_bytes) {
    for (const Copy& copy : copies_) {
      std::fill(window.begin(), window.end(), std::byte{0});
      const uint64_t have = copy.size > at ? std::min<uint64_t>(window.size(), copy.size - at) : 0;
      if (have < entry_header_bytes || !read_copy(copy, at, ByteSpan(window).first(have)).ok()) continue;
      for (uint64_t i = 0; i < window_bytes && i + entry_header_bytes <= have; i += 8) {
        if (window[i] == std::byte{0}) continue;
        if (layout::decode_entry(key_, at + i, ByteView(window).subspan(i, entry_header_bytes)).ok()) return std::min(found, at + i);
      }
    }
  }
  return found;
}

Status LeftLog::scan(const std::function<Status(const ScannedEntry&)>& each) {
  for (uint64_t at = 0; at < end_;) {
    Status refused;
    auto entry = whole_entry(at, refused);
    if (entry.ok()) {
      if (entry->kind == layout::EntryKind::stage) load_stage(at + entry_header_bytes, entry->length);
      else HF_TRY(each({*entry, at}));
      at = layout::entry_end(at, entry->length);
      continue;
    }
    HF_TRY(refused);
    const uint64_t next = next_entry(at + 8);
    // Zeros to the end are what an unfinished write or an unused stage leaves of a file's size: nothing that anybody was told of.
    if (entry.status().kind() != Kind::not_found || next < end_) {
      if (torn_++ == 0) torn_at_ = at;
    }
    at = next;
  }
  return Status();
}

Result<Bytes> LeftLog::payload(const ScannedEntry& scanned) {
  Bytes bytes(scanned.entry.length);
  const Status status =
      read_checked(scanned.position + entry_header_bytes, bytes, [&] { return layout::entry_checksum(key_, bytes) == scanned.entry.checksum; });
  if (!status.ok()) return status;
  return bytes;
}

Status LeftLog::read(std::span<const PendingRecord> records, ByteSpan packed) {
  return read_packed(key_, records, packed,
                     [&](uint64_t offset, ByteSpan into, const std::function<bool()>& sound) { return read_checked(offset, into, sound); });
}

}  // namespace holdfast::layers
