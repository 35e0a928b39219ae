#include <condition_variable>
#include <deque>

#include "base/quiet_thread.hpp"
#include "frontend/mpi/own_code.hpp"
#include "frontend/mpi/requests.hpp"
#include "owned_mpi.h"

namespace holdfast::frontend {

namespace {

std::atomic<int> alive_requests{0};

struct Worker {
  std::mutex mutex;
  std::condition_variable work, finished;
  std::deque<OperationPtr> queue;
  bool running = false;
  std::map<MPI_Request, OperationPtr> requests;
};
Worker& worker() {
  static auto* made = new Worker;  // the thread outlives static destruction
  return *made;
}

// The first in the queue; `lock` is let go of meanwhile.
void run_next(Worker& w, std::unique_lock<std::mutex>& lock) {
  OperationPtr operation = std::move(w.queue.front());
  w.queue.pop_front();
  lock.unlock();
  {
    const MeterScope measured(operation->meter);
    operation->fault = operation->transfer.run(*operation->file->stack, false);
  }
  lock.lock();
  operation->file->outstanding.fetch_sub(1);
  operation->done = true;
  w.finished.notify_all();
}

void serve() {
  holdfast::frontend::OurCode inside;
  Worker& w = worker();
  std::unique_lock lock(w.mutex);
  while (true) {
    w.work.wait(lock, [&] { return !w.queue.empty(); });
    run_next(w, lock);
  }
}

int query(void* state, MPI_Status* status) {
  set_status(status, static_cast<Operation*>(state)->transfer.bytes_moved());
  status->MPI_SOURCE = MPI_UNDEFINED;
  status->MPI_TAG = MPI_UNDEFINED;
  return MPI_SUCCESS;  // the fault goes through the file's error handler instead
}
int free_nothing(void*) { return MPI_SUCCESS; }
int cancel_nothing(void*, int) { return MPI_SUCCESS; }

}  // namespace

Fault start_operation(const OperationPtr& operation, MPI_Request* request) {
  if (const int code = real.Grequest_start(query, free_nothing, cancel_nothing, operation.get(), request); code != MPI_SUCCESS) {
    return Fault(code);
  }
  operation->request = *request;
  Worker& w = worker();
  std::unique_lock lock(w.mutex);
  alive_requests.fetch_add(1, std::memory_order_relaxed);
  w.requests[*request] = operation;
  operation->file->outstanding.fetch_add(1);
  w.queue.push_back(operation);
  if (!w.running) w.running = start_quiet_thread(serve);
  if (w.running) w.work.notify_one();
  else run_next(w, lock);  // without a thread it is done at once
  return Fault();
}

OperationPtr find_operation(MPI_Request request) {
  Worker& w = worker();
  std::lock_guard lock(w.mutex);
  auto found = w.requests.find(request);
  return found == w.requests.end() ? nullptr : found->second;
}

void wait_done(Operation& operation) {
  Worker& w = worker();
  std::unique_lock lock(w.mutex);
  w.finished.wait(lock, [&] { return operation.done.load(); });
}

void wait_for_some(int microseconds) {
  Worker& w = worker();
  std::unique_lock lock(w.mutex);
  w.finished.wait_for(lock, std::chrono::microseconds(microseconds));
}

void drain(ProtectedMpiFile& file) {
  if (file.outstanding.load() == 0) return;
  Worker& w = worker();
  std::unique_lock lock(w.mutex);
  w.finished.wait(lock, [&] { return file.outstanding.load() == 0; });
}

void complete(Operation& operation) {
  if (!operation.completed.exchange(true)) real.Grequest_complete(operation.request);
}

int conclude(const OperationPtr& operation) {
  {
    Worker& w = worker();
    std::lock_guard lock(w.mutex);
    if (w.requests.erase(operation->request) != 0) alive_requests.fetch_sub(1, std::memory_order_relaxed);
  }
  return report(*operation->file, operation->fault);
}

}  // namespace holdfast::frontend

bool hf_requests_outstanding() { return holdfast::frontend::alive_requests.load(std::memory_order_relaxed) != 0; }
