// Writes of parts of rows into protected data that is synced already: each is read, coded anew and written beside before it goes in place.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "advice/recognise/common.hpp"
#include "advice/recognisers.hpp"

namespace holdfast::advice {

namespace {

constexpr uint64_t least_unit = 4096, most_unit = 64ull << 20;

uint64_t data_units(const std::string& scheme) {
  uint64_t k = 1;
  if (scheme.starts_with("rs:")) std::from_chars(scheme.data() + 3, scheme.data() + scheme.size(), k);
  return std::max<uint64_t>(1, k);
}

// The largest unit whose row divides the size that the program writes; 0: none does.
uint64_t unit_for(uint64_t size, uint64_t k) {
  if (size == 0 || size % (k * least_unit) != 0) return 0;
  for (uint64_t rows = 1; size / rows >= k * least_unit; ++rows)
    if (size % (rows * k * least_unit) == 0 && size / rows / k <= most_unit) return size / rows / k;
  return 0;
}

// The program's writes as its rows see them.
struct Writes {
  uint64_t calls = 0;  // a collective call of all processes is one
  bool collective = false;
  uint64_t together = 0;   // bytes of such a write that lie together; 0: they differ
  uint64_t row_bytes = 0;  // 0: not known
  double rows = 0;         // that are touched, a row as often as it is
};

Writes writes_of(const Use& use, uint64_t k) {
  const Side& side = use.writes;
  const uint64_t processes = std::max<size_t>(1, side.processes);
  Writes writes;
  writes.collective = side.share(side.collective) >= 0.5;
  writes.calls = side.all.calls - side.collective + (side.collective + processes - 1) / processes;
  const uint64_t size = side.usual_size(), of_all = size * processes;
  writes.together = writes.collective && uint64_t(side.usual_stride()) == of_all ? of_all : size;
  writes.row_bytes = k * use.first().alignment;
  writes.rows = double(writes.calls);
  if (writes.row_bytes) writes.rows = std::max(writes.rows, double(side.all.bytes) / double(writes.row_bytes));
  return writes;
}

std::string evidence_of(const Use& use, const Writes& writes, uint64_t changed, uint64_t k) {
  const std::string calls = plural_text(writes.calls, writes.collective ? "collective write" : "write");
  const std::string by = writes.collective ? fmt::format(" of {}", plural_text(use.writes.processes, "process")) : "";
  const std::string row = writes.row_bytes ? "rows of " + bytes_text(double(writes.row_bytes)) : plural_text(k, "unit") + " of data a row";
  return fmt::format("{} a row is changed in part only, by {}{} ({}, {}): the rest of the row is read and coded anew each time",
                     plural_text(changed, "time"), calls, by, use.first().scheme, row);
}

}  // namespace

void recognise_row_alignment(const Digest& digest, const Model& model, Report& report) {
  constexpr double often = 0.1;    // of the rows that are written
  constexpr double threefold = 3;  // the row is read, its new units are kept beside it, and put in place
  for (const Use& use : digest.uses) {
    const Side& side = use.writes;
    if (!use.is_protected() || side.all.calls == 0) continue;
    const uint64_t changed = use.total[Counter::read_modify_writes], k = data_units(use.first().scheme);
    const Writes writes = writes_of(use, k);
    const double share = std::min(1.0, double(changed) / writes.rows);
    if (share < often) continue;
    const uint64_t unit = unit_for(writes.together, k);
    Advice advice = about(use, "row-alignment");
    advice.evidence = evidence_of(use, writes, changed, k);
    if (unit) {
      advice.change = fmt::format("create the file with units of {}: the program's writes of {} are whole rows then", bytes_text(double(unit)),
                                  bytes_text(double(writes.together)));
      advice.settings.push_back({"striping_unit", {std::to_string(unit)}, false});
    } else {
      const std::string row = writes.row_bytes ? fmt::format("a row ({})", bytes_text(double(writes.row_bytes))) : "a row";
      if (writes.collective)
        advice.change = fmt::format(
            "let all processes together write whole rows in a call: from a multiple of {} on, and as many bytes as a "
            "multiple of it",
            row);
      else advice.change = fmt::format("write whole rows: collectively, or gathered in buffers, or with a size that is a multiple of {}", row);
      if (!use.mpi()) add_buffers(advice, use, buffers_for(digest, side, model.cost(use, side)));
    }
    advice.seconds_now = side.slowest.seconds;
    advice.seconds_after = side.slowest.seconds / (1 + share * (threefold - 1));
    advice.expectation =
        fmt::format("a changed row costs three times a new one (read, beside, in place); {} of the rows that are written are", share_text(share));
    report.advice.push_back(std::move(advice));
  }
}

}  // namespace holdfast::advice
