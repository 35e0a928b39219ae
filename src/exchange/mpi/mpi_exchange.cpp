#include "exchange/mpi/mpi_exchange.hpp"

#include <sched.h>
#include <time.h>

#include <algorithm>
#include <array>
#include <climits>
#include <cstring>
#include <utility>

namespace holdfast::exchange {
namespace {

constexpr int kTag = 1;
// All-gather sends the length and this much in one collective call: agreements and names are short.
constexpr size_t kInlineBytes = 248;

struct Slip {
  uint64_t length = 0;
  std::array<std::byte, kInlineBytes> head{};
};

// Waits without holding a core. More ranks than cores is common where people test, and an MPI that spins inside its blocking calls takes the core
// from the rank that everybody waits for.
void complete(MPI_Request request) {
  constexpr int kYields = 2000;
  constexpr long kLongestSleepNs = 100'000;
  long sleep_ns = 1'000;
  int done = 0;
  for (int round = 0; real.Test(&request, &done, MPI_STATUS_IGNORE), !done; ++round) {
    if (round < kYields) {
      sched_yield();
      continue;
    }
    const timespec pause{0, sleep_ns};
    nanosleep(&pause, nullptr);
    sleep_ns = std::min(2 * sleep_ns, kLongestSleepNs);
  }
}

// Bulk data: everybody is here already (the lengths have been exchanged) and a transport may need every rank's help
// for each piece, so nobody sleeps.
void complete_bulk(std::vector<MPI_Request>& requests) {
  int done = 0;
  while (real.Testall(static_cast<int>(requests.size()), requests.data(), &done, MPI_STATUSES_IGNORE), !done) sched_yield();
}

class MpiExchange final : public Exchange {
 public:
  MpiExchange(MPI_Comm comm, uint64_t message_bytes) : comm_(comm), message_bytes_(message_bytes) {
    real.Comm_set_errhandler(comm_, MPI_ERRORS_ARE_FATAL);
    real.Comm_rank(comm_, &rank_);
    real.Comm_size(comm_, &size_);
  }

  ~MpiExchange() override {
    int finalized = 0;
    real.Finalized(&finalized);
    if (!finalized) real.Comm_free(&comm_);
  }

  int rank() const override { return rank_; }
  int size() const override { return size_; }

  void barrier() override {
    MPI_Request request;
    real.Ibarrier(comm_, &request);
    complete(request);
  }

  std::vector<int64_t> all_max(std::vector<int64_t> mine) override {
    std::vector<int64_t> all(mine.size());
    MPI_Request request;
    real.Iallreduce(mine.data(), all.data(), static_cast<int>(mine.size()), MPI_INT64_T, MPI_MAX, comm_, &request);
    complete(request);
    return all;
  }

  std::vector<Bytes> all_gather(ByteView mine) override {
    Slip slip{mine.size(), {}};
    std::copy_n(mine.begin(), std::min(mine.size(), kInlineBytes), slip.head.begin());
    std::vector<Slip> slips(size_);
    MPI_Request request;
    real.Iallgather(&slip, sizeof slip, MPI_BYTE, slips.data(), sizeof slip, MPI_BYTE, comm_, &request);
    complete(request);

    std::vector<Bytes> all(size_);
    uint64_t longest = 0;
    for (int from = 0; from < size_; ++from) {
      all[from].resize(slips[from].length);
      std::copy_n(slips[from].head.begin(), std::min(all[from].size(), kInlineBytes), all[from].begin());
      longest = std::max(longest, slips[from].length);
    }
    for (uint64_t begin = kInlineBytes; begin < longest; begin += round_bytes()) gather_round(mine, begin, all);
    return all;
  }

  std::vector<Bytes> all_to_all(std::vector<Bytes> to) override {
    std::vector<uint64_t> sending(size_), coming(size_);
    for (int rank = 0; rank < size_; ++rank) sending[rank] = to[rank].size();
    MPI_Request sizes;
    real.Ialltoall(sending.data(), 1, MPI_UINT64_T, coming.data(), 1, MPI_UINT64_T, comm_, &sizes);
    complete(sizes);

    std::vector<Bytes> from(size_);
    from[rank_] = std::move(to[rank_]);
    std::vector<MPI_Request> requests;
    // Neighbours first, each rank another one: not everybody at rank 0's door at once.
    for (int step = 1; step < size_; ++step) {
      const int peer = (rank_ + size_ - step) % size_;
      from[peer].resize(coming[peer]);
      post(from[peer], requests,
           [&](std::byte* at, int count, MPI_Request* request) { real.Irecv(at, count, MPI_BYTE, peer, kTag, comm_, request); });
    }
    for (int step = 1; step < size_; ++step) {
      const int peer = (rank_ + step) % size_;
      post(to[peer], requests, [&](std::byte* at, int count, MPI_Request* request) { real.Isend(at, count, MPI_BYTE, peer, kTag, comm_, request); });
    }
    complete_bulk(requests);
    return from;
  }

 private:
  // What one rank gives to one round of all-gather; the sum over ranks fits an int.
  uint64_t round_bytes() const { return std::max<uint64_t>(1, std::min<uint64_t>(message_bytes_, INT_MAX / static_cast<uint64_t>(size_))); }

  void gather_round(ByteView mine, uint64_t begin, std::vector<Bytes>& all) {
    std::vector<int> counts(size_), starts(size_);
    int total = 0;
    for (int from = 0; from < size_; ++from) {
      const uint64_t length = all[from].size();
      counts[from] = length > begin ? static_cast<int>(std::min(length - begin, round_bytes())) : 0;
      starts[from] = total;
      total += counts[from];
    }
    Bytes together(total);
    const std::byte* part = counts[rank_] > 0 ? mine.data() + begin : nullptr;
    MPI_Request request;
    real.Iallgatherv(part, counts[rank_], MPI_BYTE, together.data(), counts.data(), starts.data(), MPI_BYTE, comm_, &request);
    complete(request);
    for (int from = 0; from < size_; ++from)
      if (counts[from] > 0) std::memcpy(all[from].data() + begin, together.data() + starts[from], counts[from]);
  }

  // Messages between two ranks keep their order, so the parts of one buffer need no numbers.
  template <class Start>
  void post(Bytes& bytes, std::vector<MPI_Request>& requests, Start start) {
    for (uint64_t begin = 0; begin < bytes.size(); begin += message_bytes_) {
      const int count = static_cast<int>(std::min<uint64_t>(message_bytes_, bytes.size() - begin));
      start(bytes.data() + begin, count, &requests.emplace_back());
    }
  }

  MPI_Comm comm_;
  uint64_t message_bytes_;
  int rank_ = 0;
  int size_ = 1;
};

}  // namespace

std::unique_ptr<Exchange> make_mpi(MPI_Comm comm, uint64_t message_bytes) { return std::make_unique<MpiExchange>(comm, message_bytes); }

}  // namespace holdfast::exchange
