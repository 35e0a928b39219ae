// Nonblocking operations: run in order by one worker thread of the process, known to the program as generalised
// requests. Only the program's own threads call MPI: they complete the requests inside Wait and Test.
#pragma once
#include <atomic>
#include <memory>

#include "base/meter.hpp"
#include "frontend/mpi/transfer.hpp"

namespace holdfast::frontend {

struct Operation {
  FilePtr file;
  Transfer transfer;
  MPI_Request request = MPI_REQUEST_NULL;
  Meter* meter = current_meter;        // of the program's thread
  Fault fault;                         // valid once done
  std::atomic<bool> done{false};       // the worker has finished it
  std::atomic<bool> completed{false};  // MPI has been told so
};
using OperationPtr = std::shared_ptr<Operation>;

// Hands the operation to the worker and makes its request.
Fault start_operation(const OperationPtr& operation, MPI_Request* request);
OperationPtr find_operation(MPI_Request request);

void wait_done(Operation& operation);
// Waits until some operation has become done, or for so long.
void wait_for_some(int microseconds);
// Until no nonblocking operation of this file is under way: what comes later in the program happens later.
void drain(ProtectedMpiFile& file);
// Tells MPI about an operation that is done.
void complete(Operation& operation);
// The program has its answer: the request is gone. Reports the operation's fault and returns its code.
int conclude(const OperationPtr& operation);

}  // namespace holdfast::frontend
