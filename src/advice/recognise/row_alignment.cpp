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

}  // namespace

void recognise_row_alignment(const Digest& digest, const Model& model, Report& report) {
  constexpr double often = 0.1;   // of the writes
  constexpr double threefold = 3;  // the row is read, its new units are kept beside it, and put in place
  for (const Use& use : digest.uses) {
    const Side& writes = use.writes;
    const double changed = double(use.total[Counter::read_modify_writes]);
    if (!use.is_protected() || writes.all.calls == 0 || changed < often * double(writes.all.calls)) continue;
    const uint64_t k = data_units(use.first().scheme), unit = unit_for(writes.usual_size(), k);
    const double share = std::min(1.0, changed / double(writes.all.calls));
    Advice advice = about(use, "row-alignment");
    advice.evidence = fmt::format("{} of {} writes change a part of a row only ({}, {} units of data a row): the rest of the row is read and coded anew for each",
                                  count_text(uint64_t(changed)), count_text(writes.all.calls), use.first().scheme, k);
    if (unit) {
      advice.change = fmt::format("create the file with units of {}: the program's writes of {} are whole rows then", bytes_text(double(unit)), bytes_text(double(writes.usual_size())));
      advice.settings.push_back({"striping_unit", {std::to_string(unit)}, false});
    } else {
      advice.change = "write whole rows: collectively, or gathered in buffers, or with a size that is a multiple of the row";
      if (!use.mpi()) add_buffers(advice, use, buffers_for(digest, writes, model.cost(use, writes)));
    }
    advice.seconds_now = writes.slowest.seconds;
    advice.seconds_after = writes.slowest.seconds / (1 + share * (threefold - 1));
    advice.expectation = fmt::format("a changed row costs three times a new one (read, beside, in place); {} of the writes do", share_text(share));
    report.advice.push_back(std::move(advice));
  }
}

}  // namespace holdfast::advice
