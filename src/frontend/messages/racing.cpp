#include "frontend/messages/racing.hpp"

#include <algorithm>
#include <map>
#include <vector>

#include "redundant/unrepeatable.hpp"

namespace holdfast::frontend::messages {

namespace {

struct All {
  std::mutex mutex;
  std::vector<const AtOnce*> now;
};
All& all() {
  static auto* const calls = new All;  // never destroyed: threads may call to the end
  return *calls;
}

// Of persistent requests: what each of them was made with.
template <class What>
class MadeWith {
 public:
  static MadeWith& get() {
    static auto* const all = new MadeWith;
    return *all;
  }
  void keep(MPI_Request request, const What& what) {
    std::lock_guard lock(mutex_);
    all_.insert_or_assign(request, what);
  }
  void forget(MPI_Request request) {
    std::lock_guard lock(mutex_);
    all_.erase(request);
  }
  What of(MPI_Request request, const What& otherwise) {
    std::lock_guard lock(mutex_);
    const auto found = all_.find(request);
    return found == all_.end() ? otherwise : found->second;
  }

 private:
  std::mutex mutex_;
  std::map<MPI_Request, What> all_;
};

}  // namespace

void AtOnce::is_made(Replica& replica) {
  if (redundant::race_of_threads.load(std::memory_order_relaxed)) return;
  is_listed_ = true;
  heard_ = heard_of_others.load();
  bool races = false;
  {
    std::lock_guard lock(all().mutex);
    races = std::any_of(all().now.begin(), all().now.end(), [this](const AtOnce* other) { return races_with(*other); });
    all().now.push_back(this);
  }
  const std::string what = races ? race_of(kind_) : "";
  if (races && redundant::note_race_of_threads(race_of(kind_))) replica.warn(what + outcome_of(kind_));
}

void AtOnce::is_over() {
  std::lock_guard lock(all().mutex);
  std::erase(all().now, this);
}

const char* AtOnce::race_of(Kind kind) {
  switch (kind) {
    case Kind::takes_message: return "threads of one rank wait at the same time for the same messages on one communicator";
    case Kind::asks_about_requests: return "threads of one rank ask at the same time which requests are complete";
    case Kind::sends: return "threads of one rank send at the same time to the same rank with one tag on one communicator";
    default: return "threads of one rank are at the same time in collective calls on one communicator";
  }
}

const char* AtOnce::outcome_of(Kind kind) {
  switch (kind) {
    case Kind::sends: return ", and which of these messages comes first may differ between replicas";
    case Kind::calls_all: return ", which MPI forbids, and which of them is first may differ between replicas";
    default: return ", and which of them is answered first may differ between replicas";
  }
}

// Threads whose messages are told apart by their tags do not race. Nor does one that sends because the other's message was taken: what it has heard by now
// may say so, however late the other call comes back.
bool AtOnce::races_with(const AtOnce& other) const {
  if (kind_ != other.kind_ || (kind_ == Kind::sends && heard_ != other.heard_)) return false;
  return kind_ == Kind::asks_about_requests || (comm_ == other.comm_ && envelope_.overlaps(other.envelope_));
}

void Sends::keep(MPI_Request request, int dest, int tag, MPI_Comm comm, MPI_Count count) {
  if (threads_may_be_several()) MadeWith<Message>::get().keep(request, {dest, tag, comm, count});
}
void Sends::forget(MPI_Request request) { MadeWith<Message>::get().forget(request); }
Sends::Message Sends::kept(MPI_Request request) { return MadeWith<Message>::get().of(request, {}); }

void CallsAll::keep(MPI_Request request, MPI_Comm comm) {
  if (threads_may_be_several()) MadeWith<MPI_Comm>::get().keep(request, comm);
}
void CallsAll::forget(MPI_Request request) { MadeWith<MPI_Comm>::get().forget(request); }
MPI_Comm CallsAll::kept(MPI_Request request) { return MadeWith<MPI_Comm>::get().of(request, MPI_COMM_NULL); }

}  // namespace holdfast::frontend::messages
