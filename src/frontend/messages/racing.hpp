// Threads of one rank that ask at the same time which message came. Which of them MPI answers first no replica can repeat: that is said once, and where
// replicas differ.
#pragma once
#include "frontend/messages/state.hpp"

namespace holdfast::frontend::messages {

// A call of this thread, as long as it asks: for a message, or which requests are complete. One load where no two threads may call MPI at once.
class Asks {
 public:
  Asks(Replica& replica, const Wanted& wanted);
  explicit Asks(Replica& replica);
  ~Asks();
  Asks(const Asks&) = delete;
  Asks& operator=(const Asks&) = delete;

 private:
  void begin(Replica& replica);
  bool races_with(const Asks& other) const;

  const bool is_listed_, is_about_requests_;
  const MPI_Comm comm_;
  const Envelope envelope_;
};

}  // namespace holdfast::frontend::messages
