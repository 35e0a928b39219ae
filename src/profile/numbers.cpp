#include "profile/numbers.hpp"

#include <algorithm>

namespace holdfast::profile::numbers {

std::array<std::atomic<OpenedFile*>, most_numbers> table;
OpenedFile not_counted;
std::atomic<uint32_t> generation{0};

namespace {

// As many as there are numbers: each leads to one at most. Pages that are never used cost nothing.
std::array<OpenedFile, most_numbers> files;

// A free one, which has one number from here on. It begins to look at the number's own place, which is nearly always free.
OpenedFile* take(int fd) {
  for (int i = 0; i < most_numbers; ++i) {
    OpenedFile& file = files[size_t((fd + i) % most_numbers)];
    uint32_t none = 0;
    if (file.numbers.load(std::memory_order_relaxed) == 0 && file.numbers.compare_exchange_strong(none, 1, std::memory_order_acq_rel)) return &file;
  }
  return nullptr;
}

void put(int fd, OpenedFile* file) {
  OpenedFile* const before = table[size_t(fd)].exchange(file, std::memory_order_acq_rel);
  if (before && before != &not_counted) before->numbers.fetch_sub(1, std::memory_order_acq_rel);
}

// One number more, unless the last one has gone at this moment.
bool hold(OpenedFile& file) {
  uint32_t count = file.numbers.load(std::memory_order_relaxed);
  while (count != 0)
    if (file.numbers.compare_exchange_weak(count, count + 1, std::memory_order_acq_rel)) return true;
  return false;
}

}  // namespace

OpenedFile* begin(int fd, Record* record, int64_t position, int64_t end) {
  if (!in_range(fd)) return nullptr;
  OpenedFile* const file = take(fd);
  if (file) {
    file->record.store(record, std::memory_order_relaxed);
    file->position.store(position, std::memory_order_relaxed);
    file->end.store(end, std::memory_order_relaxed);
    file->generation.store(generation.load(std::memory_order_relaxed), std::memory_order_relaxed);
  }
  put(fd, file ? file : &not_counted);
  return file;
}

void leave_out(int fd) {
  if (in_range(fd)) put(fd, &not_counted);
}

void share(int from, int to) {
  if (!in_range(to) || from == to) return;
  OpenedFile* const file = in_range(from) ? table[size_t(from)].load(std::memory_order_acquire) : &not_counted;
  put(to, !file || file == &not_counted || hold(*file) ? file : nullptr);
}

void end(int fd) {
  if (in_range(fd) && table[size_t(fd)].load(std::memory_order_relaxed)) put(fd, nullptr);
}

void end_range(unsigned first, unsigned last) {
  for (unsigned fd = first; fd <= std::min(last, unsigned(most_numbers - 1)); ++fd) end(int(fd));
}

}  // namespace holdfast::profile::numbers
