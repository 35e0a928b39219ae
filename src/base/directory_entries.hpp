// What the kernel tells of a directory's names.
#pragma once
#include <cstdint>
#include <cstring>
#include <string_view>

#include <sys/types.h>

namespace holdfast {

// Calls `each` with every name among `bytes` of what getdents64(2) has filled (struct linux_dirent64), but for the directory and the one above it.
// The names end with a zero byte.
template <class Each>
void each_name_in(const char* entries, ssize_t bytes, Each&& each) {
  constexpr ssize_t length_at = 16, name_at = 19;  // behind d_ino and d_off; behind these, d_reclen and d_type
  uint16_t length = 0;
  for (ssize_t at = 0; at < bytes; at += length) {
    std::memcpy(&length, entries + at + length_at, sizeof length);
    const char* name = entries + at + name_at;
    if (const std::string_view seen = name; seen != "." && seen != "..") each(name);
  }
}

}  // namespace holdfast
