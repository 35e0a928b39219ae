#include "frontend/messages/racing.hpp"

#include <algorithm>
#include <vector>

#include "redundant/unrepeatable.hpp"

namespace holdfast::frontend::messages {

namespace {

struct All {
  std::mutex mutex;
  std::vector<const Asks*> now;
};
All& all() {
  static auto* const calls = new All;  // never destroyed: threads may call to the end
  return *calls;
}

bool may_be_several() {
  static const bool may = [] {
    int provided = MPI_THREAD_SINGLE;
    real.Query_thread(&provided);
    return provided == MPI_THREAD_MULTIPLE;
  }();
  return may;
}

}  // namespace

Asks::Asks(Replica& replica, const Wanted& wanted)
    : is_listed_(may_be_several() && wanted.source != MPI_PROC_NULL),
      is_about_requests_(false),
      comm_(wanted.comm),
      envelope_(envelope_of(wanted.source, wanted.tag)) {
  begin(replica);
}

Asks::Asks(Replica& replica) : is_listed_(may_be_several()), is_about_requests_(true), comm_(MPI_COMM_NULL) { begin(replica); }

Asks::~Asks() {
  if (!is_listed_) return;
  std::lock_guard lock(all().mutex);
  std::erase(all().now, this);
}

// Threads whose messages are told apart by their tags do not race.
bool Asks::races_with(const Asks& other) const {
  if (is_about_requests_ != other.is_about_requests_) return false;
  return is_about_requests_ || (comm_ == other.comm_ && envelope_.overlaps(other.envelope_));
}

void Asks::begin(Replica& replica) {
  if (!is_listed_) return;
  bool races = false;
  {
    std::lock_guard lock(all().mutex);
    races = std::any_of(all().now.begin(), all().now.end(), [this](const Asks* other) { return races_with(*other); });
    all().now.push_back(this);
  }
  if (!races) return;
  const char* const what = is_about_requests_ ? "threads of one rank ask at the same time which requests are complete"
                                              : "threads of one rank wait at the same time for the same messages on one communicator";
  if (redundant::note_race_of_threads(what)) replica.warn(std::string(what) + ", and which of them is answered first may differ between replicas");
}

}  // namespace holdfast::frontend::messages
