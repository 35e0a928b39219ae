// Where in the file a data access happens, and the blocking path that the other kinds of call build on.
#pragma once
#include "frontend/mpi/transfer.hpp"

namespace holdfast::frontend {

enum class Where : uint8_t { offset, individual, shared, ordered };

// What the name of a data access call says (MPI-4.1, table 14.1), and what the program gave it.
struct DataAccess {
  Direction direction;
  Where where;
  bool collective;
  MPI_Offset offset;  // in etypes of the view; only of Where::offset
  UserData data;
};
constexpr bool independent = false, together = true;

// What the access mode and the offset allow.
Fault check_where(const ProtectedMpiFile& file, Where where, MPI_Offset offset);
// The position in etypes for `etypes` of data; pointers have moved past it afterwards. Collective for `ordered`. -1: see
// MpiFile::lost_pointer().
int64_t claim_position(ProtectedMpiFile& file, Where where, MPI_Offset offset, int64_t etypes);
// A whole blocking access; `bytes` (of memory) were moved.
Fault move_data(ProtectedMpiFile& file, const DataAccess& access, uint64_t& bytes);

}  // namespace holdfast::frontend
