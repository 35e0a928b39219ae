#include "frontend/mpi/basic_types.hpp"

#include <cstddef>
#include <map>

namespace holdfast::frontend {

namespace {

Basic swap_of(int bytes) {
  switch (bytes) {
    case 2: return Basic::swap2;
    case 4: return Basic::swap4;
    case 8: return Basic::swap8;
    case 16: return Basic::swap16;
    default: return Basic::raw;
  }
}

int size_of(MPI_Datatype type) {
  int bytes = 0;
  real.Type_size(type, &bytes);
  return bytes;
}

// Types that are not simply their size with the bytes the other way round in external32.
std::map<MPI_Datatype, Basic> make_special() {
  std::map<MPI_Datatype, Basic> special;
  for (MPI_Datatype type : {MPI_BYTE, MPI_PACKED, MPI_CHAR, MPI_SIGNED_CHAR, MPI_UNSIGNED_CHAR, MPI_CHARACTER}) special[type] = Basic::raw;
  if (sizeof(long) == 8) special[MPI_LONG] = Basic::int_8_to_4, special[MPI_UNSIGNED_LONG] = Basic::uint_8_to_4;
  if (sizeof(wchar_t) == 4) special[MPI_WCHAR] = Basic::wchar_4_to_2;
  special[MPI_LONG_DOUBLE] = Basic::long_double;
  special[MPI_C_LONG_DOUBLE_COMPLEX] = Basic::long_double;
  return special;
}

// Complex numbers are two of their half.
std::map<MPI_Datatype, bool> make_complex() {
  std::map<MPI_Datatype, bool> complex;
  for (MPI_Datatype type : {MPI_C_COMPLEX, MPI_C_FLOAT_COMPLEX, MPI_C_DOUBLE_COMPLEX, MPI_COMPLEX, MPI_DOUBLE_COMPLEX}) complex[type] = true;
#ifdef MPI_COMPLEX8
  complex[MPI_COMPLEX8] = true;
#endif
#ifdef MPI_COMPLEX16
  complex[MPI_COMPLEX16] = true;
#endif
#ifdef MPI_COMPLEX32
  complex[MPI_COMPLEX32] = true;
#endif
#ifdef MPI_CXX_FLOAT_COMPLEX
  complex[MPI_CXX_FLOAT_COMPLEX] = true;
#endif
#ifdef MPI_CXX_DOUBLE_COMPLEX
  complex[MPI_CXX_DOUBLE_COMPLEX] = true;
#endif
  complex.erase(MPI_DATATYPE_NULL);
  return complex;
}

template <class First>
struct WithInt {
  First value;
  int index;
};

// A value and an index: MPI_MINLOC's types, laid out as C lays out the struct.
struct Pair {
  int64_t second_disp, extent;
  Basic first, second;
  int first_bytes, second_bytes;
};
template <class First>
Pair with_int(Basic first) {
  return {offsetof(WithInt<First>, index), sizeof(WithInt<First>), first, swap_of(sizeof(int)), sizeof(First), sizeof(int)};
}
Pair twice(MPI_Datatype half) {
  const int bytes = size_of(half);
  return {bytes, 2 * bytes, swap_of(bytes), swap_of(bytes), bytes, bytes};
}

std::map<MPI_Datatype, Pair> make_pairs() {
  std::map<MPI_Datatype, Pair> pairs;
  pairs[MPI_FLOAT_INT] = with_int<float>(Basic::swap4);
  pairs[MPI_DOUBLE_INT] = with_int<double>(Basic::swap8);
  pairs[MPI_LONG_INT] = with_int<long>(sizeof(long) == 8 ? Basic::int_8_to_4 : Basic::swap4);
  pairs[MPI_SHORT_INT] = with_int<short>(Basic::swap2);
  pairs[MPI_2INT] = with_int<int>(Basic::swap4);
  pairs[MPI_LONG_DOUBLE_INT] = with_int<long double>(Basic::long_double);
  if (MPI_REAL != MPI_DATATYPE_NULL) {
    pairs[MPI_2REAL] = twice(MPI_REAL);
    pairs[MPI_2DOUBLE_PRECISION] = twice(MPI_DOUBLE_PRECISION);
    pairs[MPI_2INTEGER] = twice(MPI_INTEGER);
  }
  pairs.erase(MPI_DATATYPE_NULL);
  return pairs;
}

}  // namespace

BasicParts basic_parts(MPI_Datatype type) {
  static const std::map<MPI_Datatype, Pair> pairs = make_pairs();
  static const std::map<MPI_Datatype, Basic> special = make_special();
  static const std::map<MPI_Datatype, bool> complex = make_complex();
  BasicParts parts;
  if (auto pair = pairs.find(type); pair != pairs.end()) {
    const Pair& p = pair->second;
    parts.runs.push_back({0, static_cast<uint64_t>(p.first_bytes), 1, 0, p.first});
    parts.runs.push_back({p.second_disp, static_cast<uint64_t>(p.second_bytes), 1, 0, p.second});
    parts.extent = p.extent;
    return parts;
  }
  const int bytes = size_of(type);
  if (bytes == 0) return parts;
  Basic basic = swap_of(complex.count(type) ? bytes / 2 : bytes);
  if (auto found = special.find(type); found != special.end()) basic = found->second;
  parts.runs.push_back({0, static_cast<uint64_t>(bytes), 1, 0, basic});
  parts.extent = bytes;
  return parts;
}

}  // namespace holdfast::frontend
