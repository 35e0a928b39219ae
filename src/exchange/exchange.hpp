// Exchange: how the processes that opened a file together talk. Over MPI in a job, over threads in tests, and
// alone in the command. Every call but rank() and size() is collective over all ranks, in the same order.
#pragma once
#include <memory>
#include <vector>

#include "base/bytes.hpp"

namespace holdfast::exchange {

class Exchange {
 public:
  virtual ~Exchange() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual void barrier() = 0;
  // Every rank's bytes to every rank, in rank order; lengths may differ.
  virtual std::vector<Bytes> all_gather(ByteView mine) = 0;
  // to[i] goes to rank i; returns what came, from[i] from rank i. Lengths may differ and be zero.
  virtual std::vector<Bytes> all_to_all(std::vector<Bytes> to) = 0;
  // Elementwise maximum of a few numbers: the cheap agreement before and after every collective step.
  virtual std::vector<int64_t> all_max(std::vector<int64_t> mine) = 0;
};

// A process on its own.
std::unique_ptr<Exchange> make_solo();
// `ranks` exchanges for as many threads of one process; element i is rank i's.
std::vector<std::unique_ptr<Exchange>> make_threads(int ranks);

}  // namespace holdfast::exchange
