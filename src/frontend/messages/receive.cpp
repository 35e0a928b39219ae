// Receives: from the leader's source and tag where the program takes any.
#include <climits>
#include <vector>

#include "frontend/messages/racing.hpp"

namespace holdfast::frontend::messages {

namespace {

inline bool is_free_of_decisions(const Wanted& wanted) {
  return wanted.source == MPI_PROC_NULL || (!envelope_of(wanted.source, wanted.tag).is_open() && !State::any());
}

// As most are: nobody is to know of it.
inline bool is_like_natively(const Wanted& wanted) { return !threads_may_be_several() && is_free_of_decisions(wanted); }

// `next` receives and blocks. While others are waited for this one must not.
template <class Next>
int receive(Replica& replica, const Wanted& wanted, MPI_Status* status, Next next) {
  State& state = State::get();
  Receive one;
  one.wanted = wanted;
  one.by_caller = !state.any();
  state.begin(one);
  int code = MPI_SUCCESS;
  MPI_Status own{};
  own.MPI_SOURCE = wanted.source, own.MPI_TAG = wanted.tag;
  if (one.by_caller) {
    until(replica, [&] { return state.pump(replica), one.may_go; });
    const Envelope now = one.on->receives.envelope(one.name);
    code = now.is_open() ? next(wanted.source, wanted.tag, &own) : next(now.source, now.tag, &own);
    until(replica, [&] { return state.tell(replica, one, own); });
  } else {
    until(replica, [&] { return state.pump(replica), state.has_come(replica, one, own); });
    code = real.Wait(&one.native, &own);
  }
  state.end(one);
  if (status != MPI_STATUS_IGNORE) *status = own;
  return code;
}

template <class Count, class Next>
int receive_call(Next next, void* buf, Count count, MPI_Datatype type, int source, int tag, MPI_Comm comm, MPI_Status* status) {
  Replica* const replica = replica_of_program();
  const Wanted wanted{buf, MPI_Count(count), type, source, tag, comm};
  if (!replica || is_like_natively(wanted)) return next(buf, count, type, source, tag, comm, status);
  const Asks asks(*replica, wanted);
  if (is_free_of_decisions(wanted)) return next(buf, count, type, source, tag, comm, status);
  return receive(*replica, wanted, status, [=](int from, int with, MPI_Status* into) { return next(buf, count, type, from, with, comm, into); });
}

template <class Next>
int start_call(Next next, const Wanted& wanted, MPI_Request* request) {
  Replica* const replica = replica_of_program();
  if (!replica || is_like_natively(wanted)) return next();
  const Asks asks(*replica, wanted);
  if (is_free_of_decisions(wanted)) return next();
  const Envelope envelope = envelope_of(wanted.source, wanted.tag);
  State& state = State::get();
  if (!envelope.is_open() && !state.overlaps(wanted.comm, envelope)) return next();
  auto receive = std::make_unique<Receive>();
  receive->wanted = wanted;
  *request = state.start(*replica, std::move(receive));
  return MPI_SUCCESS;
}

template <class Next>
int init_call(Next next, const Wanted& wanted, MPI_Request* request) {
  const int code = next();
  if (code == MPI_SUCCESS && replica_of_program() && wanted.source != MPI_PROC_NULL) State::get().remember(*request, wanted);
  return code;
}

// One that may be a receive.
int start_persistent(Replica& replica, MPI_Request* request) {
  State& state = State::get();
  const auto wanted = state.remembered(*request);
  const Sends sends(&replica, *request);
  const CallsAll calls_all = CallsAll::of_started(&replica, *request);
  if (!wanted) return real.Start(request);
  const Asks asks(replica, *wanted);
  if (is_free_of_decisions(*wanted)) return real.Start(request);
  const Envelope envelope = envelope_of(wanted->source, wanted->tag);
  if (!envelope.is_open() && !state.overlaps(wanted->comm, envelope)) return real.Start(request);
  auto receive = std::make_unique<Receive>();
  receive->wanted = *wanted;
  receive->is_persistent = true;
  receive->handle = *request;
  (void)state.start(replica, std::move(receive));
  return MPI_SUCCESS;
}

// MPI's own calls by the kind of their counts, so that what is made of them stands here once.
int send_now(const void* buf, int count, MPI_Datatype type, int dest, int tag, MPI_Comm comm, MPI_Request* sent) {
  return real.Isend(buf, count, type, dest, tag, comm, sent);
}
int receive_now(void* buf, int count, MPI_Datatype type, int source, int tag, MPI_Comm comm, MPI_Status* status) {
  return real.Recv(buf, count, type, source, tag, comm, status);
}
int packed_size(int count, MPI_Datatype type, MPI_Comm comm, int* bytes) { return real.Pack_size(count, type, comm, bytes); }
int pack(const void* buf, int count, MPI_Datatype type, char* into, int size, int* position, MPI_Comm comm) {
  return real.Pack(buf, count, type, into, size, position, comm);
}
#if HF_HAS_Sendrecv_c
int send_now(const void* buf, MPI_Count count, MPI_Datatype type, int dest, int tag, MPI_Comm comm, MPI_Request* sent) {
  return real.Isend_c(buf, count, type, dest, tag, comm, sent);
}
int receive_now(void* buf, MPI_Count count, MPI_Datatype type, int source, int tag, MPI_Comm comm, MPI_Status* status) {
  return real.Recv_c(buf, count, type, source, tag, comm, status);
}
int packed_size(MPI_Count count, MPI_Datatype type, MPI_Comm comm, MPI_Count* bytes) { return real.Pack_size_c(count, type, comm, bytes); }
int pack(const void* buf, MPI_Count count, MPI_Datatype type, char* into, MPI_Count size, MPI_Count* position, MPI_Comm comm) {
  return real.Pack_c(buf, count, type, into, size, position, comm);
}
#endif

// What an exchange sends and what it takes, with counts of one kind (int or MPI_Count).
template <class Count>
struct Outgoing {
  const void* buf;
  Count count;
  MPI_Datatype type;
  int dest, tag;
};
template <class Count>
struct Incoming {
  void* buf;
  Count count;
  MPI_Datatype type;
  int source, tag;
};

template <class Count>
Wanted wanted_by(const Incoming<Count>& in, MPI_Comm comm) {
  return {in.buf, MPI_Count(in.count), in.type, in.source, in.tag, comm};
}

// The send goes out at once; its partner's answer may hang on it.
template <class Count>
int exchange(Replica& replica, const Outgoing<Count>& out, const Incoming<Count>& in, MPI_Comm comm, MPI_Status* status) {
  MPI_Request sent = MPI_REQUEST_NULL;
  if (const int code = send_now(out.buf, out.count, out.type, out.dest, out.tag, comm, &sent); code != MPI_SUCCESS) return code;
  const int received = receive(replica, wanted_by(in, comm), status,
                               [&](int from, int with, MPI_Status* into) { return receive_now(in.buf, in.count, in.type, from, with, comm, into); });
  const int code = finish(replica, sent, MPI_STATUS_IGNORE);
  return received != MPI_SUCCESS ? received : code;
}

template <class Count, class Next>
int exchange_call(Next next, const Outgoing<Count>& out, const Incoming<Count>& in, MPI_Comm comm, MPI_Status* status) {
  Replica* const replica = replica_of_program();
  if (!replica) return next();
  replica->before_a_send();
  const Wanted wanted = wanted_by(in, comm);
  const Asks asks(*replica, wanted);
  const Sends sends(replica, out.dest, out.tag, comm, out.count);
  return is_free_of_decisions(wanted) ? next() : exchange(*replica, out, in, comm, status);
}

// What is sent is packed first where the receive writes over it. `packed` keeps its place in memory when it is moved.
template <class Count>
int pack_first(const Incoming<Count>& in, MPI_Comm comm, std::vector<char>& packed) {
  Count bytes = 0, position = 0;
  if (const int code = packed_size(in.count, in.type, comm, &bytes); code != MPI_SUCCESS) return code;
  packed.resize(size_t(bytes) + 1);
  if (const int code = pack(in.buf, in.count, in.type, packed.data(), bytes, &position, comm); code != MPI_SUCCESS) return code;
  packed.resize(size_t(position));
  return MPI_SUCCESS;
}

template <class Count, class Next>
int replace_call(Next next, int dest, int sendtag, const Incoming<Count>& in, MPI_Comm comm, MPI_Status* status) {
  Replica* const replica = replica_of_program();
  if (!replica) return next();
  replica->before_a_send();
  const Wanted wanted = wanted_by(in, comm);
  const Asks asks(*replica, wanted);
  const Sends sends(replica, dest, sendtag, comm, in.count);
  if (is_free_of_decisions(wanted)) return next();
  std::vector<char> packed;
  if (const int code = pack_first(in, comm, packed); code != MPI_SUCCESS) return code;
  return exchange(*replica, Outgoing<Count>{packed.data(), Count(packed.size()), MPI_PACKED, dest, sendtag}, in, comm, status);
}

#if HF_HAS_Isendrecv
// The send goes out at once, the receive waits for its turn; the program holds one request for both.
template <class Count>
int exchange_later(Replica& replica, const Outgoing<Count>& out, std::vector<char> packed, const Wanted& wanted, MPI_Request* request) {
  auto receive = std::make_unique<Receive>();
  receive->wanted = wanted;
  receive->packed = std::move(packed);
  if (const int code = send_now(out.buf, out.count, out.type, out.dest, out.tag, wanted.comm, &receive->sent); code != MPI_SUCCESS) return code;
  *request = State::get().start(replica, std::move(receive));
  return MPI_SUCCESS;
}

// Whether MPI may do both by its own call.
bool may_exchange_natively(const Wanted& wanted) {
  const Envelope envelope = envelope_of(wanted.source, wanted.tag);
  return is_free_of_decisions(wanted) || (!envelope.is_open() && !State::get().overlaps(wanted.comm, envelope));
}

template <class Count, class Next>
int start_exchange_call(Next next, const Outgoing<Count>& out, const Incoming<Count>& in, MPI_Comm comm, MPI_Request* request) {
  Replica* const replica = replica_of_program();
  if (replica) replica->before_a_send();
  const Wanted wanted = wanted_by(in, comm);
  if (!replica) return next();
  const Asks asks(*replica, wanted);
  const Sends sends(replica, out.dest, out.tag, comm, out.count);
  return may_exchange_natively(wanted) ? next() : exchange_later(*replica, out, {}, wanted, request);
}

template <class Count, class Next>
int start_replace_call(Next next, int dest, int sendtag, const Incoming<Count>& in, MPI_Comm comm, MPI_Request* request) {
  Replica* const replica = replica_of_program();
  if (replica) replica->before_a_send();
  const Wanted wanted = wanted_by(in, comm);
  if (!replica) return next();
  const Asks asks(*replica, wanted);
  const Sends sends(replica, dest, sendtag, comm, in.count);
  if (may_exchange_natively(wanted)) return next();
  std::vector<char> packed;
  if (const int code = pack_first(in, comm, packed); code != MPI_SUCCESS) return code;
  const Outgoing<Count> out{packed.data(), Count(packed.size()), MPI_PACKED, dest, sendtag};
  return exchange_later(*replica, out, std::move(packed), wanted, request);
}
#endif

}  // namespace
}  // namespace holdfast::frontend::messages

using namespace holdfast::frontend::messages;

int redundant_Recv(int (*next)(void*, int, MPI_Datatype, int, int, MPI_Comm, MPI_Status*), void* buf, int count, MPI_Datatype datatype, int source,
                   int tag, MPI_Comm comm, MPI_Status* status) {
  return receive_call(next, buf, count, datatype, source, tag, comm, status);
}
#if HF_HAS_Recv_c
int redundant_Recv_c(int (*next)(void*, MPI_Count, MPI_Datatype, int, int, MPI_Comm, MPI_Status*), void* buf, MPI_Count count, MPI_Datatype datatype,
                     int source, int tag, MPI_Comm comm, MPI_Status* status) {
  return receive_call(next, buf, count, datatype, source, tag, comm, status);
}
#endif

int redundant_Irecv(int (*next)(void*, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request*), void* buf, int count, MPI_Datatype datatype, int source,
                    int tag, MPI_Comm comm, MPI_Request* request) {
  return start_call([=] { return next(buf, count, datatype, source, tag, comm, request); }, {buf, count, datatype, source, tag, comm}, request);
}
#if HF_HAS_Irecv_c
int redundant_Irecv_c(int (*next)(void*, MPI_Count, MPI_Datatype, int, int, MPI_Comm, MPI_Request*), void* buf, MPI_Count count,
                      MPI_Datatype datatype, int source, int tag, MPI_Comm comm, MPI_Request* request) {
  return start_call([=] { return next(buf, count, datatype, source, tag, comm, request); }, {buf, count, datatype, source, tag, comm}, request);
}
#endif

int redundant_Recv_init(int (*next)(void*, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request*), void* buf, int count, MPI_Datatype datatype,
                        int source, int tag, MPI_Comm comm, MPI_Request* request) {
  return init_call([=] { return next(buf, count, datatype, source, tag, comm, request); }, {buf, count, datatype, source, tag, comm}, request);
}
#if HF_HAS_Recv_init_c
int redundant_Recv_init_c(int (*next)(void*, MPI_Count, MPI_Datatype, int, int, MPI_Comm, MPI_Request*), void* buf, MPI_Count count,
                          MPI_Datatype datatype, int source, int tag, MPI_Comm comm, MPI_Request* request) {
  return init_call([=] { return next(buf, count, datatype, source, tag, comm, request); }, {buf, count, datatype, source, tag, comm}, request);
}
#endif

int redundant_Start(int (*next)(MPI_Request*), MPI_Request* request) {
  Replica* const replica = replica_of_program();
  if (!replica) return next(request);
  replica->before_a_send();
  if (State::get().remembered(*request)) return start_persistent(*replica, request);
  const Sends sends(replica, *request);
  const CallsAll calls_all = CallsAll::of_started(replica, *request);
  return next(request);
}

int redundant_Startall(int (*next)(int, MPI_Request*), int count, MPI_Request requests[]) {
  Replica* const replica = replica_of_program();
  if (!replica) return next(count, requests);
  replica->before_a_send();
  for (int i = 0; i < count; ++i)
    if (const int code = start_persistent(*replica, &requests[i]); code != MPI_SUCCESS) return code;
  return MPI_SUCCESS;
}

int redundant_Sendrecv(int (*next)(const void*, int, MPI_Datatype, int, int, void*, int, MPI_Datatype, int, int, MPI_Comm, MPI_Status*),
                       const void* sendbuf, int sendcount, MPI_Datatype sendtype, int dest, int sendtag, void* recvbuf, int recvcount,
                       MPI_Datatype recvtype, int source, int recvtag, MPI_Comm comm, MPI_Status* status) {
  return exchange_call<int>(
      [=] { return next(sendbuf, sendcount, sendtype, dest, sendtag, recvbuf, recvcount, recvtype, source, recvtag, comm, status); },
      {sendbuf, sendcount, sendtype, dest, sendtag}, {recvbuf, recvcount, recvtype, source, recvtag}, comm, status);
}
#if HF_HAS_Sendrecv_c
int redundant_Sendrecv_c(int (*next)(const void*, MPI_Count, MPI_Datatype, int, int, void*, MPI_Count, MPI_Datatype, int, int, MPI_Comm, MPI_Status*),
                         const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, int dest, int sendtag, void* recvbuf, MPI_Count recvcount,
                         MPI_Datatype recvtype, int source, int recvtag, MPI_Comm comm, MPI_Status* status) {
  return exchange_call<MPI_Count>(
      [=] { return next(sendbuf, sendcount, sendtype, dest, sendtag, recvbuf, recvcount, recvtype, source, recvtag, comm, status); },
      {sendbuf, sendcount, sendtype, dest, sendtag}, {recvbuf, recvcount, recvtype, source, recvtag}, comm, status);
}
#endif

int redundant_Sendrecv_replace(int (*next)(void*, int, MPI_Datatype, int, int, int, int, MPI_Comm, MPI_Status*), void* buf, int count,
                               MPI_Datatype datatype, int dest, int sendtag, int source, int recvtag, MPI_Comm comm, MPI_Status* status) {
  return replace_call<int>([=] { return next(buf, count, datatype, dest, sendtag, source, recvtag, comm, status); }, dest, sendtag,
                           {buf, count, datatype, source, recvtag}, comm, status);
}
#if HF_HAS_Sendrecv_replace_c
int redundant_Sendrecv_replace_c(int (*next)(void*, MPI_Count, MPI_Datatype, int, int, int, int, MPI_Comm, MPI_Status*), void* buf, MPI_Count count,
                                 MPI_Datatype datatype, int dest, int sendtag, int source, int recvtag, MPI_Comm comm, MPI_Status* status) {
  return replace_call<MPI_Count>([=] { return next(buf, count, datatype, dest, sendtag, source, recvtag, comm, status); }, dest, sendtag,
                                 {buf, count, datatype, source, recvtag}, comm, status);
}
#endif

#if HF_HAS_Isendrecv
int redundant_Isendrecv(int (*next)(const void*, int, MPI_Datatype, int, int, void*, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request*),
                        const void* sendbuf, int sendcount, MPI_Datatype sendtype, int dest, int sendtag, void* recvbuf, int recvcount,
                        MPI_Datatype recvtype, int source, int recvtag, MPI_Comm comm, MPI_Request* request) {
  return start_exchange_call<int>(
      [=] { return next(sendbuf, sendcount, sendtype, dest, sendtag, recvbuf, recvcount, recvtype, source, recvtag, comm, request); },
      {sendbuf, sendcount, sendtype, dest, sendtag}, {recvbuf, recvcount, recvtype, source, recvtag}, comm, request);
}
int redundant_Isendrecv_replace(int (*next)(void*, int, MPI_Datatype, int, int, int, int, MPI_Comm, MPI_Request*), void* buf, int count,
                                MPI_Datatype datatype, int dest, int sendtag, int source, int recvtag, MPI_Comm comm, MPI_Request* request) {
  return start_replace_call<int>([=] { return next(buf, count, datatype, dest, sendtag, source, recvtag, comm, request); }, dest, sendtag,
                                 {buf, count, datatype, source, recvtag}, comm, request);
}
#endif
#if HF_HAS_Isendrecv_c
int redundant_Isendrecv_c(int (*next)(const void*, MPI_Count, MPI_Datatype, int, int, void*, MPI_Count, MPI_Datatype, int, int, MPI_Comm,
                                      MPI_Request*),
                          const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, int dest, int sendtag, void* recvbuf, MPI_Count recvcount,
                          MPI_Datatype recvtype, int source, int recvtag, MPI_Comm comm, MPI_Request* request) {
  return start_exchange_call<MPI_Count>(
      [=] { return next(sendbuf, sendcount, sendtype, dest, sendtag, recvbuf, recvcount, recvtype, source, recvtag, comm, request); },
      {sendbuf, sendcount, sendtype, dest, sendtag}, {recvbuf, recvcount, recvtype, source, recvtag}, comm, request);
}
int redundant_Isendrecv_replace_c(int (*next)(void*, MPI_Count, MPI_Datatype, int, int, int, int, MPI_Comm, MPI_Request*), void* buf, MPI_Count count,
                                  MPI_Datatype datatype, int dest, int sendtag, int source, int recvtag, MPI_Comm comm, MPI_Request* request) {
  return start_replace_call<MPI_Count>([=] { return next(buf, count, datatype, dest, sendtag, source, recvtag, comm, request); }, dest, sendtag,
                                       {buf, count, datatype, source, recvtag}, comm, request);
}
#endif
