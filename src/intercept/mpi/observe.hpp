// What every MPI-IO entry does where the job is profiled: the call between two looks at the clock, and a line in the file's record.
#pragma once
#include "profile/record.hpp"
#include "real_mpi.h"

namespace holdfast::intercept {

// Of this thread: it is in a call that is counted already. MPI's functions call each other.
extern thread_local bool observing;

inline bool observes() { return profile::on() && !observing; }

// What one call is about, from the generator.
struct ObservedAccess {
  bool write;
  profile::Counter kind;
  profile::Counter manner;
  MPI_File file;
  MPI_Offset offset;  // -1: at the individual pointer, or not known
  bool at_pointer;
  MPI_Count count;
  MPI_Datatype type;
  MPI_Status* status;  // null: none, or not filled when the call ends
};

using Served = int (*)(void*);

int observe_access(ObservedAccess access, int (*served)(void*, MPI_Status*), void* arguments);
int observe_end_of_split(bool write, MPI_File file, Served served, void* arguments);
int observe_open(const char* name, MPI_File* file, Served served, void* arguments);
int observe_close(MPI_File* file, Served served, void* arguments);
int observe_delete(const char* name, Served served, void* arguments);
int observe_view(MPI_File file, MPI_Offset disp, MPI_Datatype etype, MPI_Datatype filetype, Served served, void* arguments);
int observe_call(MPI_File file, profile::Counter kind, Served served, void* arguments);

// A lambda as a function and its argument: the observers are compiled once, not for each of 150 entries.
template <class Call>
int served_by(void* call) {
  return (*static_cast<Call*>(call))();
}
template <class Call>
int served_with_status(void* call, MPI_Status* status) {
  return (*static_cast<Call*>(call))(status);
}

}  // namespace holdfast::intercept
