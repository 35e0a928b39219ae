#include "frontend/messages/state.hpp"

#include <sched.h>

#include <algorithm>
#include <array>
#include <climits>
#include <cstring>
#include <span>
#include <utility>

namespace holdfast::frontend::messages {

namespace {

int copy_nothing(MPI_Comm, int, void*, void*, void*, int* flag) {
  *flag = 0;
  return MPI_SUCCESS;
}
int at_its_end(MPI_Comm, int, void* communicator, void*) {
  State::get().gone(static_cast<const Communicator*>(communicator));
  return MPI_SUCCESS;
}

// Placeholders: requests that the program can hold before MPI has the receive.
int answer_nothing(void*, MPI_Status* status) {
  status->MPI_SOURCE = MPI_UNDEFINED;
  status->MPI_TAG = MPI_UNDEFINED;
  real.Status_set_cancelled(status, 0);
  return real.Status_set_elements(status, MPI_BYTE, 0);
}
int free_nothing(void*) { return MPI_SUCCESS; }
int cancel_nothing(void*, int) { return MPI_SUCCESS; }

MPI_Request make_placeholder() {
  MPI_Request made = MPI_REQUEST_NULL;
  real.Grequest_start(answer_nothing, free_nothing, cancel_nothing, nullptr, &made);
  return made;
}

void end_placeholder(MPI_Request& placeholder) {
  real.Grequest_complete(placeholder);
  real.Wait(&placeholder, MPI_STATUS_IGNORE);
}

// A test of something that never completes is MPI's chance to move data.
void progress() {
  static const MPI_Request never = make_placeholder();
  MPI_Request same = never;
  int flag = 0;
  real.Test(&same, &flag, MPI_STATUS_IGNORE);
}

struct Match {
  uint64_t number;
  int64_t source, tag, cancelled;
};

bool is_cancelled(const MPI_Status& status) {
  int cancelled = 0;
  real.Test_cancelled(&status, &cancelled);
  return cancelled != 0;
}

}  // namespace

Envelope envelope_of(int source, int tag) {
  return {source == MPI_ANY_SOURCE ? redundant::anybody : source, tag == MPI_ANY_TAG ? redundant::anybody : tag};
}
Envelope envelope_of(const MPI_Status& status) { return envelope_of(status.MPI_SOURCE, status.MPI_TAG); }

void pause(Replica& replica, int round) {
  progress();
  constexpr int patience = 100, steps = 5;
  if (round < patience) return void(sched_yield());
  // A follower, which is woken by what it is told, waits longer, the longer nothing comes. Nobody wakes a leader when a message has come.
  constexpr std::chrono::microseconds moment(100);
  replica.wait_a_moment(moment * (replica.leads() ? 1 : std::min(1 + (round - patience) / steps, 10)));
}

void pause_sometimes(Replica& replica) {
  constexpr unsigned noes_at_once = 64;
  static __thread unsigned noes = 0;
  if (++noes % noes_at_once == 0) pause(replica, 0);
}

// With sessions each may say how many threads call, and another one may come.
bool look_whether_threads_may_be_several() {
  static std::atomic<bool> known_to_be{false};
  if (known_to_be.load(std::memory_order_relaxed) || sessions_have_begun.load()) return true;
  int begun = 0, provided = MPI_THREAD_MULTIPLE;
  real.Initialized(&begun);
  if (!begun) return true;
  real.Query_thread(&provided);
  if (provided == MPI_THREAD_MULTIPLE) {
    known_to_be.store(true, std::memory_order_relaxed);
    return true;
  }
  one_thread_at_a_time.store(true);
  if (!sessions_have_begun.load()) return false;
  one_thread_at_a_time.store(false);  // another thread has begun one since the first look
  return true;
}

int finish(Replica& replica, MPI_Request request, MPI_Status* status) {
  int flag = 0, code = MPI_SUCCESS;
  until(replica, [&] {
    State::get().pump(replica);
    code = real.Test(&request, &flag, status);
    return flag != 0 || code != MPI_SUCCESS;
  });
  return code;
}

int start_receive(const Wanted& wanted, MPI_Request* request) {
#if HF_HAS_Irecv_c
  if (wanted.count > INT_MAX) return real.Irecv_c(wanted.buf, wanted.count, wanted.type, wanted.source, wanted.tag, wanted.comm, request);
#endif
  return real.Irecv(wanted.buf, int(wanted.count), wanted.type, wanted.source, wanted.tag, wanted.comm, request);
}

State& State::get() {
  static State* const state = new State;  // never destroyed: MPI_Finalize may come after our statics have gone
  return *state;
}

// Numbered in the order in which they are first met here.
Communicator& State::of(MPI_Comm comm) {
  std::lock_guard lock(mutex_);
  Communicator& one = entry(comm);
  if (one.number == 0) one.number = ++numbers_;
  return one;
}

SentOn State::sent_on(MPI_Comm comm) {
  std::lock_guard lock(mutex_);
  SentOn& on = entry(comm).sent_on;
  if (on.number != 0) return on;
  int is_inter = 0;
  real.Comm_test_inter(comm, &is_inter);
  on.is_inter = is_inter != 0;
  real.Comm_rank(comm, &on.rank);
  real.Comm_size(comm, &on.own_size);
  on.size = on.own_size;
  if (on.is_inter) real.Comm_remote_size(comm, &on.size);
  on.number = ++sent_numbers_;
  return on;
}

Communicator& State::entry(MPI_Comm comm) {
  if (keyval_ == MPI_KEYVAL_INVALID) real.Comm_create_keyval(copy_nothing, at_its_end, &keyval_, nullptr);
  void* known = nullptr;
  int there = 0;
  real.Comm_get_attr(comm, keyval_, static_cast<void*>(&known), &there);
  if (there) return *static_cast<Communicator*>(known);
  communicators_.push_back(std::make_unique<Communicator>());
  real.Comm_set_attr(comm, keyval_, communicators_.back().get());
  return *communicators_.back();
}

void State::gone(const Communicator* on) {
  std::lock_guard lock(mutex_);
  ++gone_;
  if (on->receives.empty()) std::erase_if(communicators_, [&](const auto& one) { return one.get() == on; });
}

void State::begin(Receive& receive) {
  std::lock_guard lock(mutex_);
  receive.on = &of(receive.wanted.comm);
  receive.name = receive.on->receives.begin(envelope_of(receive.wanted.source, receive.wanted.tag));
  receive.on->by_name[receive.name] = &receive;
  ++receives_here;
}

void State::end(Receive& receive) {
  std::lock_guard lock(mutex_);
  receive.on->receives.end(receive.name);
  receive.on->by_name.erase(receive.name);
  --receives_here;
}

bool State::overlaps(MPI_Comm comm, Envelope seen) {
  std::lock_guard lock(mutex_);
  return !of(comm).receives.before(Receives::last, seen).empty() || of(comm).receives.holds_back(seen);
}

bool State::holds_back(Communicator& on, Envelope seen) {
  std::lock_guard lock(mutex_);
  return on.receives.holds_back(seen);
}

// -------------------------------------------------------------------------------------------------------------------- what is decided

void State::take_decisions(Replica& replica, Communicator& on) {
  if (on.leads) return;
  Bytes answer;
  for (;;) {
    const Replica::Known known = replica.known(on.subject(Messages::matches), answer);
    if (known == Replica::Known::mine) {
      on.leads = true;
      on.receives.lead();
    }
    if (known != Replica::Known::yes || answer.size() != sizeof(Match)) return;
    Match match;
    std::memcpy(&match, answer.data(), sizeof match);
    const Envelope got{int(match.source), int(match.tag)};
    on.receives.decided(match.number, match.cancelled ? std::nullopt : std::optional(got));
  }
}

void State::pump(Replica& replica) {
  if (!any()) return;
  std::lock_guard lock(mutex_);
  for (size_t i = 0; i < communicators_.size(); ++i) {
    Communicator& on = *communicators_[i];
    if (on.receives.empty()) continue;
    take_decisions(replica, on);
    while (const auto name = on.receives.next_ready()) {
      Receive& receive = *on.by_name.at(*name);
      on.receives.posted(*name);
      receive.may_go = true;
      if (!receive.by_caller) post(receive);
    }
    MPI_Status status{};
    for (const auto& [name, receive] : on.by_name)
      if (on.leads && on.receives.is_open(name)) {
        receive->asked = false;
        receive->asked = !has_come(replica, *receive, status);
      }
  }
  finish_orphans(replica);
}

void State::post(Receive& receive) {
  const Envelope now = receive.on->receives.envelope(receive.name);
  Wanted wanted = receive.wanted;
  if (receive.copied_type != MPI_DATATYPE_NULL) wanted.type = receive.copied_type;
  if (!now.is_open()) wanted.source = now.source, wanted.tag = now.tag;
  if (receive.is_persistent && wanted.source == receive.wanted.source && wanted.tag == receive.wanted.tag) {
    real.Start(&receive.handle);
    receive.native = receive.handle;
  } else {
    start_receive(wanted, &receive.native);
  }
  if (receive.copied_type != MPI_DATATYPE_NULL) real.Type_free(&receive.copied_type);
  if (receive.is_cancelled && now.is_open()) real.Cancel(&receive.native);
}

bool State::is_here(Receive& receive, MPI_Status& status) {
  if (receive.on->receives.is_cancelled(receive.name) && receive.native == MPI_REQUEST_NULL) {
    std::memset(static_cast<void*>(&status), 0, sizeof status);
    answer_nothing(nullptr, &status);
    real.Status_set_cancelled(&status, 1);
    return true;
  }
  if (receive.native == MPI_REQUEST_NULL) return false;
  if (receive.seen) return status = *receive.seen, true;
  if (std::exchange(receive.asked, false)) return false;
  int flag = 0;
  const int code = real.Request_get_status(receive.native, &flag, &status);
  if (code == MPI_SUCCESS && flag != 0) receive.seen = status;
  return code != MPI_SUCCESS || flag != 0;
}

bool State::has_come(Replica& replica, Receive& receive, MPI_Status& status) {
  std::lock_guard lock(mutex_);
  return is_here(receive, status) && tell(replica, receive, status);
}

bool State::is_complete(Replica& replica, Receive& receive, MPI_Status& status) {
  std::lock_guard lock(mutex_);
  int sent = 1;
  if (receive.sent != MPI_REQUEST_NULL && real.Test(&receive.sent, &sent, MPI_STATUS_IGNORE) != MPI_SUCCESS) sent = 1;
  return has_come(replica, receive, status) && sent != 0;
}

bool State::tell_those_before(Replica& replica, Communicator& on, Receives::Name name, Envelope seen) {
  const std::vector<Receives::Name> before = on.receives.before(name, seen);
  return std::all_of(before.begin(), before.end(), [&](Receives::Name one) {
    Receive& receive = *on.by_name.at(one);
    MPI_Status status{};
    return receive.by_caller || (is_here(receive, status) && tell(replica, receive, status));
  });
}

bool State::tell_before(Replica& replica, Communicator& on, Envelope seen) {
  std::lock_guard lock(mutex_);
  return tell_those_before(replica, on, Receives::last, seen);
}

bool State::tell(Replica& replica, Receive& receive, const MPI_Status& status) {
  std::lock_guard lock(mutex_);
  Communicator& on = *receive.on;
  if (!on.leads) return !on.receives.is_open(receive.name);
  const bool cancelled = is_cancelled(status);
  const Envelope got = envelope_of(status);
  if (!cancelled && !tell_those_before(replica, on, receive.name, got)) return false;
  if (!on.receives.is_open(receive.name)) return true;
  const Match match{on.receives.number(receive.name), got.source, got.tag, cancelled ? 1 : 0};
  replica.say(on.subject(Messages::matches), std::as_bytes(std::span(&match, 1)));
  on.receives.decided(match.number, cancelled ? std::nullopt : std::optional(got));
  return true;
}

// -------------------------------------------------------------------------------------------------------------------- requests

Receive* State::find(MPI_Request request) {
  if (!any() || request == MPI_REQUEST_NULL) return nullptr;
  std::lock_guard lock(mutex_);
  const auto found = requests_.find(request);
  return found == requests_.end() ? nullptr : found->second.get();
}

MPI_Request State::start(Replica& replica, std::unique_ptr<Receive> receive) {
  std::lock_guard lock(mutex_);
  Receive& one = *receive;
  begin(one);
  if (one.is_open()) ++receives_expected;
  pump(replica);
  if (one.native == MPI_REQUEST_NULL && one.wanted.type != MPI_DATATYPE_NULL) real.Type_dup(one.wanted.type, &one.copied_type);
  if (!one.is_persistent) one.handle = one.native != MPI_REQUEST_NULL ? one.native : make_placeholder();
  const MPI_Request handle = one.handle;
  requests_[handle] = std::move(receive);
  return handle;
}

int State::take(Receive& receive, MPI_Request* request, MPI_Status* status) {
  std::lock_guard lock(mutex_);
  int code = MPI_SUCCESS;
  const bool has_placeholder = !receive.is_persistent && receive.handle != receive.native;
  MPI_Status own{};
  (void)is_here(receive, own);
  if (receive.native != MPI_REQUEST_NULL) code = real.Wait(&receive.native, receive.seen ? MPI_STATUS_IGNORE : &own);
  if (status != MPI_STATUS_IGNORE) *status = own;
  if (has_placeholder) end_placeholder(receive.handle);
  if (receive.copied_type != MPI_DATATYPE_NULL) real.Type_free(&receive.copied_type);
  if (receive.is_open()) --receives_expected;
  end(receive);
  requests_.erase(*request);
  const auto persistent = persistent_.find(*request);
  if (persistent == persistent_.end()) *request = MPI_REQUEST_NULL;
  return code;
}

// Where it is not posted yet the leader's word decides whether it was.
void State::cancel(Receive& receive) {
  std::lock_guard lock(mutex_);
  receive.is_cancelled = true;
  const bool open = receive.on->receives.is_open(receive.name);
  if (receive.native != MPI_REQUEST_NULL && (open || !receive.is_open())) real.Cancel(&receive.native);
}

// The program does not want to hear of it; it takes its message all the same.
void State::let_go(Receive& receive) {
  std::lock_guard lock(mutex_);
  if (receive.is_open()) --receives_expected;
  const auto found = requests_.find(receive.handle);
  if (receive.handle != receive.native && !receive.is_persistent) end_placeholder(receive.handle);
  orphans_.push_back(std::move(found->second));
  requests_.erase(found);
}

void State::finish_orphans(Replica& replica) {
  MPI_Status status{};
  for (size_t i = orphans_.size(); i-- > 0;) {
    Receive& receive = *orphans_[i];
    if (!is_complete(replica, receive, status)) continue;
    if (receive.native != MPI_REQUEST_NULL) real.Wait(&receive.native, MPI_STATUS_IGNORE);
    end(receive);
    orphans_.erase(orphans_.begin() + ptrdiff_t(i));
  }
}

void State::remember(MPI_Request request, const Wanted& wanted) {
  std::lock_guard lock(mutex_);
  Wanted& kept = persistent_[request] = wanted;
  real.Type_dup(wanted.type, &kept.type);
}

std::optional<Wanted> State::remembered(MPI_Request request) {
  std::lock_guard lock(mutex_);
  const auto found = persistent_.find(request);
  return found == persistent_.end() ? std::nullopt : std::optional(found->second);
}

void State::forget(MPI_Request request) {
  std::lock_guard lock(mutex_);
  const auto found = persistent_.find(request);
  if (found == persistent_.end()) return;
  real.Type_free(&found->second.type);
  persistent_.erase(found);
}

}  // namespace holdfast::frontend::messages
