#include "base/settings/buffers.hpp"

#include <fmt/format.h>

#include "base/settings/record.hpp"
#include "base/settings/text.hpp"

namespace holdfast {

namespace {

bool take_buffer(Settings& s, const Given& given) {
  int buffers = 0;
  uint64_t bytes = 0;
  if (given.value != "none") {
    const size_t by = given.value.find('x');
    const auto size = parse_size(by == std::string_view::npos ? "" : given.value.substr(by + 1));
    if (!size || !text::parse_integer(given.value.substr(0, by), buffers) || buffers < 1 || buffers > 1024 || *size < 4096 || *size > (1ull << 30))
      return false;
    bytes = *size;
  }
  s.buffers = buffers;
  s.buffer_size = bytes;
  return true;
}

std::string text_of_buffer(const Settings& s) { return s.buffers ? fmt::format("{}x{}", s.buffers, s.buffer_size) : "none"; }

bool take_buffer_flush(Settings& s, const Given& given) {
  uint64_t ms = 0;
  if (given.value != "full" && given.value != "needed") {
    const auto after = parse_duration_ms(given.value);
    if (!after || *after < 10 || *after > 24ull * 3600 * 1000) return false;
    ms = *after;
  }
  s.buffer_flush = ms ? fmt::format("{}ms", ms) : std::string(given.value);
  s.buffer_flush_ms = ms;
  return true;
}

std::string text_of_buffer_flush(const Settings& s) { return s.buffer_flush; }

constexpr Record buffers_records[] = {
    {.key = "buffer",
     .kind = Special{take_buffer, text_of_buffer, "NxSIZE, N buffers from 1 to 1024 of 4096 bytes to 1GiB each (for example 4x16MiB), or none"},
     .values = "4x1MiB 4x16MiB none",
     .value = "NxSIZE",
     .help = "Buffers for each file that a --path names and plain calls read or write, such as 4x16MiB"},
    {.key = "buffer_flush",
     .kind = Special{take_buffer_flush, text_of_buffer_flush, "full, needed, or a time from 10ms to 24h (for example 5s)"},
     .values = "full needed 5s",
     .value = "WHEN",
     .help = "When buffers are written: full (at once when full, in the background), needed (when their place is needed), or a time "
             "such as 5s (when full, or after that time)",
     .more = "With needed, the program can still change a full buffer. With a time, a killed process loses at most what it wrote in "
             "that time."},
};

}  // namespace

constinit const Area buffers_area{"Buffers of plain calls", buffers_records};

}  // namespace holdfast
