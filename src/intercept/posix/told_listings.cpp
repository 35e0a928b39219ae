#include "intercept/posix/told_listings.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>

#include <fmt/format.h>

#include "file/coordinated/names.hpp"
#include "intercept/posix/decided.hpp"
#include "intercept/posix/real.hpp"

namespace holdfast::intercept::posix {

namespace {

struct ToldStreams {
  std::mutex mutex;
  std::map<DIR*, std::unique_ptr<ToldListing>> all;
};
ToldStreams& told_streams() {
  static auto* const one = new ToldStreams;  // never destroyed: streams are used to the end
  return *one;
}
std::atomic<int> told_count{0};

// An entry in a listing: this, and the name without its end.
struct EntryHead {
  uint64_t inode = 0;
  uint32_t type = 0, bytes = 0;
};

void append_entry(Bytes& all, const dirent64& entry) {
  const EntryHead head{entry.d_ino, entry.d_type, uint32_t(std::strlen(entry.d_name))};
  const auto* const at = reinterpret_cast<const std::byte*>(&head);
  const auto* const name = reinterpret_cast<const std::byte*>(entry.d_name);
  all.insert(all.end(), at, at + sizeof head);
  all.insert(all.end(), name, name + head.bytes);
}

// Behind an errno.
Bytes read_to_the_end(const ToldListing::Read& read) {
  int64_t error = 0;
  Bytes all(sizeof error);
  errno = 0;
  while (const dirent64* const entry = read()) append_entry(all, *entry);
  error = errno;
  std::memcpy(all.data(), &error, sizeof error);
  return all;
}

}  // namespace

void ToldListing::take(redundant::Replica& replica, const Read& read) {
  const Bytes all = told(replica, "list", name_, [&] { return read_to_the_end(read); });
  int64_t error = 0;
  ByteView left = all;
  if (left.size() < sizeof error) replica.differs(name_ + ", the list of its entries, where the leader has asked something else");
  std::memcpy(&error, left.data(), sizeof error);
  left = left.subspan(sizeof error);
  entries_.clear();
  for (EntryHead head; left.size() >= sizeof head;) {
    std::memcpy(static_cast<void*>(&head), left.data(), sizeof head);
    const size_t bytes = std::min(sizeof head + head.bytes, left.size());
    entries_.emplace_back(left.begin(), left.begin() + ptrdiff_t(bytes));
    left = left.subspan(bytes);
  }
  error_ = int(error);
  is_read_ = true;
}

dirent64* ToldListing::next_entry(const Read& read) {
  const int before = errno;
  redundant::Replica* const replica = redundant::Replica::now();
  if (!is_read_ && replica) take(*replica, read);
  errno = next_ >= entries_.size() && error_ ? error_ : before;
  if (next_ >= entries_.size()) return nullptr;
  const Bytes& packed = entries_[next_++];
  EntryHead head;
  std::memcpy(static_cast<void*>(&head), packed.data(), sizeof head);
  entry_ = {};
  entry_.d_ino = head.inode;
  entry_.d_off = off64_t(next_);
  entry_.d_type = static_cast<unsigned char>(head.type);
  const size_t bytes = std::min<size_t>(packed.size() - sizeof head, sizeof entry_.d_name - 1);
  std::memcpy(entry_.d_name, packed.data() + sizeof head, bytes);
  constexpr size_t word = sizeof entry_.d_ino;
  entry_.d_reclen = static_cast<unsigned short>((offsetof(dirent64, d_name) + bytes + word) / word * word);
  return &entry_;
}

ToldListing* told_listing(DIR* stream) {
  if (told_count.load(std::memory_order_acquire) == 0 || inside > 0) [[likely]]
    return nullptr;
  ToldStreams& streams = told_streams();
  const std::lock_guard lock(streams.mutex);
  const auto found = streams.all.find(stream);
  return found == streams.all.end() ? nullptr : found->second.get();
}

void tell_listing(DIR* stream, const std::string& name) {
  if (!stream || name.empty()) return;
  ToldStreams& streams = told_streams();
  const std::lock_guard lock(streams.mutex);
  streams.all[stream] = std::make_unique<ToldListing>(name);
  told_count = int(streams.all.size());
}

void forget_told_listing(DIR* stream) {
  if (told_count.load(std::memory_order_acquire) == 0) return;
  ToldStreams& streams = told_streams();
  const std::lock_guard lock(streams.mutex);
  streams.all.erase(stream);
  told_count = int(streams.all.size());
}

DIR* open_as_told(redundant::Replica& replica, const std::string& name, DIR* opened) {
  const int error = opened ? 0 : errno;
  const bool was_behind = replica.is_behind();
  const int result = told(replica, "opendir", name, opened ? 0 : -1, nullptr, 0);
  if (result < 0) {
    const int then = errno;
    if (opened) (void)real().closedir(opened);
    return errno = then, nullptr;
  }
  if (!opened && was_behind) replica.cannot_catch_up(fmt::format("{} was opened then, and now it cannot be: {}", name, std::strerror(error)));
  if (!opened) file::cannot_open_alone(replica, name, error);
  note_name(dirfd(opened), name);
  tell_listing(opened, name);
  return opened;
}

}  // namespace holdfast::intercept::posix
