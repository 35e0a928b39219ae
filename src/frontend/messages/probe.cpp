// Looks for messages. Whether there is one, and from whom, is the leader's to say; the others then wait for that one.
#include <array>
#include <cstring>
#include <span>

#include "frontend/messages/racing.hpp"

namespace holdfast::frontend::messages {

namespace {

// `next` waits for a message, `look` asks whether there is one: (source, tag, flag, status).
template <class Next, class Look>
int wait_for_one(const Wanted& wanted, MPI_Status* status, Next next, Look look) {
  Replica* const replica = replica_of_program();
  State& state = State::get();
  const Envelope envelope = envelope_of(wanted.source, wanted.tag);
  if (!replica || wanted.source == MPI_PROC_NULL) return next(wanted.source, wanted.tag, status);
  const Asks asks(*replica, wanted);
  if (!envelope.is_open() && !state.any()) return next(wanted.source, wanted.tag, status);
  Receive one;
  one.wanted = wanted;
  one.by_caller = true;
  state.begin(one);
  until(*replica, [&] { return state.pump(*replica), one.may_go; });
  const Envelope now = one.on->receives.envelope(one.name);
  const int source = now.is_open() ? wanted.source : now.source, tag = now.is_open() ? wanted.tag : now.tag;
  MPI_Status own{};
  int code = MPI_SUCCESS, flag = 0;
  if (!state.others()) code = next(source, tag, &own);
  else
    until(*replica, [&] {
      state.pump(*replica);
      code = look(source, tag, &flag, &own);
      return flag != 0 || code != MPI_SUCCESS;
    });
  until(*replica, [&] { return state.tell(*replica, one, own); });
  state.end(one);
  if (status != MPI_STATUS_IGNORE) *status = own;
  return code;
}

// `look` as above; `taken`: messages that are looked for and taken are another question.
template <class Look>
int look_for_one(Messages kind, int source, int tag, MPI_Comm comm, int* flag, MPI_Status* status, Look look) {
  Replica* const replica = replica_of_program();
  if (!replica || source == MPI_PROC_NULL) return look(source, tag, flag, status);
  const Asks asks(*replica, Wanted{nullptr, 0, MPI_DATATYPE_NULL, source, tag, comm});
  State& state = State::get();
  Communicator& on = state.of(comm);
  state.pump(*replica);
  holdfast::Bytes answer;
  Replica::Known known{};
  until(*replica, [&] { return (known = replica->known(on.subject(kind), answer)) != Replica::Known::nothing; });
  MPI_Status own{};
  int code = MPI_SUCCESS;
  std::array<int, 2> found{};
  *flag = 0;
  if (known == Replica::Known::no) {
    pause_sometimes(*replica);
    return MPI_SUCCESS;
  }
  if (known == Replica::Known::mine) {
    code = look(source, tag, flag, &own);
    if (*flag == 0) return replica->say_no(on.subject(kind)), code;
    until(*replica, [&] { return state.tell_before(*replica, on, envelope_of(own)); });
    found = {own.MPI_SOURCE, own.MPI_TAG};
    replica->say(on.subject(kind), std::as_bytes(std::span(found)));
  } else {
    if (answer.size() != sizeof found) replica->differs("a look for a message that the leader did not make");
    std::memcpy(found.data(), answer.data(), sizeof found);
    until(*replica, [&] {
      state.pump(*replica);
      if (!state.holds_back(on, envelope_of(found[0], found[1]))) code = look(found[0], found[1], flag, &own);
      return *flag != 0 || code != MPI_SUCCESS;
    });
  }
  if (status != MPI_STATUS_IGNORE) *status = own;
  return code;
}

}  // namespace
}  // namespace holdfast::frontend::messages

using namespace holdfast::frontend::messages;

int redundant_Probe(int (*next)(int, int, MPI_Comm, MPI_Status*), int source, int tag, MPI_Comm comm, MPI_Status* status) {
  return wait_for_one(
      {nullptr, 0, MPI_DATATYPE_NULL, source, tag, comm}, status, [=](int from, int with, MPI_Status* into) { return next(from, with, comm, into); },
      [=](int from, int with, int* flag, MPI_Status* into) { return real.Iprobe(from, with, comm, flag, into); });
}

int redundant_Iprobe(int (*next)(int, int, MPI_Comm, int*, MPI_Status*), int source, int tag, MPI_Comm comm, int* flag, MPI_Status* status) {
  return look_for_one(Messages::probes, source, tag, comm, flag, status,
                      [=](int from, int with, int* there, MPI_Status* into) { return next(from, with, comm, there, into); });
}

#if HF_HAS_Mprobe
int redundant_Mprobe(int (*next)(int, int, MPI_Comm, MPI_Message*, MPI_Status*), int source, int tag, MPI_Comm comm, MPI_Message* message,
                     MPI_Status* status) {
  return wait_for_one(
      {nullptr, 0, MPI_DATATYPE_NULL, source, tag, comm}, status,
      [=](int from, int with, MPI_Status* into) { return next(from, with, comm, message, into); },
      [=](int from, int with, int* flag, MPI_Status* into) { return real.Improbe(from, with, comm, flag, message, into); });
}

int redundant_Improbe(int (*next)(int, int, MPI_Comm, int*, MPI_Message*, MPI_Status*), int source, int tag, MPI_Comm comm, int* flag,
                      MPI_Message* message, MPI_Status* status) {
  return look_for_one(Messages::taken_probes, source, tag, comm, flag, status,
                      [=](int from, int with, int* there, MPI_Status* into) { return next(from, with, comm, there, message, into); });
}
#endif
