// Threads of one rank whose calls are under way at the same time, and whose order decides who gets what. Which of them MPI takes first no replica can
// repeat: that is said once, and where replicas differ.
#pragma once
#include "frontend/messages/state.hpp"

namespace holdfast::frontend::messages {

// A call of this thread, as long as it goes on. One load where no two threads may call MPI at once.
class AtOnce {
 public:
  AtOnce(const AtOnce&) = delete;
  AtOnce& operator=(const AtOnce&) = delete;

 protected:
  enum class Kind : uint8_t { takes_message, asks_about_requests, sends, calls_all };
  AtOnce(Replica* replica, Kind kind, MPI_Comm comm, Envelope envelope);
  ~AtOnce();

 private:
  static const char* race_of(Kind kind);
  static const char* outcome_of(Kind kind);
  bool races_with(const AtOnce& other) const;

  const bool is_listed_;
  const Kind kind_;
  const MPI_Comm comm_;
  const Envelope envelope_;
};

// It asks for a message, or posts a receive, or asks which requests are complete.
class Asks : AtOnce {
 public:
  Asks(Replica& replica, const Wanted& wanted)
      : AtOnce(wanted.source != MPI_PROC_NULL ? &replica : nullptr, Kind::takes_message, wanted.comm, envelope_of(wanted.source, wanted.tag)) {}
  explicit Asks(Replica& replica) : AtOnce(&replica, Kind::asks_about_requests, MPI_COMM_NULL, {}) {}
};

// Messages without content may change places.
class Sends : AtOnce {
 public:
  Sends(Replica* replica, int dest, int tag, MPI_Comm comm, MPI_Count count)
      : AtOnce(dest != MPI_PROC_NULL && count > 0 ? replica : nullptr, Kind::sends, comm, {dest, tag}) {}
};

// A call that all ranks make.
class CallsAll : AtOnce {
 public:
  CallsAll(Replica* replica, MPI_Comm comm) : AtOnce(replica, Kind::calls_all, comm, {}) {}
};

}  // namespace holdfast::frontend::messages
