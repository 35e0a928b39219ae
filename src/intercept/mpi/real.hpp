// Finds the MPI underneath. The library is preloaded, so it can be in a process before its MPI, and in processes that never have one. It therefore
// links to no MPI, and looks every function up by name when it is first needed.
#pragma once
#include <atomic>

namespace holdfast::intercept {

struct Slot {
  const char* symbol;  // null ends a list
  void* where;         // the pointer variable that takes the address
};
// Generated for each MPI: functions of the MPI, functions behind our entries (null in a program without entries), data.
extern const Slot real_slots[];
extern const Slot next_slots[] __attribute__((weak));
extern const Slot object_slots[];

extern std::atomic<bool> real_is_loaded;
// Fills all slots, once. Ends the process with one sentence where there is no MPI, or another one than this library was built for. Handles of
// different MPIs have different sizes, so no call could be answered.
void load_real_mpi();
inline void need_real_mpi() {
  if (!real_is_loaded.load(std::memory_order_acquire)) [[unlikely]]
    load_real_mpi();
}

}  // namespace holdfast::intercept
