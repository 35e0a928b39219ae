// Which requests are complete, and how often the answer was no: the leader's to say. The others wait for just these.
#include <algorithm>
#include <array>
#include <cstring>
#include <iterator>
#include <memory_resource>
#include <span>
#include <vector>

#include "frontend/messages/racing.hpp"
#include "frontend/mpi/own_code.hpp"

namespace holdfast::frontend::messages {

namespace {

enum class Call : int { wait_any = 1, wait_some, test, test_any, test_some, test_all, look, look_any, look_some, look_all, window, arrived };
constexpr const char* names[] = {"",
                                 "MPI_Waitany",
                                 "MPI_Waitsome",
                                 "MPI_Test",
                                 "MPI_Testany",
                                 "MPI_Testsome",
                                 "MPI_Testall",
                                 "MPI_Request_get_status",
                                 "MPI_Request_get_status_any",
                                 "MPI_Request_get_status_some",
                                 "MPI_Request_get_status_all",
                                 "MPI_Win_test",
                                 "MPI_Parrived"};

// What the program was told in the leader, or that this replica asks. As long as the call goes on. What can be done now is done (State::pump): to do so again
// would ask the MPI again, and each such question costs as much as the program's own.
struct Told {
  Told(Replica& replica, Call call);

  const Asks asks;
  bool mine = false, no = false;
  std::vector<int> which;  // none: no request is active
};

Told::Told(Replica& replica, Call call) : asks(replica) {
  const uint64_t subject = redundant::message_subject(Messages::requests);
  holdfast::Bytes answer;
  Replica::Known known{};
  until(replica, [&] {
    State::get().pump(replica);
    return (known = replica.known(subject, answer)) != Replica::Known::nothing;
  });
  mine = known == Replica::Known::mine;
  no = known == Replica::Known::no;
  if (no) pause_sometimes(replica);
  if (mine || no) return;
  std::vector<int> numbers(answer.size() / sizeof(int));
  std::memcpy(numbers.data(), answer.data(), numbers.size() * sizeof(int));
  if (numbers.empty() || numbers[0] != int(call))
    replica.differs(std::string(names[int(call)]) + ", where the leader's call was " +
                    (numbers.empty() ? "another" : names[size_t(numbers[0]) % std::size(names)]));
  which.assign(numbers.begin() + 1, numbers.end());
}

void say(Replica& replica, Call call, const int* which, int count) {
  std::vector<int> numbers{int(call)};
  if (count > 0) numbers.insert(numbers.end(), which, which + count);
  replica.say(redundant::message_subject(Messages::requests), std::as_bytes(std::span(numbers)));
}

void say_no(Replica& replica) { replica.say_no(redundant::message_subject(Messages::requests)); }

// MPI's own calls, for requests that are no receives of ours: the front end's are served first.
template <class Served, class Native>
int below(Served served, Native native) {
  if (!hf_requests_outstanding()) return native();
  const OurCode inside;
  return served();
}

int test_below(MPI_Request* request, int* flag, MPI_Status* status) {
  return below([&] { return hf_Test(request, flag, status); }, [&] { return real.Test(request, flag, status); });
}

// Behind a pump().
int test_one(Replica& replica, MPI_Request* request, int* flag, MPI_Status* status) {
  State& state = State::get();
  Receive* const receive = state.find(*request);
  if (!receive) return test_below(request, flag, status);
  MPI_Status own{};
  *flag = state.is_complete(replica, *receive, own) ? 1 : 0;
  return *flag ? state.take(*receive, request, status) : MPI_SUCCESS;
}

int wait_one(Replica& replica, MPI_Request* request, MPI_Status* status) {
  int flag = 0, code = MPI_SUCCESS;
  until(replica, [&] {
    State::get().pump(replica);
    code = test_one(replica, request, &flag, status);
    return flag != 0 || code != MPI_SUCCESS;
  });
  return code;
}

// An array of the program's requests, behind a pump(): receives of ours, and all others.
class Mixed {
 public:
  Mixed(Replica& replica, int count, MPI_Request* requests, MPI_Status* statuses)
      : replica_(replica), requests_(requests), statuses_(statuses), rest_(requests, requests + std::max(count, 0), &few_), ours_(&few_) {
    for (size_t i = 0; i < rest_.size(); ++i)
      if (Receive* const receive = State::get().find(rest_[i])) {
        ours_.emplace_back(int(i), receive);
        rest_[i] = MPI_REQUEST_NULL;
      }
  }
  int count() const { return int(rest_.size()); }

  int test_any(int* index, int* flag, MPI_Status* status) {
    *flag = 0;
    *index = MPI_UNDEFINED;
    MPI_Status own{};
    for (const auto& [i, receive] : ours_) {
      if (!State::get().is_complete(replica_, *receive, own)) continue;
      *flag = 1, *index = i;
      return State::get().take(*receive, &requests_[i], status);
    }
    if (is_all_ours()) return MPI_SUCCESS;
    const int code = below([&] { return hf_Testany(count(), rest_.data(), index, flag, status); },
                           [&] { return real.Testany(count(), rest_.data(), index, flag, status); });
    if (*flag && *index == MPI_UNDEFINED && !ours_.empty()) *flag = 0;
    if (*flag && *index != MPI_UNDEFINED) requests_[*index] = rest_[size_t(*index)];
    return code;
  }

  int test_some(int* outcount, int indices[]) {
    *outcount = 0;
    int code = below([&] { return hf_Testsome(count(), rest_.data(), outcount, indices, statuses_); },
                     [&] { return real.Testsome(count(), rest_.data(), outcount, indices, statuses_); });
    if (*outcount == MPI_UNDEFINED) *outcount = ours_.empty() ? MPI_UNDEFINED : 0;
    for (int k = 0; k < *outcount; ++k) requests_[indices[k]] = rest_[size_t(indices[k])];
    MPI_Status own{};
    for (const auto& [i, receive] : ours_) {
      if (!State::get().is_complete(replica_, *receive, own)) continue;
      const int k = (*outcount)++;
      indices[k] = i;
      add(code, k, State::get().take(*receive, &requests_[i], status(k)), *outcount);
    }
    return code;
  }

  int test_all(int* flag) {
    *flag = 0;
    MPI_Status own{};
    for (const auto& [i, receive] : ours_)
      if (!State::get().is_complete(replica_, *receive, own)) return MPI_SUCCESS;
    int code = below([&] { return hf_Testall(count(), rest_.data(), flag, statuses_); },
                     [&] { return real.Testall(count(), rest_.data(), flag, statuses_); });
    if (!*flag) return code;
    for (size_t i = 0; i < rest_.size(); ++i)
      if (rest_[i] == MPI_REQUEST_NULL && std::none_of(ours_.begin(), ours_.end(), [&](const auto& one) { return one.first == int(i); }))
        requests_[i] = MPI_REQUEST_NULL;
    for (const auto& [i, receive] : ours_) add(code, i, State::get().take(*receive, &requests_[i], status(i)), count());
    return code;
  }

 private:
  // Then the MPI has nothing else to look for, and it has been asked for one of these.
  bool is_all_ours() const {
    return std::ranges::all_of(rest_, [](MPI_Request one) { return one == MPI_REQUEST_NULL; }) &&
           std::ranges::any_of(ours_, [](const auto& one) { return one.second->native != MPI_REQUEST_NULL; });
  }
  MPI_Status* status(int k) const { return statuses_ == MPI_STATUSES_IGNORE ? MPI_STATUS_IGNORE : &statuses_[k]; }
  // One more result, as MPI reports those of many.
  void add(int& code, int k, int of_one, int known) {
    if (of_one == MPI_SUCCESS && code != MPI_ERR_IN_STATUS) return;
    if (statuses_ != MPI_STATUSES_IGNORE) {
      for (int j = 0; code != MPI_ERR_IN_STATUS && j < known; ++j) statuses_[j].MPI_ERROR = MPI_SUCCESS;
      statuses_[k].MPI_ERROR = of_one;
    }
    code = MPI_ERR_IN_STATUS;
  }

  Replica& replica_;
  MPI_Request* const requests_;
  MPI_Status* const statuses_;
  // Asked all the time, mostly about a few.
  std::array<std::byte, 512> room_;
  std::pmr::monotonic_buffer_resource few_{room_.data(), room_.size()};
  std::pmr::vector<MPI_Request> rest_;
  std::pmr::vector<std::pair<int, Receive*>> ours_;
};

// Whether a request is complete, which stays as it is. Behind a pump().
int look_at_one(Replica& replica, MPI_Request request, int* flag, MPI_Status* status) {
  State& state = State::get();
  Receive* const receive = state.find(request);
  if (!receive)
    return below([&] { return hf_Request_get_status(request, flag, status); }, [&] { return real.Request_get_status(request, flag, status); });
  MPI_Status own{};
  *flag = state.is_complete(replica, *receive, own) ? 1 : 0;
  if (*flag && status != MPI_STATUS_IGNORE) *status = own;
  return MPI_SUCCESS;
}

// A question whose answer is yes or no, and is yes from then on. `ask` fills the flag.
template <class Ask>
int decide_flag(Replica& replica, Call call, int* flag, Ask ask) {
  const Told all(replica, call);
  if (all.no) return *flag = 0, MPI_SUCCESS;
  int code = MPI_SUCCESS;
  *flag = 0;
  if (all.mine) {
    code = ask();
    *flag ? say(replica, call, nullptr, 0) : say_no(replica);
    return code;
  }
  until(replica, [&] {
    State::get().pump(replica);
    code = ask();
    return *flag != 0 || code != MPI_SUCCESS;
  });
  return code;
}

#if HF_HAS_Request_get_status_any
int wait_to_see(Replica& replica, MPI_Request request, int* flag, MPI_Status* status) {
  int code = MPI_SUCCESS;
  until(replica, [&] {
    State::get().pump(replica);
    code = look_at_one(replica, request, flag, status);
    return *flag != 0 || code != MPI_SUCCESS;
  });
  return code;
}

MPI_Status* status_in(MPI_Status* statuses, int k) { return statuses == MPI_STATUSES_IGNORE ? MPI_STATUS_IGNORE : &statuses[k]; }

// An array of the program's requests that is looked at: `next` sees all but receives of ours.
class Looked {
 public:
  Looked(Replica& replica, int count, const MPI_Request* requests) : replica_(replica), rest_(requests, requests + std::max(count, 0)) {
    for (size_t i = 0; i < rest_.size(); ++i)
      if (Receive* const receive = State::get().find(rest_[i])) {
        ours_.emplace_back(int(i), receive);
        rest_[i] = MPI_REQUEST_NULL;
      }
  }
  template <class Next>
  int any(Next next, int* index, int* flag, MPI_Status* status) {
    MPI_Status own{};
    for (const auto& [i, receive] : ours_) {
      if (!State::get().is_complete(replica_, *receive, own)) continue;
      *flag = 1, *index = i;
      if (status != MPI_STATUS_IGNORE) *status = own;
      return MPI_SUCCESS;
    }
    const int code = next(int(rest_.size()), rest_.data(), index, flag, status);
    if (*flag && *index == MPI_UNDEFINED && !ours_.empty()) *flag = 0;
    return code;
  }
  template <class Next>
  int some(Next next, int* outcount, int indices[], MPI_Status statuses[]) {
    const int code = next(int(rest_.size()), rest_.data(), outcount, indices, statuses);
    if (*outcount == MPI_UNDEFINED) *outcount = ours_.empty() ? MPI_UNDEFINED : 0;
    MPI_Status own{};
    for (const auto& [i, receive] : ours_) {
      if (!State::get().is_complete(replica_, *receive, own)) continue;
      const int k = (*outcount)++;
      indices[k] = i;
      if (MPI_Status* const at = status_in(statuses, k); at != MPI_STATUS_IGNORE) *at = own;
    }
    return code;
  }
  template <class Next>
  int all(Next next, int* flag, MPI_Status statuses[]) {
    MPI_Status own{};
    *flag = 0;
    for (const auto& [i, receive] : ours_)
      if (!State::get().is_complete(replica_, *receive, own)) return MPI_SUCCESS;
    const int code = next(int(rest_.size()), rest_.data(), flag, statuses);
    for (const auto& [i, receive] : ours_) {
      MPI_Status* const at = status_in(statuses, i);
      if (*flag && at != MPI_STATUS_IGNORE && State::get().is_complete(replica_, *receive, own)) *at = own;
    }
    return code;
  }

 private:
  Replica& replica_;
  std::vector<MPI_Request> rest_;
  std::vector<std::pair<int, Receive*>> ours_;
};
#endif

int wait_all(Replica& replica, int count, MPI_Request requests[], MPI_Status statuses[]) {
  int flag = 0, code = MPI_SUCCESS;
  until(replica, [&] {
    State::get().pump(replica);
    code = Mixed(replica, count, requests, statuses).test_all(&flag);
    return flag != 0 || code != MPI_SUCCESS;
  });
  return code;
}

// Those that the leader has seen complete, in its order.
int wait_for(Replica& replica, const Told& all, MPI_Request requests[], int* outcount, int indices[], MPI_Status statuses[]) {
  if (all.which.empty()) return *outcount = MPI_UNDEFINED, MPI_SUCCESS;
  std::vector<int> codes;
  for (size_t k = 0; k < all.which.size(); ++k) {
    indices[k] = all.which[k];
    codes.push_back(wait_one(replica, &requests[indices[k]], statuses == MPI_STATUSES_IGNORE ? MPI_STATUS_IGNORE : &statuses[k]));
  }
  *outcount = int(codes.size());
  if (std::all_of(codes.begin(), codes.end(), [](int code) { return code == MPI_SUCCESS; })) return MPI_SUCCESS;
  for (size_t k = 0; statuses != MPI_STATUSES_IGNORE && k < codes.size(); ++k) statuses[k].MPI_ERROR = codes[k];
  return MPI_ERR_IN_STATUS;
}

}  // namespace
}  // namespace holdfast::frontend::messages

using namespace holdfast::frontend::messages;

int redundant_Wait(int (*next)(MPI_Request*, MPI_Status*), MPI_Request* request, MPI_Status* status) {
  Replica* const replica = replica_of_program();
  return replica && State::any() ? wait_one(*replica, request, status) : next(request, status);
}

int redundant_Waitall(int (*next)(int, MPI_Request*, MPI_Status*), int count, MPI_Request requests[], MPI_Status statuses[]) {
  Replica* const replica = replica_of_program();
  return replica && State::any() ? wait_all(*replica, count, requests, statuses) : next(count, requests, statuses);
}

int redundant_Waitany(int (*next)(int, MPI_Request*, int*, MPI_Status*), int count, MPI_Request requests[], int* index, MPI_Status* status) {
  Replica* const replica = replica_of_program();
  if (!replica) return next(count, requests, index, status);
  const Told all(*replica, Call::wait_any);
  if (!all.mine) {
    if (all.which.empty()) return next(count, requests, index, status);
    *index = all.which[0];
    return wait_one(*replica, &requests[*index], status);
  }
  int code = MPI_SUCCESS, flag = 0;
  if (!State::any()) code = next(count, requests, index, status);
  else
    until(*replica, [&] {
      State::get().pump(*replica);
      code = Mixed(*replica, count, requests, nullptr).test_any(index, &flag, status);
      return flag != 0 || code != MPI_SUCCESS;
    });
  say(*replica, Call::wait_any, index, *index == MPI_UNDEFINED ? 0 : 1);
  return code;
}

int redundant_Waitsome(int (*next)(int, MPI_Request*, int*, int*, MPI_Status*), int count, MPI_Request requests[], int* outcount, int indices[],
                       MPI_Status statuses[]) {
  Replica* const replica = replica_of_program();
  if (!replica) return next(count, requests, outcount, indices, statuses);
  const Told all(*replica, Call::wait_some);
  if (!all.mine) return wait_for(*replica, all, requests, outcount, indices, statuses);
  int code = MPI_SUCCESS;
  if (!State::any()) code = next(count, requests, outcount, indices, statuses);
  else
    until(*replica, [&] {
      State::get().pump(*replica);
      code = Mixed(*replica, count, requests, statuses).test_some(outcount, indices);
      return *outcount != 0 || code != MPI_SUCCESS;
    });
  say(*replica, Call::wait_some, indices, *outcount == MPI_UNDEFINED ? 0 : *outcount);
  return code;
}

int redundant_Test(int (*next)(MPI_Request*, int*, MPI_Status*), MPI_Request* request, int* flag, MPI_Status* status) {
  Replica* const replica = replica_of_program();
  if (!replica) return next(request, flag, status);
  const Told all(*replica, Call::test);
  if (!all.mine) return *flag = !all.no, all.no ? MPI_SUCCESS : wait_one(*replica, request, status);
  const int code = State::any() ? test_one(*replica, request, flag, status) : next(request, flag, status);
  *flag ? say(*replica, Call::test, nullptr, 0) : say_no(*replica);
  return code;
}

int redundant_Testany(int (*next)(int, MPI_Request*, int*, int*, MPI_Status*), int count, MPI_Request requests[], int* index, int* flag,
                      MPI_Status* status) {
  Replica* const replica = replica_of_program();
  if (!replica) return next(count, requests, index, flag, status);
  const Told all(*replica, Call::test_any);
  if (all.no) return *flag = 0, *index = MPI_UNDEFINED, MPI_SUCCESS;
  if (!all.mine) {
    if (all.which.empty()) return next(count, requests, index, flag, status);
    *flag = 1, *index = all.which[0];
    return wait_one(*replica, &requests[*index], status);
  }
  const int code =
      State::any() ? Mixed(*replica, count, requests, nullptr).test_any(index, flag, status) : next(count, requests, index, flag, status);
  *flag ? say(*replica, Call::test_any, index, *index == MPI_UNDEFINED ? 0 : 1) : say_no(*replica);
  return code;
}

int redundant_Testsome(int (*next)(int, MPI_Request*, int*, int*, MPI_Status*), int count, MPI_Request requests[], int* outcount, int indices[],
                       MPI_Status statuses[]) {
  Replica* const replica = replica_of_program();
  if (!replica) return next(count, requests, outcount, indices, statuses);
  const Told all(*replica, Call::test_some);
  if (all.no) return *outcount = 0, MPI_SUCCESS;
  if (!all.mine) return wait_for(*replica, all, requests, outcount, indices, statuses);
  const int code =
      State::any() ? Mixed(*replica, count, requests, statuses).test_some(outcount, indices) : next(count, requests, outcount, indices, statuses);
  *outcount == 0 ? say_no(*replica) : say(*replica, Call::test_some, indices, *outcount == MPI_UNDEFINED ? 0 : *outcount);
  return code;
}

int redundant_Testall(int (*next)(int, MPI_Request*, int*, MPI_Status*), int count, MPI_Request requests[], int* flag, MPI_Status statuses[]) {
  Replica* const replica = replica_of_program();
  if (!replica) return next(count, requests, flag, statuses);
  const Told all(*replica, Call::test_all);
  if (!all.mine) return *flag = !all.no, all.no ? MPI_SUCCESS : wait_all(*replica, count, requests, statuses);
  const int code = State::any() ? Mixed(*replica, count, requests, statuses).test_all(flag) : next(count, requests, flag, statuses);
  *flag ? say(*replica, Call::test_all, nullptr, 0) : say_no(*replica);
  return code;
}

int redundant_Request_get_status(int (*next)(MPI_Request, int*, MPI_Status*), MPI_Request request, int* flag, MPI_Status* status) {
  Replica* const replica = replica_of_program();
  if (!replica) return next(request, flag, status);
  return decide_flag(*replica, Call::look, flag, [=] { return look_at_one(*replica, request, flag, status); });
}

#if HF_HAS_Request_get_status_any
int redundant_Request_get_status_any(int (*next)(int, const MPI_Request*, int*, int*, MPI_Status*), int count, const MPI_Request requests[],
                                     int* index, int* flag, MPI_Status* status) {
  Replica* const replica = replica_of_program();
  if (!replica) return next(count, requests, index, flag, status);
  const Told all(*replica, Call::look_any);
  if (all.no) return *flag = 0, *index = MPI_UNDEFINED, MPI_SUCCESS;
  if (!all.mine) {
    if (all.which.empty()) return next(count, requests, index, flag, status);
    *index = all.which[0];
    return wait_to_see(*replica, requests[*index], flag, status);
  }
  const int code = Looked(*replica, count, requests).any(next, index, flag, status);
  *flag ? say(*replica, Call::look_any, index, *index == MPI_UNDEFINED ? 0 : 1) : say_no(*replica);
  return code;
}

int redundant_Request_get_status_some(int (*next)(int, const MPI_Request*, int*, int*, MPI_Status*), int count, const MPI_Request requests[],
                                      int* outcount, int indices[], MPI_Status statuses[]) {
  Replica* const replica = replica_of_program();
  if (!replica) return next(count, requests, outcount, indices, statuses);
  const Told all(*replica, Call::look_some);
  if (all.no) return *outcount = 0, MPI_SUCCESS;
  if (!all.mine) {
    if (all.which.empty()) return *outcount = MPI_UNDEFINED, MPI_SUCCESS;
    int code = MPI_SUCCESS, flag = 0;
    *outcount = int(all.which.size());
    for (size_t k = 0; k < all.which.size() && code == MPI_SUCCESS; ++k) {
      indices[k] = all.which[k];
      code = wait_to_see(*replica, requests[indices[k]], &flag, status_in(statuses, int(k)));
    }
    return code;
  }
  const int code = Looked(*replica, count, requests).some(next, outcount, indices, statuses);
  *outcount == 0 ? say_no(*replica) : say(*replica, Call::look_some, indices, *outcount == MPI_UNDEFINED ? 0 : *outcount);
  return code;
}

int redundant_Request_get_status_all(int (*next)(int, const MPI_Request*, int*, MPI_Status*), int count, const MPI_Request requests[], int* flag,
                                     MPI_Status statuses[]) {
  Replica* const replica = replica_of_program();
  if (!replica) return next(count, requests, flag, statuses);
  return decide_flag(*replica, Call::look_all, flag, [=] { return Looked(*replica, count, requests).all(next, flag, statuses); });
}
#endif

int redundant_Win_test(int (*next)(MPI_Win, int*), MPI_Win win, int* flag) {
  Replica* const replica = replica_of_program();
  if (!replica) return next(win, flag);
  replica->before_a_send();
  return decide_flag(*replica, Call::window, flag, [=] { return next(win, flag); });
}

#if HF_HAS_Parrived
int redundant_Parrived(int (*next)(MPI_Request, int, int*), MPI_Request request, int partition, int* flag) {
  Replica* const replica = replica_of_program();
  if (!replica) return next(request, partition, flag);
  return decide_flag(*replica, Call::arrived, flag, [=] { return next(request, partition, flag); });
}
#endif

int redundant_Cancel(int (*next)(MPI_Request*), MPI_Request* request) {
  Replica* const replica = replica_of_program();
  Receive* const receive = replica ? State::get().find(*request) : nullptr;
  if (!receive) return next(request);
  State::get().cancel(*receive);
  return MPI_SUCCESS;
}

int redundant_Request_free(int (*next)(MPI_Request*), MPI_Request* request) {
  Replica* const replica = replica_of_program();
  if (!replica) return next(request);
  State& state = State::get();
  Receive* const receive = state.find(*request);
  const bool persistent = state.remembered(*request).has_value();
  if (receive && !persistent) return state.let_go(*receive), *request = MPI_REQUEST_NULL, MPI_SUCCESS;
  if (receive) (void)wait_one(*replica, request, MPI_STATUS_IGNORE);
  state.forget(*request);
  Sends::forget(*request);
  CallsAll::forget(*request);
  return next(request);
}
