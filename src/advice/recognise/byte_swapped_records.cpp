// A Fortran runtime that converts the byte order (-byteswapio, -convert big_endian) writes its data in pieces of its conversion buffer. There are
// millions of writes of 4088 bytes where a native write would be a few hundred large ones; gfortran's are of 128 KiB.
#include <fmt/format.h>

#include "advice/recognise/common.hpp"
#include "advice/recognisers.hpp"

namespace holdfast::advice {

namespace {

std::string evidence(const Side& writes) {
  const uint64_t size = writes.usual_size();
  const std::string most = fmt::format("{} writes, {} of them of {}", count_text(writes.all.calls), share_text(writes.share(writes.sizes[0].count)),
                                       bytes_text(double(size)));
  if (is_in_pieces_of_records(writes))
    return fmt::format(
        "{}, and {} back to a record's beginning with its length; a Fortran runtime that converts the byte order, or gets "
        "single elements of an array, writes large records in pieces of its buffer",
        most, plural_text(writes.backward, "step"));
  return fmt::format("{} ({} less than {}), one behind the other: a Fortran runtime that converts the byte order writes so", most,
                     power_above(size) - size, bytes_text(double(power_above(size))));
}

}  // namespace

void recognise_byte_swapped_records(const Digest& digest, const Model& model, Report& report) {
  for (const Use& use : digest.uses) {
    if (!is_byte_swapped(use)) continue;
    const Side& writes = use.writes;
    const Cost cost = model.cost(use, writes);
    const Buffers buffers = buffers_for(digest, writes, cost);
    Advice advice = about(use, "byte-swapped-records");
    advice.evidence = evidence(writes);
    advice.change = fmt::format(
        "write in the machine's own byte order (no -byteswapio, -convert big_endian, -fconvert=big-endian or "
        "GFORTRAN_CONVERT_UNIT), or in a portable format (HDF5, NetCDF, MPI-IO); otherwise gather the pieces in {} buffers of "
        "{}",
        buffers.number, bytes_text(double(buffers.bytes)));
    expect_of_buffers(advice, use, writes, cost, buffers);
    report.advice.push_back(std::move(advice));
  }
}

}  // namespace holdfast::advice
