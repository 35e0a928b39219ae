#include "redundant/log/log_file.hpp"

#include <time.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>

#include <fmt/format.h>

#include "base/own_numbers.hpp"

namespace holdfast::redundant {

namespace {

constexpr uint64_t grows_by = 1 << 20, alignment = 8;

struct EntryHead {
  uint32_t kind, unused;
  uint64_t bytes, subject, number;
  int64_t time_ms;
};
static_assert(sizeof(EntryHead) % alignment == 0);

constexpr uint64_t aligned(uint64_t bytes) { return (bytes + alignment - 1) / alignment * alignment; }

}  // namespace

int64_t clock_ms() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
  return int64_t(now.tv_sec) * 1000 + now.tv_nsec / 1000000;
}

struct LogFile::Head {
  std::atomic<uint64_t> end;
  std::atomic<uint32_t> cut, whole;
};

std::optional<ClaimAndRest> claim_in(ByteView payload) {
  ClaimAndRest both;
  if (payload.size() < sizeof both.claim) return std::nullopt;
  std::memcpy(static_cast<void*>(&both.claim), payload.data(), sizeof both.claim);
  both.rest = payload.subspan(sizeof both.claim);
  return both;
}

LogFile::~LogFile() {
  if (memory_) (void)syscall(SYS_munmap, memory_, most_);
}

Status LogFile::map(int protection, int flags, int fd) {
  const long got = syscall(SYS_mmap, memory_, most_, protection, flags | (memory_ ? MAP_FIXED : 0), fd, 0L);
  if (got == -1) return Status::from_errno(errno, "mmap");
  memory_ = reinterpret_cast<void*>(got);
  return Status();
}

Status LogFile::make(const std::string& path) {
  fd_ = raw::out_of_the_way(raw::Fd(raw::openat(AT_FDCWD, path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600)));
  return begin(path);
}

Status LogFile::make_unnamed(const std::string& directory) {
  fd_ = raw::out_of_the_way(raw::Fd(raw::openat(AT_FDCWD, directory.c_str(), O_RDWR | O_TMPFILE | O_CLOEXEC, 0600)));
  if (!fd_ && (errno == EOPNOTSUPP || errno == EISDIR)) {
    const std::string path = fmt::format("{}/holdfast-log-{}-{}", directory, getpid(), clock_ms());
    fd_ = raw::out_of_the_way(raw::Fd(raw::openat(AT_FDCWD, path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600)));
    if (fd_) (void)raw::unlinkat(AT_FDCWD, path.c_str(), 0);
  }
  return begin(directory);
}

Status LogFile::begin(const std::string& name) {
  if (!fd_) return Status::from_errno(errno, name);
  if (!grow(beginning)) return Status::from_errno(errno, name);
  HF_TRY(map(PROT_READ | PROT_WRITE, MAP_SHARED, fd_.get()));
  at_ = copied_ = beginning;
  head()->end.store(at_, std::memory_order_release);
  return Status();
}

Status LogFile::set_aside() { return map(PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1); }

Status LogFile::open(const std::string& path) {
  const raw::Fd fd(raw::openat(AT_FDCWD, path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return Status::from_errno(errno, path);
  struct stat state {};
  if (raw::fstat(fd.get(), &state) != 0 || uint64_t(state.st_size) < beginning) return Status(Kind::corrupt, path + " is no log");
  HF_TRY(map(PROT_READ, MAP_SHARED, fd.get()));
  at_ = beginning;
  return Status();
}

bool LogFile::grow(uint64_t to) {
  const uint64_t wanted = std::min(most_, std::max(to, allocated_ + grows_by));
  if (to > most_) return errno = EFBIG, false;
  const auto reserve = [&] { return syscall(SYS_fallocate, fd_.get(), 0, off_t(allocated_), off_t(wanted - allocated_)) == 0; };
  bool reserved = reserve();
  while (!reserved && errno == EINTR) reserved = reserve();  // the program's timers
  if (!reserved) {
    if (errno != EOPNOTSUPP) return false;
    const Bytes zeros(64 << 10);
    for (uint64_t at = allocated_; at < wanted;) {
      const ssize_t put = raw::pwrite(fd_.get(), zeros.data(), std::min<uint64_t>(zeros.size(), wanted - at), off_t(at));
      if (put < 0 && errno != EINTR) return false;
      at += uint64_t(std::max<ssize_t>(put, 0));
    }
  }
  allocated_ = wanted;
  return true;
}

bool LogFile::append(Entry::Kind kind, uint64_t subject, uint64_t number, std::span<const ByteView> payload) {
  if (at_ == 0 || head()->cut.load(std::memory_order_relaxed)) return false;
  uint64_t bytes = 0;
  for (const ByteView& piece : payload) bytes += piece.size();
  const uint64_t end = at_ + sizeof(EntryHead) + aligned(bytes);
  if (end > allocated_ && !grow(end)) return set_cut(), false;
  const EntryHead entry{kind, 0, bytes, subject, number, clock_ms()};
  std::memcpy(place(at_), &entry, sizeof entry);
  std::byte* to = place(at_ + sizeof entry);
  for (const ByteView& piece : payload) {
    if (!piece.empty()) std::memcpy(to, piece.data(), piece.size());
    to += piece.size();
  }
  at_ = end;
  head()->end.store(at_, std::memory_order_release);
  return true;
}

bool LogFile::copy(ByteView bytes) {
  if (at_ == 0 || head()->cut.load(std::memory_order_relaxed)) return false;
  const uint64_t to = copied_ + bytes.size();
  if (to > allocated_ && !grow(to)) return set_cut(), false;
  if (!bytes.empty()) std::memcpy(place(copied_), bytes.data(), bytes.size());
  copied_ = to;
  uint64_t whole = end();
  while (whole + sizeof(EntryHead) <= copied_) {
    EntryHead entry;
    std::memcpy(&entry, place(whole), sizeof entry);
    const uint64_t next = whole + sizeof entry + aligned(entry.bytes);
    if (next > copied_) break;
    whole = next;
  }
  head()->end.store(whole, std::memory_order_release);
  return true;
}

void LogFile::set_cut() {
  if (at_ != 0) head()->cut.store(1, std::memory_order_release);
}
uint64_t LogFile::end() const { return at_ == 0 ? 0 : head()->end.load(std::memory_order_acquire); }

ByteView LogFile::since(uint64_t at, uint64_t most) const {
  const uint64_t to = end();
  return at >= to ? ByteView() : ByteView(place(at), std::min(most, to - at));
}

std::optional<Entry> LogFile::next() {
  if (at_end()) return std::nullopt;
  EntryHead entry;
  std::memcpy(&entry, place(at_), sizeof entry);
  const ByteView payload(place(at_ + sizeof entry), entry.bytes);
  at_ += sizeof entry + aligned(entry.bytes);
  return Entry{Entry::Kind(entry.kind), entry.subject, entry.number, entry.time_ms, payload};
}

bool LogFile::at_end() const { return at_ == 0 || at_ >= head()->end.load(std::memory_order_acquire); }
void LogFile::set_whole() { head()->whole.store(1, std::memory_order_release); }
bool LogFile::is_whole() const { return at_ != 0 && head()->whole.load(std::memory_order_acquire) != 0; }
bool LogFile::is_cut() const { return at_ != 0 && head()->cut.load(std::memory_order_acquire) != 0; }

void LogKeeper::note_what_waits() {
  const Bytes those = waiting_ ? waiting_() : Bytes();
  const ByteView one(those);
  if (!those.empty()) (void)file_.append(Entry::waiting, 0, 0, {&one, 1});
}

void LogKeeper::call(uint64_t subject, uint64_t number, const Claim& claim, ByteView outcome) {
  note_what_waits();
  const std::array<ByteView, 2> both{std::as_bytes(std::span(&claim, 1)), outcome};
  (void)file_.append(Entry::call, subject, number, both);
}

void LogKeeper::intent(uint64_t subject, uint64_t number, const Claim& claim) {
  note_what_waits();
  const ByteView one = std::as_bytes(std::span(&claim, 1));
  (void)file_.append(Entry::intent, subject, number, {&one, 1});
}

void LogKeeper::decision(uint64_t subject, uint64_t number, ByteView answer) { (void)file_.append(Entry::decision, subject, number, {&answer, 1}); }

void LogKeeper::bytes(uint64_t subject, uint64_t number, ByteView bytes) { (void)file_.append(Entry::bytes, subject, number, {&bytes, 1}); }

void LogKeeper::opened(uint64_t name, uint64_t number) { (void)file_.append(Entry::opened, name, number, {}); }

void LogKeeper::repeat(const Entry& entry) { (void)file_.append(entry.kind, entry.subject, entry.number, {&entry.payload, 1}); }

std::string log_path(const std::string& directory, int team, int rank) { return fmt::format("{}/rank-{}.team-{}", directory, rank, team); }

}  // namespace holdfast::redundant
