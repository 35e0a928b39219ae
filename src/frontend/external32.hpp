// The data representation "external32" (MPI-4.0, section 14.5.2): big-endian, IEEE, with the sizes of its table. Pure
// conversion of packed elements; what an element is comes from the type map.
#pragma once
#include "base/bytes.hpp"
#include "base/status.hpp"
#include "frontend/typemap.hpp"

namespace holdfast::frontend {

uint64_t native_bytes(Basic basic);    // of one element in memory
uint64_t external_bytes(Basic basic);  // of one element in the file

// Bytes in the file for the data bytes [0, native) of the tiling of `type`; cut to whole elements.
uint64_t external_size(const Typemap& type, uint64_t native);
// The inverse: how much memory the first `external` bytes in the file fill.
uint64_t native_size(const Typemap& type, uint64_t external);

// `packed` holds native elements in type map order, `external` what lies in the file. A value that the file's type cannot hold (a
// long above 32 bits, a character above U+FFFF) is Kind::invalid.
Status to_external(const Typemap& type, ByteView packed, ByteSpan external);
Status from_external(const Typemap& type, ByteView external, ByteSpan packed);

}  // namespace holdfast::frontend
