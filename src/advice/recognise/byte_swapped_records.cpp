// A Fortran runtime that converts the byte order (-byteswapio, -convert big_endian) hands its data on in pieces of its conversion buffer:
// millions of writes of 4088 bytes where a native write would be a few hundred large ones.
#include <fmt/format.h>

#include "advice/recognise/common.hpp"
#include "advice/recognisers.hpp"

namespace holdfast::advice {

void recognise_byte_swapped_records(const Digest& digest, const Model& model, Report& report) {
  for (const Use& use : digest.uses) {
    if (!is_byte_swapped(use)) continue;
    const Side& writes = use.writes;
    const Cost cost = model.cost(use, writes);
    const Buffers buffers = buffers_for(digest, writes, cost);
    const uint64_t size = writes.usual_size();
    Advice advice = about(use, "byte-swapped-records");
    advice.evidence = fmt::format("{} writes, {} of them of {} ({} less than {}), one behind the other: a Fortran runtime that converts the byte order writes so",
                                  count_text(writes.all.calls), share_text(writes.share(writes.sizes[0].count)), bytes_text(double(size)), power_above(size) - size,
                                  bytes_text(double(power_above(size))));
    advice.change = fmt::format("write in the machine's own byte order (no -byteswapio, -convert big_endian, -fconvert=big-endian or GFORTRAN_CONVERT_UNIT), or a "
                                "portable format: HDF5, NetCDF, MPI-IO; where that cannot be, gather the pieces in {} buffers of {}",
                                buffers.number, bytes_text(double(buffers.bytes)));
    expect_of_buffers(advice, use, writes, cost, buffers);
    report.advice.push_back(std::move(advice));
  }
}

}  // namespace holdfast::advice
