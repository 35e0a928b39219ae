// Threads of one rank whose calls are under way at the same time, and whose order decides who gets what. Which of them MPI takes first no replica can
// repeat: that is said once, and where replicas differ.
#pragma once
#include <atomic>

#include "frontend/messages/state.hpp"

namespace holdfast::frontend::messages {

// How many calls have ended by which this process may have heard what another rank has seen of it.
inline constinit std::atomic<uint64_t> heard_of_others{0};

// A call of this thread, as long as it goes on. One load where no two threads may call MPI at once.
class AtOnce {
 public:
  AtOnce(const AtOnce&) = delete;
  AtOnce& operator=(const AtOnce&) = delete;

 protected:
  struct Message {
    int dest = MPI_PROC_NULL, tag = 0;
    MPI_Comm comm = MPI_COMM_NULL;
    MPI_Count count = 0;
  };
  enum class Kind : uint8_t { takes_message, asks_about_requests, sends, calls_all };
  AtOnce(Replica* replica, Kind kind, MPI_Comm comm, Envelope envelope) : kind_(kind), comm_(comm), envelope_(envelope) {
    if (threads_may_be_several() && replica) is_made(*replica);
  }
  ~AtOnce() {
    if (is_listed_) is_over();
  }

 private:
  static const char* race_of(Kind kind);
  static const char* outcome_of(Kind kind);
  bool races_with(const AtOnce& other) const;
  void is_made(Replica& replica);
  void is_over();

  bool is_listed_ = false;
  const Kind kind_;
  const MPI_Comm comm_;
  const Envelope envelope_;
  uint64_t heard_ = 0;
};

// It asks for a message, or posts a receive, or asks which requests are complete.
class Asks : AtOnce {
 public:
  Asks(Replica& replica, const Wanted& wanted)
      : AtOnce(wanted.source != MPI_PROC_NULL ? &replica : nullptr, Kind::takes_message, wanted.comm, envelope_of(wanted.source, wanted.tag)) {}
  explicit Asks(Replica& replica) : AtOnce(&replica, Kind::asks_about_requests, MPI_COMM_NULL, {}) {}
};

// Messages without content may change places. One that was taken long before its call returns comes first all the same, where this process has heard of that.
class Sends : AtOnce {
 public:
  Sends(Replica* replica, int dest, int tag, MPI_Comm comm, MPI_Count count) : Sends(replica, {dest, tag, comm, count}) {}
  // A persistent one that is started; of another request nothing.
  Sends(Replica* replica, MPI_Request started) : Sends(replica, kept(started)) {}
  static void keep(MPI_Request request, int dest, int tag, MPI_Comm comm, MPI_Count count);
  static void forget(MPI_Request request);

 private:
  Sends(Replica* replica, const Message& message)
      : AtOnce(message.dest != MPI_PROC_NULL && message.count > 0 ? replica : nullptr, Kind::sends, message.comm, {message.dest, message.tag}) {}
  static Message kept(MPI_Request request);
};

// A call that all ranks make.
class CallsAll : AtOnce {
 public:
  CallsAll(Replica* replica, MPI_Comm comm) : AtOnce(comm != MPI_COMM_NULL ? replica : nullptr, Kind::calls_all, comm, {}) {}
  // A persistent one that is started; of another request nothing.
  static CallsAll of_started(Replica* replica, MPI_Request request) { return {replica, kept(request)}; }
  static void keep(MPI_Request request, MPI_Comm comm);
  static void forget(MPI_Request request);

 private:
  static MPI_Comm kept(MPI_Request request);
};

// A call of the program's by which it may hear of others. `said`: if that is above 0 then.
class Hears {
 public:
  explicit Hears(const int* said = nullptr) : said_(said) {}
  ~Hears() {
    if (threads_may_be_several() && replica_of_program() && (!said_ || *said_ > 0)) ++heard_of_others;
  }
  Hears(const Hears&) = delete;
  Hears& operator=(const Hears&) = delete;

 private:
  const int* const said_;
};

}  // namespace holdfast::frontend::messages
