// Wait and Test and their kin, called while requests of ours are alive. Ours are completed first; then MPI answers for all
// requests alike, and the faults of ours are added to its answer.
#include "frontend/mpi/requests.hpp"

#include <thread>
#include <vector>

#include "frontend/mpi/own_code.hpp"
#include "owned_mpi.h"

namespace holdfast::frontend {

namespace {

// The program's callbacks (its own generalised requests) run inside MPI's Wait and Test.
template <class Call>
int forward(Call call) {
  holdfast::frontend::ProgramCode program;
  return call();
}

// Our operations among an array of requests; null where a request is not ours.
class Ours {
 public:
  Ours(int count, const MPI_Request* requests) : operations_(count > 0 ? count : 0) {
    for (int i = 0; i < count; ++i) {
      if (requests[i] == MPI_REQUEST_NULL) continue;
      ++active_;
      operations_[i] = find_operation(requests[i]);
      any_ |= operations_[i] != nullptr;
      if (operations_[i]) ++ours_;
    }
  }
  bool any() const { return any_; }
  bool others() const { return active_ > ours_; }
  void finish_all() {
    for (auto& operation : operations_) {
      if (operation) wait_done(*operation), complete(*operation);
    }
  }
  // Completes what is done; true if all of ours are.
  bool complete_done() {
    bool all = true;
    for (auto& operation : operations_) {
      if (!operation) continue;
      if (operation->done) {
        complete(*operation);
      } else {
        all = false;
      }
    }
    return all;
  }
  // Request `i` was handed out as complete.
  int conclude_one(int i) { return operations_[i] ? conclude(operations_[i]) : MPI_SUCCESS; }
  // MPI_ERROR of request `where(i)`'s status for i < count; the code that the whole call returns.
  template <class IndexOf>
  int complete_many(int code, int count, IndexOf index_of, MPI_Status* statuses) {
    std::vector<int> codes(count);
    bool failed = false;
    for (int i = 0; i < count; ++i) failed |= (codes[i] = conclude_one(index_of(i))) != MPI_SUCCESS;
    if (!failed) return code;
    for (int i = 0; i < count && statuses != MPI_STATUSES_IGNORE; ++i) {
      if (code == MPI_SUCCESS || codes[i] != MPI_SUCCESS) statuses[i].MPI_ERROR = codes[i];
    }
    return MPI_ERR_IN_STATUS;
  }

 private:
  std::vector<OperationPtr> operations_;
  bool any_ = false;
  int active_ = 0, ours_ = 0;
};

// Until `attempt` (a Test of MPI's) finds something: our operations wake us, MPI's own requests need looking after.
template <class Attempt>
void until(Ours& ours, Attempt attempt) {
  int pause = 20;  // microseconds
  while (true) {
    ours.complete_done();
    if (attempt()) return;
    wait_for_some(ours.others() ? pause : 10000);
    pause = std::min(pause * 2, 500);
  }
}

}  // namespace
}  // namespace holdfast::frontend

using namespace holdfast::frontend;

int hf_Wait(MPI_Request* request, MPI_Status* status) {
  OperationPtr operation = find_operation(*request);
  if (operation) wait_done(*operation), complete(*operation);
  const int code = forward([&] { return next_mpi.Wait(request, status); });
  return operation && code == MPI_SUCCESS ? conclude(operation) : code;
}

int hf_Test(MPI_Request* request, int* flag, MPI_Status* status) {
  OperationPtr operation = find_operation(*request);
  if (operation && operation->done) complete(*operation);
  if (operation && !operation->done) std::this_thread::yield();
  const int code = forward([&] { return next_mpi.Test(request, flag, status); });
  return operation && code == MPI_SUCCESS && *flag ? conclude(operation) : code;
}

int hf_Waitall(int count, MPI_Request requests[], MPI_Status statuses[]) {
  Ours ours(count, requests);
  ours.finish_all();
  const int code = forward([&] { return next_mpi.Waitall(count, requests, statuses); });
  if (!ours.any()) return code;
  return ours.complete_many(
      code, count, [](int i) { return i; }, statuses);
}

int hf_Testall(int count, MPI_Request requests[], int* flag, MPI_Status statuses[]) {
  Ours ours(count, requests);
  if (!ours.complete_done()) std::this_thread::yield();
  const int code = forward([&] { return next_mpi.Testall(count, requests, flag, statuses); });
  if (!ours.any() || !*flag) return code;
  return ours.complete_many(
      code, count, [](int i) { return i; }, statuses);
}

int hf_Testany(int count, MPI_Request requests[], int* index, int* flag, MPI_Status* status) {
  Ours ours(count, requests);
  if (!ours.complete_done()) std::this_thread::yield();
  const int code = forward([&] { return next_mpi.Testany(count, requests, index, flag, status); });
  return code == MPI_SUCCESS && *flag && *index != MPI_UNDEFINED ? ours.conclude_one(*index) : code;
}

int hf_Waitany(int count, MPI_Request requests[], int* index, MPI_Status* status) {
  Ours ours(count, requests);
  if (!ours.any()) return forward([&] { return next_mpi.Waitany(count, requests, index, status); });
  int code = MPI_SUCCESS, flag = 0;
  until(ours, [&] {
    code = forward([&] { return next_mpi.Testany(count, requests, index, &flag, status); });
    return flag != 0 || code != MPI_SUCCESS;
  });
  return code == MPI_SUCCESS && *index != MPI_UNDEFINED ? ours.conclude_one(*index) : code;
}

int hf_Testsome(int count, MPI_Request requests[], int* outcount, int indices[], MPI_Status statuses[]) {
  Ours ours(count, requests);
  if (!ours.complete_done()) std::this_thread::yield();
  const int code = forward([&] { return next_mpi.Testsome(count, requests, outcount, indices, statuses); });
  if (!ours.any() || *outcount == MPI_UNDEFINED) return code;
  return ours.complete_many(
      code, *outcount, [&](int i) { return indices[i]; }, statuses);
}

int hf_Waitsome(int count, MPI_Request requests[], int* outcount, int indices[], MPI_Status statuses[]) {
  Ours ours(count, requests);
  if (!ours.any()) return forward([&] { return next_mpi.Waitsome(count, requests, outcount, indices, statuses); });
  int code = MPI_SUCCESS;
  until(ours, [&] {
    code = forward([&] { return next_mpi.Testsome(count, requests, outcount, indices, statuses); });
    return *outcount != 0 || code != MPI_SUCCESS;
  });
  if (*outcount == MPI_UNDEFINED) return code;
  return ours.complete_many(
      code, *outcount, [&](int i) { return indices[i]; }, statuses);
}

int hf_Request_get_status(MPI_Request request, int* flag, MPI_Status* status) {
  OperationPtr operation = find_operation(request);
  if (operation && operation->done) complete(*operation);
  if (operation && !operation->done) std::this_thread::yield();
  return forward([&] { return next_mpi.Request_get_status(request, flag, status); });
}

#if HF_HAS_Request_get_status_all
int hf_Request_get_status_all(int count, const MPI_Request requests[], int* flag, MPI_Status statuses[]) {
  if (!Ours(count, requests).complete_done()) std::this_thread::yield();
  return forward([&] { return next_mpi.Request_get_status_all(count, requests, flag, statuses); });
}
int hf_Request_get_status_any(int count, const MPI_Request requests[], int* index, int* flag, MPI_Status* status) {
  if (!Ours(count, requests).complete_done()) std::this_thread::yield();
  return forward([&] { return next_mpi.Request_get_status_any(count, requests, index, flag, status); });
}
int hf_Request_get_status_some(int count, const MPI_Request requests[], int* outcount, int indices[], MPI_Status statuses[]) {
  if (!Ours(count, requests).complete_done()) std::this_thread::yield();
  return forward([&] { return next_mpi.Request_get_status_some(count, requests, outcount, indices, statuses); });
}
#endif

int hf_Request_free(MPI_Request* request) {
  OperationPtr operation = find_operation(*request);
  // Nobody will wait for it any more: the request must be complete when MPI forgets it.
  if (operation) wait_done(*operation), complete(*operation);
  const int code = forward([&] { return next_mpi.Request_free(request); });
  if (operation) conclude(operation);
  return code;
}

// I/O that has begun is not cancelled; the Status says so.
int hf_Cancel(MPI_Request* request) {
  return forward([&] { return next_mpi.Cancel(request); });
}
