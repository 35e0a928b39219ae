// A process's view of a file: which bytes are its data, in which order, and how their elements are represented.
#pragma once
#include <memory>
#include <string>

#include "frontend/mpi/errors.hpp"
#include "frontend/typemap.hpp"
#include "layout/shared_record.hpp"
#include "real_mpi.h"

namespace holdfast::frontend {

// A datatype of our own: a duplicate where it is derived, because the program may free its handle at any time.
class KeptType {
 public:
  KeptType() = default;
  explicit KeptType(MPI_Datatype type) : type_(duplicate(type)) {}
  KeptType(const KeptType&) = delete;
  KeptType& operator=(KeptType&& other) noexcept {
    std::swap(type_, other.type_);
    return *this;
  }
  KeptType(KeptType&& other) noexcept : KeptType() { std::swap(type_, other.type_); }
  ~KeptType();
  MPI_Datatype get() const { return type_; }
  static MPI_Datatype duplicate(MPI_Datatype type);

 private:
  MPI_Datatype type_ = MPI_DATATYPE_NULL;
};

struct View {
  MPI_Offset disp = 0;
  KeptType etype, filetype;
  std::string datarep = "native";
  bool external = false;                // external32
  bool tiles_overlap = false;           // and the file is open to write: an access has to be looked at
  uint64_t etype_bytes = 1;             // in the file
  std::shared_ptr<const Typemap> file;  // the filetype, in the file's representation

  static View bytes();  // what a file has at open
  // The file's byte offset of the data byte `position` of the view.
  uint64_t byte_offset(uint64_t position) const;
  // Whether a position lies where files can be: below 2^62 bytes, so that no sum of it and a length goes wrong.
  bool reaches(int64_t etypes) const;
  // How many etypes start before byte `size` of the file: where MPI_SEEK_END goes.
  int64_t etypes_before(uint64_t size) const;
  // The same for views that mean the same bytes in the same order.
  uint64_t fingerprint() const;
};

// As record logs keep it. False where it cannot be told so: a filetype that is not ascending, or has no data.
bool describe_view(const View& view, layout::SessionView& into);

// Checks what the program gave for a view; `writes`: the file is open for writing.
Fault make_view(MPI_Offset disp, MPI_Datatype etype, MPI_Datatype filetype, const char* datarep, bool writes, View& into);

}  // namespace holdfast::frontend
