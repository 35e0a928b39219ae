// The shared pointer in a process of its own, started by rank 0 on its node: what needs neither shared memory nor an MPI that
// makes progress. See src/service.
#pragma once
#include <memory>
#include <string>

#include "frontend/shared_pointer/shared_pointer.hpp"
#include "real_mpi.h"
#include "service/pointer_service.hpp"

namespace holdfast::frontend {

struct ServiceWish {
  service::PointerService::Reach reach = service::PointerService::Reach::node;
  bool as_thread = false;  // of rank 0: no process for a job that may never use it
  uint64_t deadline_ms = 10000;
  std::shared_ptr<void>* alive = nullptr;  // takes what keeps server and connection when no file is open
};

// Collective. Null on all ranks where one of them has no way to the server. `remark`, on rank 0: what did not go as wished.
std::unique_ptr<SharedPointer> make_process_pointer(MPI_Comm comm, const ServiceWish& wish, std::string& remark);

}  // namespace holdfast::frontend
