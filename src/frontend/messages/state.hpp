// Messages under `holdfast run --replicas`: which one came is the leader's to say, for all replicas of a rank. Here: the communicators on which
// that was asked, and the receives that the program has posted and not seen complete.
//
// A receive that takes a message from anybody is posted in the leader as it is. In the others it is a placeholder until the leader's match is
// known, and so is what was posted later and could take the same message (redundant/decisions/receives.hpp). While there are such receives no
// call of the program's stays in MPI: it comes back to see what has been decided.
#pragma once
#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "base/in_mpi.hpp"
#include "owned_mpi.h"
#include "redundant/decisions/receives.hpp"
#include "redundant/subjects.hpp"
#include "redundant/twins/replica.hpp"

namespace holdfast::frontend::messages {

using redundant::Envelope;
using redundant::Messages;
using redundant::Receives;
using redundant::Replica;

// Null: this process is no replica, or it is MPI itself that calls.
inline Replica* replica_of_program() {
  Replica* const replica = Replica::now();
  return replica && in_mpi_calls <= 1 ? replica : nullptr;
}

// Whether several threads may call MPI at once: one load, where not.
bool look_whether_threads_may_be_several();
inline bool threads_may_be_several() { return !one_thread_at_a_time.load(std::memory_order_relaxed) && look_whether_threads_may_be_several(); }

// Costs nothing where threads cannot call at once.
class RecursiveLock {
 public:
  void lock() {
    if (threads_may_be_several()) mutex_.lock(), ++held_;
  }
  void unlock() {
    if (held_ > 0) --held_, mutex_.unlock();
  }

 private:
  std::recursive_mutex mutex_;
  int held_ = 0;
};

struct Wanted {
  void* buf = nullptr;
  MPI_Count count = 0;
  MPI_Datatype type{};
  int source = 0, tag = 0;
  MPI_Comm comm{};
};
Envelope envelope_of(int source, int tag);
Envelope envelope_of(const MPI_Status& status);

struct Communicator;

struct Receive {
  Wanted wanted;
  Communicator* on = nullptr;
  Receives::Name name = 0;
  bool by_caller = false;  // who waits for it asks MPI itself, as soon as it may
  bool may_go = false;
  bool is_persistent = false;
  bool is_cancelled = false;                     // the program wants that
  MPI_Datatype copied_type = MPI_DATATYPE_NULL;  // the program may free its own while this one waits
  MPI_Request handle = MPI_REQUEST_NULL;         // what the program holds; another one than `native` where that came later
  MPI_Request native = MPI_REQUEST_NULL;
  bool asked = false;              // pump() has just asked the MPI for it, which said no: whoever asks next need not
  std::optional<MPI_Status> seen;  // once it is complete: MPICH 5 tells the status of a persistent one by its first look alone
  // Of a call that sends as well: that request, and what has been packed for it.
  MPI_Request sent = MPI_REQUEST_NULL;
  std::vector<char> packed;
  bool is_open() const { return envelope_of(wanted.source, wanted.tag).is_open(); }
};

// What the comparison of messages has to know of a communicator.
struct SentOn {
  uint32_t number = 0;  // in the order in which the program came to send on them; 0: it has not
  int rank = 0;
  int size = 0, own_size = 0;  // ranks that it sends to, of its own group; another one where it is between two
  bool is_inter = false;
};

struct Communicator {
  uint64_t number = 0;  // of decisions; 0: none has been about it
  SentOn sent_on;
  bool leads = false;
  Receives receives;
  std::map<Receives::Name, Receive*> by_name;
  uint64_t subject(Messages kind) const { return redundant::message_subject(kind, number); }
};

// Receives that have been posted here, and those of them that take a message from anybody: two loads at each call of a program that has none.
inline constinit std::atomic<size_t> receives_here{0}, receives_expected{0};

// Of this process. All under its lock, which is not held while anything is waited for.
class State {
 public:
  static State& get();

  Communicator& of(MPI_Comm comm);
  SentOn sent_on(MPI_Comm comm);
  // How many have gone: what was remembered by a handle may be another's then.
  uint64_t communicators_gone() const { return gone_.load(std::memory_order_acquire); }
  // Its place among the receives is fixed. pump() posts it, or lets the caller go, when that may be.
  void begin(Receive& receive);
  void end(Receive& receive);
  static bool any() { return receives_here.load(std::memory_order_relaxed) > 0; }
  static bool others() { return receives_here.load(std::memory_order_relaxed) > 1; }
  // The program waits for a message from anybody: the same in all replicas.
  static bool expects() { return receives_expected.load(std::memory_order_relaxed) > 0; }
  bool overlaps(MPI_Comm comm, Envelope seen);

  // What can be done now: takes in what has been decided, posts what may be posted, tells what has come.
  void pump(Replica& replica);
  // Whether MPI has it, and all have been told who it came from (the leader's `status`); it is not over for MPI.
  bool has_come(Replica& replica, Receive& receive, MPI_Status& status);
  // The same, and what its call sends is sent: for the program it is over.
  bool is_complete(Replica& replica, Receive& receive, MPI_Status& status);
  // The same of a message that was seen by other means.
  bool tell(Replica& replica, Receive& receive, const MPI_Status& status);
  bool tell_before(Replica& replica, Communicator& on, Envelope seen);
  bool holds_back(Communicator& on, Envelope seen);

  // A receive as a request of the program.
  Receive* find(MPI_Request request);
  MPI_Request start(Replica& replica, std::unique_ptr<Receive> receive);
  int take(Receive& receive, MPI_Request* request, MPI_Status* status);  // that has come
  void cancel(Receive& receive);
  void let_go(Receive& receive);
  void gone(const Communicator* on);

  // What MPI_Recv_init was told.
  void remember(MPI_Request request, const Wanted& wanted);
  std::optional<Wanted> remembered(MPI_Request request);
  void forget(MPI_Request request);

 private:
  void take_decisions(Replica& replica, Communicator& on);
  void post(Receive& receive);
  bool is_here(Receive& receive, MPI_Status& status);
  bool tell_those_before(Replica& replica, Communicator& on, Receives::Name name, Envelope seen);
  void finish_orphans(Replica& replica);
  Communicator& entry(MPI_Comm comm);

  RecursiveLock mutex_;
  std::vector<std::unique_ptr<Communicator>> communicators_;
  std::map<MPI_Request, std::unique_ptr<Receive>> requests_;  // by handle
  std::map<MPI_Request, Wanted> persistent_;
  std::vector<std::unique_ptr<Receive>> orphans_;  // the program does not want to hear of them
  int keyval_ = MPI_KEYVAL_INVALID;
  uint64_t numbers_ = 0;
  uint32_t sent_numbers_ = 0;
  std::atomic<uint64_t> gone_{0};
};

// MPI gets a chance to move data, and this thread's processor goes to others.
void pause(Replica& replica, int round);
// After a no that was repeated: a follower has to be as fast at that as its leader.
void pause_sometimes(Replica& replica);
template <class Done>
void until(Replica& replica, Done done) {
  for (int round = 0; !done(); ++round) pause(replica, round);
}

// An operation of MPI's own, looked after until it is complete.
int finish(Replica& replica, MPI_Request request, MPI_Status* status);
int start_receive(const Wanted& wanted, MPI_Request* request);

}  // namespace holdfast::frontend::messages
