// Before other ranks can learn which message came, all replicas of this one know.
#include "frontend/messages/racing.hpp"
#include "redundant/unrepeatable.hpp"

namespace holdfast::frontend::messages {

namespace {

struct To {
  int dest, tag;
  MPI_Comm comm;
  MPI_Count count;
};

// `start` sends and does not block.
template <class Next, class Start>
int send(const To& to, Next next, Start start) {
  Replica* const replica = replica_of_program();
  if (!replica) return next();
  replica->before_a_send();
  if (!threads_may_be_several() && !State::any()) return next();
  const Sends sends(replica, to.dest, to.tag, to.comm, to.count);
  if (!State::any()) return next();
  MPI_Request request = MPI_REQUEST_NULL;
  const int code = start(&request);
  return code == MPI_SUCCESS ? finish(*replica, request, MPI_STATUS_IGNORE) : code;
}

}  // namespace
}  // namespace holdfast::frontend::messages

using namespace holdfast::frontend::messages;

void redundant_before_send() {
  if (Replica* const replica = replica_of_program()) replica->before_a_send();
}

void redundant_not_repeatable(const char* call) {
  if (replica_of_program()) holdfast::redundant::note_unrepeatable(call);
}

// A call that all ranks make stays in MPI. What the program expects from anybody may have to be taken before another rank comes. So a follower waits
// until its leader is through, and takes what the leader knows by then. True: this replica tells the others.
bool redundant_before_together() {
  Replica* const replica = replica_of_program();
  if (!replica) return false;
  replica->before_a_send();
  State& state = State::get();
  if (!state.expects()) return false;
  holdfast::Bytes answer;
  Replica::Known known{};
  until(*replica, [&] {
    state.pump(*replica);
    return (known = replica->known(holdfast::redundant::message_subject(Messages::together), answer)) != Replica::Known::nothing;
  });
  state.pump(*replica);
  return known == Replica::Known::mine;
}

void redundant_after_together(bool leads) {
  Replica* const replica = leads ? replica_of_program() : nullptr;
  if (!replica) return;
  State::get().pump(*replica);
  replica->say(holdfast::redundant::message_subject(Messages::together), {});
}

int redundant_Send(int (*next)(const void*, int, MPI_Datatype, int, int, MPI_Comm), const void* buf, int count, MPI_Datatype datatype, int dest,
                   int tag, MPI_Comm comm) {
  return send(
      {dest, tag, comm, count}, [=] { return next(buf, count, datatype, dest, tag, comm); },
      [=](MPI_Request* request) { return real.Isend(buf, count, datatype, dest, tag, comm, request); });
}
int redundant_Ssend(int (*next)(const void*, int, MPI_Datatype, int, int, MPI_Comm), const void* buf, int count, MPI_Datatype datatype, int dest,
                    int tag, MPI_Comm comm) {
  return send(
      {dest, tag, comm, count}, [=] { return next(buf, count, datatype, dest, tag, comm); },
      [=](MPI_Request* request) { return real.Issend(buf, count, datatype, dest, tag, comm, request); });
}
int redundant_Rsend(int (*next)(const void*, int, MPI_Datatype, int, int, MPI_Comm), const void* buf, int count, MPI_Datatype datatype, int dest,
                    int tag, MPI_Comm comm) {
  return send(
      {dest, tag, comm, count}, [=] { return next(buf, count, datatype, dest, tag, comm); },
      [=](MPI_Request* request) { return real.Irsend(buf, count, datatype, dest, tag, comm, request); });
}
#if HF_HAS_Send_c
int redundant_Send_c(int (*next)(const void*, MPI_Count, MPI_Datatype, int, int, MPI_Comm), const void* buf, MPI_Count count, MPI_Datatype datatype,
                     int dest, int tag, MPI_Comm comm) {
  return send(
      {dest, tag, comm, count}, [=] { return next(buf, count, datatype, dest, tag, comm); },
      [=](MPI_Request* request) { return real.Isend_c(buf, count, datatype, dest, tag, comm, request); });
}
int redundant_Ssend_c(int (*next)(const void*, MPI_Count, MPI_Datatype, int, int, MPI_Comm), const void* buf, MPI_Count count, MPI_Datatype datatype,
                      int dest, int tag, MPI_Comm comm) {
  return send(
      {dest, tag, comm, count}, [=] { return next(buf, count, datatype, dest, tag, comm); },
      [=](MPI_Request* request) { return real.Issend_c(buf, count, datatype, dest, tag, comm, request); });
}
int redundant_Rsend_c(int (*next)(const void*, MPI_Count, MPI_Datatype, int, int, MPI_Comm), const void* buf, MPI_Count count, MPI_Datatype datatype,
                      int dest, int tag, MPI_Comm comm) {
  return send(
      {dest, tag, comm, count}, [=] { return next(buf, count, datatype, dest, tag, comm); },
      [=](MPI_Request* request) { return real.Irsend_c(buf, count, datatype, dest, tag, comm, request); });
}
#endif
