#include "frontend/mpi/view.hpp"

#include <algorithm>
#include <cstring>
#include <span>
#include <vector>

#include "coding/checksum.hpp"
#include "frontend/mpi/flatten.hpp"

namespace holdfast::frontend {

MPI_Datatype KeptType::duplicate(MPI_Datatype type) {
  if (type == MPI_DATATYPE_NULL || is_predefined(type)) return type;
  MPI_Datatype copy = MPI_DATATYPE_NULL;
  real.Type_dup(type, &copy);
  return copy;
}

KeptType::~KeptType() {
  if (type_ != MPI_DATATYPE_NULL && !is_predefined(type_)) real.Type_free(&type_);
}

View View::bytes() {
  View view;
  (void)make_view(0, MPI_BYTE, MPI_BYTE, "native", false, view);
  return view;
}

uint64_t View::byte_offset(uint64_t position) const {
  int64_t found = 0;
  file->walk(position, 1, [&](int64_t at, uint64_t, uint64_t, int64_t) { found = at; });
  return static_cast<uint64_t>(disp + found);
}

bool View::reaches(int64_t etypes) const {
  using Wide = __int128;
  if (etypes < 0) return false;
  if (file->size() == 0) return true;
  const Wide copies = Wide{etypes} * etype_bytes / file->size() + 1;
  return Wide{disp} + copies * std::max(file->extent(), file->true_ub()) <= Wide{INT64_MAX / 2};
}

uint64_t View::fingerprint() const {
  std::vector<int64_t> numbers{disp, static_cast<int64_t>(etype_bytes), external, file->lb(), file->extent()};
  for (const Run& run : file->runs()) {
    for (int64_t number : {run.disp, static_cast<int64_t>(run.length), static_cast<int64_t>(run.count), run.stride}) numbers.push_back(number);
  }
  return coding::plain_checksum(std::as_bytes(std::span(numbers)));
}

int64_t View::etypes_before(uint64_t size) const {
  if (static_cast<int64_t>(size) <= disp || etype_bytes == 0) return 0;
  return static_cast<int64_t>(divide_up(file->data_before(static_cast<int64_t>(size) - disp), etype_bytes));
}

Fault make_view(MPI_Offset disp, MPI_Datatype etype, MPI_Datatype filetype, const char* datarep, bool writes, View& into) {
  if (disp < 0) return Fault(MPI_ERR_ARG);
  if (datarep == nullptr) return Fault(MPI_ERR_ARG);
  const bool external = std::strcmp(datarep, "external32") == 0;
  if (!external && std::strcmp(datarep, "native") != 0 && std::strcmp(datarep, "internal") != 0) {
    return Fault(MPI_ERR_UNSUPPORTED_DATAREP,
                 "the data representation '" + std::string(datarep) + "' is not supported in a protected file; use native, internal or external32");
  }
  const Flavour flavour = external ? Flavour::external : Flavour::bytes;
  auto flat_etype = flatten(etype, flavour);
  if (!flat_etype) return Fault(MPI_ERR_TYPE);
  auto flat_filetype = flatten(filetype, flavour);
  if (!flat_filetype) return Fault(MPI_ERR_TYPE);
  const Typemap& map = **flat_filetype;
  const uint64_t etype_bytes = (*flat_etype)->size();
  if (etype_bytes != 0 && map.size() % etype_bytes != 0) return Fault(MPI_ERR_ARG, "the filetype is not made of whole etypes");
  if (map.size() != 0 && (map.true_lb() < 0 || map.extent() < 0))
    return Fault(MPI_ERR_ARG, "the filetype has negative displacements, or a negative extent");
  if (!map.monotonic()) return Fault(MPI_ERR_TYPE, "the displacements of the filetype decrease; MPI wants them in the order of the file");
  if (writes && map.overlaps()) {
    return Fault(MPI_ERR_TYPE, "the filetype covers bytes twice, which MPI allows only for files opened for reading");
  }
  into.tiles_overlap = writes && map.tiles_overlap();
  into.disp = disp;
  into.etype = KeptType(etype);
  into.filetype = KeptType(filetype);
  into.datarep = datarep;
  into.external = external;
  into.etype_bytes = etype_bytes;
  into.file = *flat_filetype;
  return Fault();
}

bool describe_view(const View& view, layout::SessionView& into) {
  const Typemap& map = *view.file;
  if (view.disp < 0 || view.etype_bytes == 0 || map.size() == 0 || map.extent() <= 0 || !map.ascending()) return false;
  into.disp = uint64_t(view.disp);
  into.etype_bytes = view.etype_bytes;
  into.extent = uint64_t(map.extent());
  into.runs.clear();
  for (const Run& run : map.runs()) {
    if (run.disp < 0) return false;
    into.runs.push_back({run.disp, run.length, run.count, run.stride});
  }
  return true;
}

}  // namespace holdfast::frontend
