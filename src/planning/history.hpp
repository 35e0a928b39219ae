// A machine's history of interrupts, counted: mean time between failures (MTBF) and between interrupts of any kind, scheduled
// maintenance included (MTBI), per period.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.hpp"

namespace holdfast::planning {

struct Interrupt {
  int64_t when = 0;     // seconds since 1970, UTC
  bool failure = true;  // false: planned, such as maintenance
};

// One line each: a date (2009-02-14, 2009-02-14T06:30, 2009-02-14 06:30:00), then perhaps a word: `maintenance` or `planned` is no
// failure, anything else is one. A comma may stand between them; '#' begins a comment. In any order; sorted afterwards.
// Errors name the line.
Result<std::vector<Interrupt>> parse_history(std::string_view text);
Result<int64_t> parse_date(std::string_view text);
std::string date_of(int64_t when);  // 2009-02-14

enum class Period : uint8_t { all, year, quarter, month };

struct Count {
  int64_t begin = 0, end = 0;  // seconds since 1970; end is not part of it
  uint64_t failures = 0, interrupts = 0;
  bool cut = false;  // it ends where the last event happens to be: a mean would be too short
  // In seconds; none where nothing happened, or in a period that is cut.
  std::optional<double> mtbf() const;
  std::optional<double> mtbi() const;
};
// Those within [begin, end), by calendar periods in UTC; the first and the last may be parts.
std::vector<Count> count(const std::vector<Interrupt>& history, int64_t begin, int64_t end, Period period);

}  // namespace holdfast::planning
