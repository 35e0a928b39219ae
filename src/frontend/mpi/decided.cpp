// What the calls of MPI are given by the replica that leads.
#include <cstring>

#include "base/bytes.hpp"
#include "base/in_mpi.hpp"
#include "frontend/mpi/own_code.hpp"
#include "owned_mpi.h"
#include "real_mpi.h"
#include "redundant/decisions/carried_clocks.hpp"
#include "redundant/subjects.hpp"
#include "redundant/twins/replica.hpp"

using holdfast::redundant::CarriedClock;
using holdfast::redundant::Replica;

namespace {

constinit CarriedClock<double> mpi_clock(1e-3);

// For a thread of the program that has not asked, by one of Holdfast's.
bool ask_ahead(uint64_t which, holdfast::Bytes& answer) {
  if (which != uint64_t(holdfast::redundant::Subject::mpi_time)) return false;
  const double made = mpi_clock.of(next_mpi.Wtime());
  mpi_clock.said(made);
  answer.resize(sizeof made);
  std::memcpy(answer.data(), &made, sizeof made);
  return true;
}

__attribute__((constructor)) void time_may_be_asked_ahead() { Replica::asks_clocks_by(ask_ahead); }

}  // namespace

double redundant_Wtime(double (*next)()) {
  Replica* const replica = Replica::now();
  if (!replica || holdfast::in_mpi_calls > 1) return next();
  struct Asked {
    double (*next)();
    bool own;
  } asked{next, false};
  double now = 0;
  replica->decide(
      uint64_t(holdfast::redundant::Subject::mpi_time), holdfast::ByteSpan(reinterpret_cast<std::byte*>(&now), sizeof now),
      [](void* given, holdfast::ByteSpan into) {
        auto& asked = *static_cast<Asked*>(given);
        asked.own = true;
        const double made = mpi_clock.of(asked.next());
        std::memcpy(into.data(), &made, sizeof made);
      },
      &asked);
  if (asked.own) mpi_clock.said(now);
  else mpi_clock.heard(now, next());
  return now;
}

// Cut as MPI cuts it: a replica's own MPI has room for as much.
int redundant_Get_processor_name(int (*next)(char*, int*), char* name, int* length) {
  Replica* const replica = Replica::now();
  if (!replica || holdfast::in_mpi_calls > 1) return next(name, length);
  struct Named {
    int code, length;
    char text[MPI_MAX_PROCESSOR_NAME];
  } named{};
  struct Asked {
    int (*next)(char*, int*);
  } asked{next};
  replica->decide(
      uint64_t(holdfast::redundant::Subject::processor_name), holdfast::ByteSpan(reinterpret_cast<std::byte*>(&named), sizeof named),
      [](void* given, holdfast::ByteSpan into) {
        Named made{};
        made.code = static_cast<Asked*>(given)->next(made.text, &made.length);
        std::memcpy(into.data(), &made, sizeof made);
      },
      &asked);
  if (named.code != MPI_SUCCESS) return named.code;
  *length = named.length;
  std::memcpy(name, named.text, size_t(named.length) + 1);
  return MPI_SUCCESS;
}
