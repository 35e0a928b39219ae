// Doors of asynchronous I/O by aio.h. On our files it is done when it is asked for. The control block then says what the C library's own says of a
// request that has ended. So aio_error, aio_return, aio_suspend and aio_cancel answer without us.
#include <aio.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstring>
#include <memory>
#include <vector>

#include "intercept/posix/door.hpp"

namespace {

using namespace holdfast::intercept::posix;
using holdfast::Result;
using holdfast::Status;

void signal_end(const sigevent& how) {
  siginfo_t what{};
  what.si_signo = how.sigev_signo;
  what.si_code = SI_ASYNCIO;
  what.si_pid = getpid();
  what.si_uid = getuid();
  what.si_value = how.sigev_value;
  syscall(SYS_rt_sigqueueinfo, getpid(), how.sigev_signo, &what);
}

// A thread of the program's, for its function.
int call_at_end(const sigevent& how) {
  auto call = std::make_unique<sigevent>(how);
  auto* attributes = static_cast<pthread_attr_t*>(how.sigev_notify_attributes);
  pthread_t thread;
  auto run = [](void* given) -> void* {
    const std::unique_ptr<sigevent> mine(static_cast<sigevent*>(given));
    mine->sigev_notify_function(mine->sigev_value);
    return nullptr;
  };
  if (pthread_create(&thread, attributes, run, call.get()) != 0) return errno = EAGAIN, -1;
  (void)call.release();
  int detached = PTHREAD_CREATE_JOINABLE;
  if (attributes) pthread_attr_getdetachstate(attributes, &detached);
  if (detached == PTHREAD_CREATE_JOINABLE) pthread_detach(thread);
  return 0;
}

int tell(const sigevent& how) {
  if (how.sigev_notify == SIGEV_SIGNAL) signal_end(how);
  return how.sigev_notify == SIGEV_THREAD ? call_at_end(how) : 0;
}

enum class What : uint8_t { read, write, sync };

// 0, or the request's error.
template <class Request>
int serve(Description& file, Request& request, What what) {
  const OurCode ours_now;
  const iovec piece{const_cast<void*>(request.aio_buf), request.aio_nbytes};
  const auto done = [&]() -> Result<int64_t> {
    if (what == What::read) return file.read_at(request.aio_offset, {&piece, 1});
    if (what == What::write) return file.write_at(request.aio_offset, {&piece, 1});
    HF_TRY(file.sync());
    return int64_t(0);
  }();
  const int before = errno;
  request.__return_value = answer(file, done);
  request.__error_code = request.__return_value < 0 ? errno : 0;
  errno = before;
  return request.__error_code;
}

// A plain file's request is counted when it is made: with what it asks for, and the time of the asking. The C library does it later.
template <class Request, class Native>
int submit_natively(Request& request, What what, Call call, Native native) {
  int result = 0;
  (void)observed(request.aio_fildes, call, [&] {
    result = native();
    return result != 0 ? int64_t(-1) : what == What::sync ? 0 : int64_t(request.aio_nbytes);
  });
  return result;
}

template <class Request, class Native>
int submit(Request* request, What what, Native native) {
  if (inside > 0 || !request) return native();
  const auto file = find_or_adopt(request->aio_fildes);
  const Call call = what == What::read ? reads(request->aio_offset) : what == What::write ? writes(request->aio_offset) : Call{Counter::syncs};
  if (!file) return submit_natively(*request, what, call, native);
  if (what == What::sync) request->aio_reqprio = 0;  // the C library does not look at it either
  if (request->aio_reqprio < 0 || request->aio_reqprio > int(sysconf(_SC_AIO_PRIO_DELTA_MAX))) return errno = EINVAL, -1;
  (void)observed(request->aio_fildes, call, [&] { return serve(*file, *request, what) == 0 ? int64_t(request->__return_value) : -1; });
  return tell(request->aio_sigevent);
}

template <class Request, class Native>
int sync_all(int operation, Request* request, Native native) {
  if (operation != O_SYNC && operation != O_DSYNC) return native();
  return submit(request, What::sync, native);
}

// Those of our files are done first; the C library is asked for the rest, and tells of the end of all.
template <class Request, class Native>
int submit_list(int mode, Request* const* list, int count, Native native) {
  if (inside > 0 || !list || count < 0 || (mode != LIO_WAIT && mode != LIO_NOWAIT)) return native(list);
  std::vector<Request*> rest(list, list + count);
  bool failed = false, some = false;
  for (Request*& request : rest) {
    const bool moves = request && (request->aio_lio_opcode == LIO_READ || request->aio_lio_opcode == LIO_WRITE);
    const auto file = moves ? find_or_adopt(request->aio_fildes) : nullptr;
    if (!file) continue;
    some = true;
    const bool in = request->aio_lio_opcode == LIO_READ;
    failed |= observed(request->aio_fildes, in ? reads(request->aio_offset) : writes(request->aio_offset),
                       [&] { return serve(*file, *request, in ? What::read : What::write) == 0 ? int64_t(request->__return_value) : -1; }) < 0;
    (void)tell(request->aio_sigevent);
    request = nullptr;
  }
  if (!some) return native(list);
  const int result = native(rest.data());
  return result == 0 && failed && mode == LIO_WAIT ? (errno = EIO, -1) : result;
}

}  // namespace

HF_DOOR int aio_read(aiocb* request) noexcept {
  return submit(request, What::read, [=] { return real().aio_read(request); });
}
HF_DOOR int aio_read64(aiocb64* request) noexcept {
  return submit(request, What::read, [=] { return real().aio_read64(request); });
}
HF_DOOR int aio_write(aiocb* request) noexcept {
  return submit(request, What::write, [=] { return real().aio_write(request); });
}
HF_DOOR int aio_write64(aiocb64* request) noexcept {
  return submit(request, What::write, [=] { return real().aio_write64(request); });
}
HF_DOOR int aio_fsync(int operation, aiocb* request) noexcept {
  return sync_all(operation, request, [=] { return real().aio_fsync(operation, request); });
}
HF_DOOR int aio_fsync64(int operation, aiocb64* request) noexcept {
  return sync_all(operation, request, [=] { return real().aio_fsync64(operation, request); });
}
HF_DOOR int lio_listio(int mode, aiocb* const* list, int count, sigevent* how) noexcept {
  return submit_list(mode, list, count, [=](aiocb* const* rest) { return real().lio_listio(mode, rest, count, how); });
}
HF_DOOR int lio_listio64(int mode, aiocb64* const* list, int count, sigevent* how) noexcept {
  return submit_list(mode, list, count, [=](aiocb64* const* rest) { return real().lio_listio64(mode, rest, count, how); });
}
