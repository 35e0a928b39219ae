// Numbers and paths as a person reads them.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::advice {

std::string bytes_text(double bytes);      // "512 bytes", "4 MiB", "23.1 GB" (whole binary units where it is one, else decimal)
std::string seconds_text(double seconds);  // "0.52 us", "1.2 ms", "4.5 s", "1800 s"
std::string count_text(uint64_t count);    // "2,083,634"
std::string plural_text(uint64_t count, const std::string& noun);  // "1 call", "2,083,634 calls"
std::string share_text(double share);                              // "97 %"
std::string rate_text(double bytes_per_second);

// The path with each run of digits as '*', and what a glob would read as more than itself masked; ':', which lists of globs are
// separated by, is '?'.
std::string glob_over_numbers(const std::string& path);
// Of paths that differ in numbers only: '*' for those that do differ.
std::string glob_over_paths(const std::vector<std::string_view>& paths);
std::string glob_of(const std::string& path);

// The nearest power of two that is not smaller, and not larger.
uint64_t power_above(uint64_t value);
uint64_t power_below(uint64_t value);

}  // namespace holdfast::advice
