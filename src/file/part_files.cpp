#include "file/part_files.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <utility>

#include <fmt/format.h>

#include "base/own_numbers.hpp"
#include "catalog/user_files.hpp"
#include "layout/part.hpp"

namespace holdfast::file {

namespace {

constexpr size_t most_name_bytes = 255, id_and_team_bytes = 19;
constexpr size_t most_at_once = 1 << 30, copied_at_once = 4 << 20;

// `holdfast merge` leaves alone what somebody has open so.
raw::Fd open_and_hold(const std::string& path, int flags) {
  raw::Fd fd = raw::out_of_the_way(raw::Fd(raw::openat(AT_FDCWD, path.c_str(), flags | O_CLOEXEC | O_NOFOLLOW, 0600)));
  if (fd) (void)raw::flock(fd.get(), LOCK_SH | LOCK_NB);
  return fd;
}

Status write_all_at(int fd, uint64_t at, ByteView data, const std::string& name) {
  while (!data.empty()) {
    const ssize_t done = raw::pwrite(fd, data.data(), std::min(data.size(), most_at_once), at);
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) return Status::from_errno(done < 0 ? errno : EIO, name + ": write");
    at += uint64_t(done);
    data = data.subspan(size_t(done));
  }
  return Status();
}

// How much the file system has copied by itself.
uint64_t copied_by_the_system(int from, uint64_t at, int to, const Extent& extent) {
  uint64_t have = 0;
  while (have < extent.length) {
    auto read_at = off64_t(at + have), write_at = off64_t(extent.offset + have);
    const ssize_t done = syscall(SYS_copy_file_range, from, &read_at, to, &write_at, std::min<uint64_t>(extent.length - have, most_at_once), 0U);
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) break;  // why not, a write will say
    have += uint64_t(done);
  }
  return have;
}

// What of it is left, in pieces.
template <class Write>
Status copy_pieces(int from, uint64_t at, Extent extent, const std::string& name, Write write) {
  Bytes buffer(std::min<uint64_t>(extent.length, copied_at_once));
  while (extent.length > 0) {
    const ByteSpan piece = ByteSpan(buffer).first(std::min<uint64_t>(extent.length, buffer.size()));
    const ssize_t got = raw::pread(from, piece.data(), piece.size(), at);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return Status::from_errno(errno, name + ": a part of it cannot be read");
    if (got == 0) return Status(Kind::io, name + ": a part of it is shorter than what was written there", EIO);
    HF_TRY(write(Extent{extent.offset, uint64_t(got)}, piece.first(size_t(got))));
    at += uint64_t(got), extent.offset += uint64_t(got), extent.length -= uint64_t(got);
  }
  return Status();
}

Status gone_or(int result, const std::string& path) {
  return result == 0 || errno == ENOENT ? Status() : Status::from_errno(errno, path + " cannot be removed");
}

}  // namespace

std::string part_of_team(const std::string& note, int team) { return fmt::format("{}.{}", note, team); }

Status write_joining(int note, uint64_t id, layout::PathState file, const std::string& path) {
  file.change_ns = 0;
  return write_all_at(note, layout::note_main_at, layout::encode_main(id, file), path);
}

Status copy_between(int from, uint64_t at, int to, const Extent& extent, const std::string& name) {
  const uint64_t have = copied_by_the_system(from, at, to, extent);
  return copy_pieces(from, at + have, {extent.offset + have, extent.length - have}, name,
                     [&](const Extent& where, ByteView piece) { return write_all_at(to, where.offset, piece, name); });
}

std::unique_ptr<Parts> parts_of(int file, const Protocols& protocols, const redundant::Replica& replica) {
  if (file < 0 || protocols.write != WriteProtocol::distributed_separate) return nullptr;
  return std::make_unique<PartFiles>(file, replica.place().team, replica.place().rank);
}

// Beside the name that the file has now.
Result<std::string> PartFiles::place() {
  char path[4096];
  struct stat state {};
  const std::string link = fmt::format("/proc/self/fd/{}", file_);
  const ssize_t length = raw::readlinkat(AT_FDCWD, link.c_str(), path, sizeof path);
  const auto none = [] { return Status(Kind::unsupported, "there can be no parts beside the file"); };
  if (length <= 0 || size_t(length) == sizeof path || path[0] != '/' || raw::fstat(file_, &state) != 0) return none();
  if (!S_ISREG(state.st_mode) || state.st_nlink == 0) return none();
  const std::string name(path, size_t(length));
  const std::string note =
      fmt::format("{}/.{}{}", catalog::parent_of(name) == "/" ? "" : catalog::parent_of(name), catalog::name_of(name), parts_word);
  if (catalog::name_of(note).size() + id_and_team_bytes > most_name_bytes || note.size() + id_and_team_bytes > layout::note_main_at / 2)
    return none();
  return note;
}

void PartFiles::attend(uint64_t id, const std::string& place, uint64_t teams) {
  id_ = id, teams_ = teams;
  path_ = fmt::format("{}{:016x}", place, id);
}

Status PartFiles::make_note() {
  note_ = open_and_hold(path_, O_RDWR | O_CREAT);
  if (!note_) return Status::from_errno(errno, path_);
  const auto now = catalog::look_at(file_, path_);
  const layout::PartNote note{.id = id_, .teams = teams_, .rank = rank_, .parts = path_, .main = now ? now->path_state() : layout::PathState()};
  return write_all_at(note_.get(), 0, layout::encode(note), path_);
}

bool PartFiles::has_note() { return raw::faccessat(AT_FDCWD, path_.c_str(), F_OK) == 0; }

// Where this cannot be written, whoever joins later is told that the file has changed.
void PartFiles::note_join() {
  if (std::exchange(joins_, true)) return;
  const auto now = catalog::look_at(file_, path_);
  if (!note_) note_ = open_and_hold(path_, O_RDWR);
  if (now && note_) (void)write_joining(note_.get(), id_, now->path_state(), path_);
}

Status PartFiles::remove() {
  HF_TRY(gone_or(raw::unlinkat(AT_FDCWD, path_.c_str(), 0), path_));
  for (uint64_t left = teams_; left != 0; left &= left - 1) {
    const std::string part = part_of_team(path_, std::countr_zero(left));
    HF_TRY(gone_or(raw::unlinkat(AT_FDCWD, part.c_str(), 0), part));
  }
  return Status();
}

Status PartFiles::make_removals_durable() {
  const raw::Fd directory(raw::openat(AT_FDCWD, catalog::parent_of(path_).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  return directory && raw::fsync(directory.get()) == 0 ? Status() : Status::from_errno(errno, catalog::parent_of(path_));
}

Status PartFiles::write(uint64_t at, ByteView head, ByteView data) {
  const std::string path = part_of_team(path_, team_);
  if (!own_) own_ = open_and_hold(path, O_RDWR | O_CREAT);
  if (!own_) return Status::from_errno(errno, path);
  // In one call, as far as that goes; why no further, another one says.
  const iovec both[] = {{const_cast<std::byte*>(head.data()), head.size()}, {const_cast<std::byte*>(data.data()), data.size()}};
  const auto done = uint64_t(std::max<ssize_t>(raw::pwritev(own_.get(), both, 2, at), 0));
  if (done < head.size()) HF_TRY(write_all_at(own_.get(), at + done, head.subspan(done), path));
  const uint64_t of_data = std::max<uint64_t>(done, head.size()) - head.size();
  return write_all_at(own_.get(), at + head.size() + of_data, data.subspan(of_data), path);
}

void PartFiles::let_go() {
  joins_ = false;
  note_.reset();
  own_.reset();
  others_.clear();
}

Result<int> PartFiles::part_to_read(int team) {
  if (team == team_ && own_) return own_.get();
  raw::Fd& part = others_[team];
  const std::string path = part_of_team(path_, team);
  if (!part) part = open_and_hold(path, O_RDONLY);
  return part ? Result<int>(part.get()) : Status::from_errno(errno, path);
}

Status PartFiles::join(int team, uint64_t at, const Extent& extent, FileLayer& below) {
  note_join();
  const Result<int> part = part_to_read(team);
  HF_TRY(part.status());
  const uint64_t have = copied_by_the_system(*part, at, file_, extent);
  return copy_pieces(*part, at + have, {extent.offset + have, extent.length - have}, path_, [&](const Extent& where, ByteView piece) {
    return below.write({&where, 1}, piece);
  });
}

}  // namespace holdfast::file
