#include "file/left_parts.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <map>
#include <optional>
#include <set>

#include <fmt/format.h>

#include "base/intervals.hpp"
#include "base/raw_syscalls.hpp"
#include "catalog/user_files.hpp"
#include "coding/checksum.hpp"
#include "file/coordinated/write/separate.hpp"
#include "file/part_files.hpp"

namespace holdfast::file {

namespace {

constexpr size_t id_digits = 16, read_at_once = 4 << 20;

// ".NAME.holdfast-parts-0123456789abcdef": NAME.
std::optional<std::string> name_in_note(const std::string& entry) {
  if (entry.size() < 2 + parts_word.size() + id_digits || entry[0] != '.') return std::nullopt;
  const size_t word = entry.size() - id_digits - parts_word.size();
  if (entry.compare(word, parts_word.size(), parts_word) != 0) return std::nullopt;
  if (entry.find_first_not_of("0123456789abcdef", word + parts_word.size()) != std::string::npos) return std::nullopt;
  return entry.substr(1, word - 1);
}

raw::Fd open_left(const std::string& path) { return raw::Fd(raw::openat(AT_FDCWD, path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW)); }

bool is_held(int fd) { return raw::flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK; }

bool read_whole(int fd, uint64_t at, ByteSpan into) {
  while (!into.empty()) {
    const ssize_t got = raw::pread(fd, into.data(), into.size(), at);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    at += uint64_t(got);
    into = into.subspan(size_t(got));
  }
  return true;
}

struct FoundRecord {
  layout::PartRecord record;
  int team = 0;
  uint64_t data_at = 0;
};

// One part, to where it ends or is torn.
class PartScan {
 public:
  PartScan(int fd, int team, uint64_t id) : fd_(fd), team_(team), id_(id) {
    struct stat state {};
    if (raw::fstat(fd, &state) == 0) end_ = uint64_t(state.st_size);
  }
  std::optional<FoundRecord> next() {
    Bytes head(layout::part_page);
    if (!read_whole(fd_, at_, head)) return std::nullopt;
    const auto head_bytes = layout::part_head_of(head);
    if (!head_bytes || *head_bytes > end_ - at_) return std::nullopt;
    head.resize(*head_bytes);
    if (!read_whole(fd_, at_, head)) return std::nullopt;
    auto record = layout::decode_part_record(head);
    const uint64_t data_at = at_ + *head_bytes;
    if (!record || record->id != id_ || record->bytes > end_ - data_at || !is_whole(*record, data_at)) return std::nullopt;
    at_ += layout::part_record_bytes(record->extents.size(), record->bytes);
    return FoundRecord{std::move(*record), team_, data_at};
  }

 private:
  bool is_whole(const layout::PartRecord& record, uint64_t at) const {
    coding::RunningChecksum sum(0);
    Bytes buffer(std::min<uint64_t>(record.bytes, read_at_once));
    for (uint64_t left = record.bytes; left > 0;) {
      const ByteSpan piece = ByteSpan(buffer).first(std::min<uint64_t>(left, buffer.size()));
      if (!read_whole(fd_, at, piece)) return false;
      sum.add(piece);
      at += piece.size(), left -= piece.size();
    }
    return sum.value() == record.checksum;
  }
  const int fd_, team_;
  const uint64_t id_;
  uint64_t at_ = 0, end_ = 0;
};

// All parts of a note, and what they have.
struct Collected {
  std::map<int, raw::Fd> parts;
  std::map<uint64_t, std::vector<FoundRecord>> writes;  // by number
  std::string absent;                                   // a part that is not there

  void collect(const layout::PartNote& note, const std::string& path) {
    for (uint64_t left = note.teams; left != 0; left &= left - 1) {
      const int team = std::countr_zero(left);
      const std::string part = part_of_team(path, team);
      raw::Fd fd = open_left(part);
      if (!fd) {
        absent = part;
        continue;
      }
      PartScan scan(fd.get(), team, note.id);
      while (auto found = scan.next()) writes[found->record.number].push_back(std::move(*found));
      parts[team] = std::move(fd);
    }
  }
  static bool is_covered(const std::vector<FoundRecord>& chunks) {
    Intervals there;
    for (const FoundRecord& one : chunks) there.add(one.record.begin, one.record.begin + one.record.bytes);
    return there.covers(0, chunks[0].record.call_bytes);
  }
  // The last write alone may be there in part: it was not over.
  Status judge(const std::string& path, LeftParts& left) const {
    uint64_t expected = 1;
    for (const auto& [number, chunks] : writes) {
      const bool is_last = number == writes.rbegin()->first, covered = is_covered(chunks);
      if (number != expected++ || (!covered && !is_last)) return lacking_of(path);
      left.writes += covered;
      if (covered) left.bytes += chunks[0].record.call_bytes;
      left.torn |= !covered;
    }
    return writes.empty() && !absent.empty() ? lacking_of(path) : Status();
  }
  Status lacking_of(const std::string& path) const {
    return Status(Kind::corrupt, fmt::format("bytes of some writes are in no part: {}",
                                             absent.empty() ? "a part beside " + path + " is damaged" : absent + " is not there"));
  }
  PartsOfFile newest() const {
    PartsOfFile all;
    for (const auto& [number, chunks] : writes)
      for (const FoundRecord& one : chunks) {
        uint64_t at = one.data_at;
        for (const Extent& extent : one.record.extents) all.add(extent, one.team, at), at += extent.length;
      }
    return all;
  }
};

Result<LeftParts> look_at_note(const std::string& path) {
  const raw::Fd fd = open_left(path);
  if (!fd) return Status::from_errno(errno, path);
  Bytes bytes(layout::most_note_bytes);
  const ssize_t got = raw::pread(fd.get(), bytes.data(), bytes.size(), 0);
  if (got < 0) return Status::from_errno(errno, path);
  auto note = layout::decode_part_note(ByteView(bytes).first(size_t(got)));
  HF_TRY(note.status());
  return LeftParts{.path = path, .note = std::move(*note), .in_use = is_held(fd.get())};
}

// Of a note that was not whole yet: nothing of what it stands for was ever written.
void look_at_parts(LeftParts& left) {
  Collected all;
  all.collect(left.note, left.path);
  for (const auto& [team, fd] : all.parts) left.in_use |= is_held(fd.get());
  left.lacking = all.judge(left.path, left);
}

std::string in_directory(const std::string& directory, const std::string& name) { return (directory == "/" ? "" : directory) + "/" + name; }

Result<std::vector<LeftParts>> notes_of(const std::string& file) {
  const std::string path = catalog::resolved_path(file), directory = catalog::parent_of(path);
  const auto state = catalog::look(path, true);
  const auto entries = catalog::list_directory(directory);
  if (!entries) return entries.status().kind() == Kind::not_found ? Result<std::vector<LeftParts>>(std::vector<LeftParts>()) : entries.status();
  std::vector<LeftParts> all;
  for (const std::string& entry : *entries) {
    const auto name = name_in_note(entry);
    if (!name) continue;
    auto left = look_at_note(in_directory(directory, entry));
    if (!left && left.status().kind() == Kind::corrupt) continue;
    HF_TRY(left.status());
    const layout::PathState& main = left->note.main;
    const bool was_renamed = state && main.known() && main.inode == state->inode && main.device == state->device;
    if (*name == catalog::name_of(path) || was_renamed) all.push_back(std::move(*left));
  }
  std::sort(all.begin(), all.end(), [](const LeftParts& a, const LeftParts& b) { return a.path < b.path; });
  return all;
}

Status removed(const std::string& path) {
  return raw::unlinkat(AT_FDCWD, path.c_str(), 0) == 0 || errno == ENOENT ? Status() : Status::from_errno(errno, path + " cannot be removed");
}

}  // namespace

Result<std::vector<LeftParts>> left_parts(const std::string& file) {
  auto all = notes_of(file);
  HF_TRY(all.status());
  for (LeftParts& left : *all) look_at_parts(left);
  return all;
}

bool has_left_parts(const std::string& file) {
  const auto all = notes_of(file);
  return all && !all->empty();
}

std::vector<std::string> files_with_left_parts(const std::string& directory) {
  std::set<std::string> names;
  if (const auto entries = catalog::list_directory(directory))
    for (const std::string& entry : *entries)
      if (const auto name = name_in_note(entry)) names.insert(*name);
  return {names.begin(), names.end()};
}

Status note_joining(const LeftParts& left, const std::string& file) {
  const auto now = catalog::look(catalog::resolved_path(file), true);
  const raw::Fd note(raw::openat(AT_FDCWD, left.path.c_str(), O_WRONLY | O_CLOEXEC | O_NOFOLLOW));
  if (!now || !note) return Status::from_errno(errno, left.path);
  return write_joining(note.get(), left.note.id, now->path_state(), left.path);
}

Status join_left(const LeftParts& left, const std::string& file, const std::function<bool(uint64_t)>& progress) {
  const std::string path = catalog::resolved_path(file);
  const raw::Fd to(raw::openat(AT_FDCWD, path.c_str(), O_WRONLY | O_CLOEXEC));
  if (!to) return Status::from_errno(errno, path);
  Collected all;
  all.collect(left.note, left.path);
  uint64_t done = 0;
  const PartsOfFile newest = all.newest();
  for (const auto& [begin, source] : newest.sources()) {
    HF_TRY(copy_between(all.parts[source.team].get(), source.at, to.get(), {begin, source.end - begin}, path));
    if (!progress(done += source.end - begin)) return Status(Kind::busy, "stopped before all was joined");
  }
  if (raw::fsync(to.get()) != 0) return Status::from_errno(errno, path + ": fsync");
  return discard_left(left);
}

// The note first: without it the parts mean nothing.
Status discard_left(const LeftParts& left) {
  HF_TRY(removed(left.path));
  for (uint64_t teams = left.note.teams; teams != 0; teams &= teams - 1) HF_TRY(removed(part_of_team(left.path, std::countr_zero(teams))));
  const raw::Fd directory(raw::openat(AT_FDCWD, catalog::parent_of(left.path).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  (void)raw::fsync(directory.get());
  return Status();
}

}  // namespace holdfast::file
