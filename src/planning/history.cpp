#include "planning/history.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <ctime>

namespace holdfast::planning {

namespace {

constexpr std::string_view kSpace = " \t\r";

std::string_view trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(kSpace);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kSpace) - begin + 1);
}

// The rest of the text behind a date of this form, or null.
const char* match(const char* text, const char* form, std::tm& fields) {
  fields = {};
  fields.tm_mday = 1;
  return ::strptime(text, form, &fields);
}

// strptime takes the 31st of any month: the calendar does not.
std::optional<int64_t> in_calendar(std::tm fields) {
  const int day = fields.tm_mday, month = fields.tm_mon;
  const std::time_t when = ::timegm(&fields);
  if (when == -1 || fields.tm_mday != day || fields.tm_mon != month) return std::nullopt;
  return when;
}

// A date at the beginning of `text`, the longest form that fits; `rest` is what follows it.
std::optional<int64_t> leading_date(const std::string& text, std::string_view& rest) {
  for (const char* form : {"%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M", "%Y-%m-%d %H:%M", "%Y-%m-%d"}) {
    std::tm fields;
    const char* end = match(text.c_str(), form, fields);
    if (!end) continue;
    rest = end;
    if (rest.starts_with('Z')) rest.remove_prefix(1);
    if (!rest.empty() && (kSpace.find(rest[0]) == std::string_view::npos && rest[0] != ',')) continue;
    return in_calendar(fields);
  }
  return std::nullopt;
}

std::tm fields_of(int64_t when) {
  const std::time_t time = when;
  std::tm fields{};
  ::gmtime_r(&time, &fields);
  return fields;
}

// The beginning of the calendar period after the one that holds `when`.
int64_t next_period(int64_t when, Period period) {
  std::tm fields = fields_of(when);
  fields.tm_sec = fields.tm_min = fields.tm_hour = 0;
  fields.tm_mday = 1;
  switch (period) {
    case Period::month: fields.tm_mon += 1; break;
    case Period::quarter: fields.tm_mon += 3 - fields.tm_mon % 3; break;
    default: fields.tm_mon = 0, fields.tm_year += 1;
  }
  return ::timegm(&fields);
}

std::optional<double> mean(const Count& count, uint64_t events) {
  if (events == 0 || count.cut) return std::nullopt;
  return double(count.end - count.begin) / double(events);
}

}  // namespace

std::optional<double> Count::mtbf() const { return mean(*this, failures); }
std::optional<double> Count::mtbi() const { return mean(*this, interrupts); }

Result<int64_t> parse_date(std::string_view text) {
  std::string_view rest;
  const std::string own(trimmed(text));
  const auto when = leading_date(own, rest);
  if (!when || !trimmed(rest).empty()) return Status(Kind::invalid, fmt::format("'{}' is not a date: write 2009-02-14 or 2009-02-14T06:30", own));
  return *when;
}

std::string date_of(int64_t when) { return fmt::format("{:%Y-%m-%d}", fields_of(when)); }

Result<std::vector<Interrupt>> parse_history(std::string_view text) {
  std::vector<Interrupt> history;
  for (size_t number = 1; !text.empty(); ++number) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string line(trimmed(text.substr(0, std::min(end, text.find('#')))));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.empty()) continue;
    std::string_view rest;
    const auto when = leading_date(line, rest);
    if (!when)
      return Status(Kind::invalid, fmt::format("line {}: '{}' does not begin with a date such as 2009-02-14 or 2009-02-14T06:30", number, line));
    if (const size_t comma = rest.find(','); comma != std::string_view::npos && trimmed(rest.substr(0, comma)).empty()) rest.remove_prefix(comma + 1);
    const std::string_view word = trimmed(rest.substr(0, rest.find(',')));
    history.push_back({*when, !word.starts_with("maintenance") && !word.starts_with("planned")});
  }
  std::sort(history.begin(), history.end(), [](const Interrupt& a, const Interrupt& b) { return a.when < b.when; });
  return history;
}

std::vector<Count> count(const std::vector<Interrupt>& history, int64_t begin, int64_t end, Period period) {
  std::vector<Count> counts;
  for (int64_t from = begin; from < end; from = counts.back().end) {
    Count one{from, period == Period::all ? end : std::min(end, next_period(from, period))};
    for (const Interrupt& interrupt : history) {
      if (interrupt.when < one.begin || interrupt.when >= one.end) continue;
      ++one.interrupts;
      one.failures += interrupt.failure;
    }
    counts.push_back(one);
  }
  return counts;
}

}  // namespace holdfast::planning
