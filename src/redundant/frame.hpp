// What goes between replicas, and between them and the hub, after the greeting: a head and its payload, in the byte order of the machine.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/bytes.hpp"
#include "transport/greeting.hpp"

namespace holdfast::redundant {

inline transport::Agreement agreement(const transport::Secret& secret) { return {transport::Protocol::replicas, 12, secret, {}}; }

enum class Word : uint16_t {
  // to the hub
  join = 1,  // `number` ranks, `subject` its process; payload: host, what it runs, and where this process listens, a line each
  alive,     // now and then; `number`: how many ms it is behind; `subject`: a time of the sender's, which comes back where it is on another node
  leaves,    // it ends by itself, after `subject` calls; `number` is 1 where it takes its team with it (MPI_Abort)
  differ,    // claims differ; `subject`: 0, or one more than the messages that are the same; payload: the claims, and what they are about
  output,    // of stream `subject` (0 or 1) from its byte `number` on; `epoch`: 1 of a team that has resumed
  // from the hub
  twins,  // `number`: the process that was the rank at first; payload: where the twins listen, one paragraph per team
  lives,  // `subject` is the mask of teams in which this rank lives, as of `epoch`; `number` that of the teams that are lost
  end,    // this process is to end; to the one that moves a rank's output: the rank is
  // between `holdfast run` and the hub
  begin,       // `number` teams, `subject` a Reach, `epoch` the deadline in ms, `team` 1 in a rehearsal; payload: the secret
  listens,     // payload: where
  state,       // payload: the job as JSON, for `holdfast status --job`
  team_ended,  // `number`: its launcher's exit status; `subject`: the signal by which that died
  team_lost,   // end its launcher
  done,        // `number`: the job's exit status
  signalled,  // by the user: one team is to get it, and the others are ended first. `number`: the job's exit status where no team is there. The payload: a line about it
  is_alone,   // the others have ended: `team` may get it
  // between twins
  who,  // `number`: 1 where the sender goes by the log of the receiver, and asks for it
  claim,
  have,     // a follower has this outcome already
  outcome,  // of the leader's; `rank`: Compared
  decisions,
  unite,    // all decisions that a follower remembers, after a leader was lost
  arrived,  // the leader's decisions up to its `number`-th batch about messages
  piece,    // bytes of the `number`-th call on the subject, that the sender has read; payload: which, and the bytes
  // to the hub
  note,  // payload: a line for `holdfast status --job`; number: 1: and for whoever has started the job
  // about a team that is started again
  relaunch,   // to `holdfast run`: start the command as team `number` (`epoch` 1: from its beginning); payload: `subject` teams with logs, and hosts
  caught_up,  // to the hub: this process has come to the end of its log
  refused,    // to the hub: it cannot catch up; `number`: 1 can from the program's beginning, 2 can as the last team, to which it comes back;
              // from the hub: this process has no place in the job; payload: why, a sentence
  log_ends,   // to the hub: the sender's log has no more room; payload: why, a sentence
  welcome,    // between twins: the leader counts the receiver in from now on, and all before is in its log
  over,       // between twins: nobody calls on the subject any more, and its last outcome is with the sender; from the leader: with all
  // between twins that compare their messages
  sent,  // after `number` messages; `subject`: what of it (compare/sent)
  // about output, and ranks on other nodes
  taken,      // from the hub: what came last of stream `subject` is delivered, and more may come
  died,       // to the hub: the rank whose output the sender moves; payload: how far it had come (progress.hpp), where that is known
  unreached,  // to the hub: the twin in team `subject`; payload: why, a sentence
  reached,    // ... after all
  // between twins on nodes of their own, about the log of the one that is followed
  log_part,   // more of its bytes; `subject`: the sender's clock; `rank`: LogPart
  log_taken,  // up to `number`
  // with the hub, about whose turn it is to append to a file; `subject` the file, `number` the rank's call
  asks_to_append,
  may_append,  // to the rank's replicas
  has_appended,
  // with the hub: what clocks say has to be with all twins before a send, from the first time on that a rank tells its twins which message came
  asks_to_tell,
  await_all,  // to all
  awaits_all,
  may_tell,
  pointer,  // with the hub, about a shared file pointer; `subject` the file, `number` the rank's call; payload: that call, or where the pointer stood
  locks,    // with the hub, about a lock of a file; `subject` the file, `number` the call; payload: which part, or whether it may be taken
  failed,  // with the hub, about a call on a file of the replica's own; `subject` its place, `number` the answer, to it and then of all; payload: why
  becomes,  // with the hub: this process is about to become another program; payload: which. Back, when all its twins are about to, too
  // between twins: the sender waits for the outcome of its `number`-th call on the subject, or for that answer; `rank`: its Claim::Proof; payload: which call
  waits_in_call,
  waits_for_answer,
  asks_ahead,  // to the leader: a thread has waited `rank` ms for the `number`-th answer of that clock, and the leader's own may never ask for it
  child,  // to the hub, from what a replica of the team has started, and back when it is heard; `number`: ChildDoes; payload: a line for the user
  child_append,  // with the hub, of what a replica has started and is about to append to a file; `number`: OfChildAppend, and back what to do (child_link.hpp)
};

// What the receiver was about to do, with the call that has that outcome.
enum Compared : uint32_t {
  not_compared = 0,  // the leader has not heard it
  was_the_same = 1,
  was_another = 2,  // the call was made before the receiver took part
};

enum LogPart : uint32_t {
  log_in_step = 1,  // from now on its writer waits until what it writes has come
  log_is_cut = 2,   // it has no more room
};

struct Frame {
  Word word = Word::alive;
  uint16_t team = 0;  // of the sender; to the hub also of whom it is about
  uint32_t rank = 0, epoch = 0;
  uint64_t subject = 0, number = 0;
  Bytes payload;
};

Bytes encode(const Frame& frame);
std::string_view text_of(ByteView payload);
Bytes bytes_of(std::string_view text);

// Frames out of a stream of bytes.
class FrameReader {
 public:
  explicit FrameReader(uint64_t most_payload) : most_(most_payload) {}
  // False: this is no stream of frames.
  bool add(ByteView came);
  std::optional<Frame> next();

 private:
  const uint64_t most_;
  Bytes held_;
  size_t used_ = 0;
};

}  // namespace holdfast::redundant
