// What the layout of new files reads: scheme, placement, stripes.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/settings/source.hpp"

namespace holdfast {

struct LayoutSettings {
  std::optional<std::string> protect;     // mirror:R, rs:K+M or none
  std::optional<std::string> placement;   // interleaved or separate
  std::optional<uint64_t> striping_unit;  // bytes
  std::optional<int> striping_factor;
  std::optional<int> start_iodevice;
  bool allow_shared_target = false;

  bool protects() const { return protect && *protect != "none"; }
  // Units of a row; 0 where nothing is protected.
  int scheme_width() const;
  // Hints that `available` targets (0: not known) cannot follow are followed as far as they can be.
  void fit_layout_hints(int available);

  // Where the scheme came from, and what replication_factor and protect of that one source said against each other.
  Source protect_source = Source::defaults;
  bool protect_is_replication_factor = false;
  std::string contradiction;

  // Settings that a program hinted at, and what was not done as it said: a sentence for each.
  bool factor_is_hinted = false, start_is_hinted = false;
  std::vector<std::string> hint_remarks;
};

// The hint striping_unit as it can be followed. A unit that is no multiple of a page was meant for other stripes, and is made one.
std::string nearest_unit(std::string_view value);

}  // namespace holdfast
