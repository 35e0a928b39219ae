// `--compare messages`: what the program sends and contributes to collective calls, as the doors hand it on. What is compared is the envelope and the
// bytes that the datatype names, never what lies between them. Nothing here calls what could block, and a buffer is only read.
#pragma once
#include <atomic>
#include <cstdint>

#include "owned_mpi.h"
#include "redundant/compare/sent.hpp"
#include "redundant/twins/replica.hpp"

namespace holdfast::frontend::messages {

using redundant::SentBy;

// Of a replica this does not change.
inline constinit std::atomic<bool> messages_are_not_compared{false};
// Null: messages are not compared, which is one load, and another one in a replica.
inline redundant::SentMessages* compared_messages() {
  redundant::Replica* const replica = redundant::Replica::now();
  if (!replica || messages_are_not_compared.load(std::memory_order_relaxed)) return nullptr;
  redundant::SentMessages* const all = replica->sent();
  if (!all) messages_are_not_compared.store(true, std::memory_order_relaxed);
  return all;
}

// What MPI's calls have as one number for all ranks, or as an array of one for each; of either width.
class Counts {
 public:
  Counts(int one) : one_(one) {}
  Counts(const int* each) : small_(each) {}
  Counts(MPI_Count one) : one_(one) {}
  Counts(const MPI_Count* each) : large_(each) {}
  int64_t operator[](size_t rank) const { return small_ ? small_[rank] : large_ ? int64_t(large_[rank]) : one_; }

 private:
  int64_t one_ = 0;
  const int* small_ = nullptr;
  const MPI_Count* large_ = nullptr;
};
// None: one block after the other.
class Places {
 public:
  Places() = default;
  Places(const int* each) : small_(each) {}
  Places(const MPI_Aint* each) : large_(each) {}
  bool any() const { return small_ || large_; }
  int64_t operator[](size_t rank) const { return small_ ? small_[rank] : int64_t(large_[rank]); }

 private:
  const int* small_ = nullptr;
  const MPI_Aint* large_ = nullptr;
};
class Types {
 public:
  explicit Types(MPI_Datatype one) : one_(one) {}
  explicit Types(const MPI_Datatype* each) : each_(each) {}
  MPI_Datatype operator[](size_t rank) const { return each_ ? each_[rank] : one_; }
  bool differ() const { return each_ != nullptr; }  // then places are in bytes

 private:
  MPI_Datatype one_ = MPI_DATATYPE_NULL;
  const MPI_Datatype* each_ = nullptr;
};
struct Contribution {
  const void* at;
  Counts counts;
  Places places;
  Types types;
};

// What a rank contributes to a collective call.
enum class Gives : uint8_t {
  nothing,           // and it takes part
  as_root,           // one buffer, where it is the root
  to_all,            // one buffer
  to_root,           // one buffer; in place: its own block of what the root, or everybody, receives
  blocks_as_root,    // a block for each rank, where it is the root
  blocks,            // a block for each rank; in place: of the buffer that it receives into
  sum_of_blocks,     // one buffer for all ranks' blocks together
  to_neighbours,     // one buffer
  blocks_neighbours  // a block for each rank that it sends to
};

// A call that sends one message.
void sent(const SentBy& by, const void* buf, MPI_Count count, MPI_Datatype type, int dest, int tag, MPI_Comm comm);
// A collective one. `root`: MPI_UNDEFINED where there is none.
void sent(const SentBy& by, Gives gives, const Contribution& send, const Contribution& receive, int root, MPI_Comm comm);

// The same for requests that are started later, and again: it is looked at then.
void kept(const SentBy& by, MPI_Request request, const void* buf, MPI_Count count, MPI_Datatype type, int dest, int tag, MPI_Comm comm);
void kept(const SentBy& by, MPI_Request request, Gives gives, const Contribution& send, const Contribution& receive, int root, MPI_Comm comm);
void started(int count, const MPI_Request* requests);
void forgotten(const MPI_Request* request);

}  // namespace holdfast::frontend::messages
