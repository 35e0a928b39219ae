// All that is recognised. A new recogniser is a file in recognise/ and a line here.
#pragma once
#include <vector>

#include "advice/digest.hpp"
#include "advice/model.hpp"

namespace holdfast::advice {

// Order matters only among advice that saves the same time.
// clang-format off
#define HF_RECOGNISERS(X) \
  X(small_accesses) \
  X(byte_swapped_records) \
  X(file_stripes) \
  X(shared_file_layout) \
  X(single_writer_stripes) \
  X(independent_interleaved) \
  X(aggregators) \
  X(spokesperson) \
  X(too_many_files) \
  X(repeated_opens) \
  X(unaligned_accesses) \
  X(row_alignment) \
  X(straggler) \
  X(debugging_output)
// clang-format on

// Adds what it has recognised, whatever the gain: advise() leaves out what is too small.
using Recogniser = void (*)(const Digest& digest, const Model& model, Report& report);

#define HF_DECLARE(name) void recognise_##name(const Digest& digest, const Model& model, Report& report);
HF_RECOGNISERS(HF_DECLARE)
#undef HF_DECLARE

void find_patterns(const Digest& digest, Report& report);

}  // namespace holdfast::advice
