// The exchange over MPI, on any number of ranks: every rank computes what the others must have sent.
#include "exchange/mpi/mpi_exchange.hpp"

#include <sys/resource.h>

#include <cstdio>
#include <cstdlib>

#include "intercept/mpi/real.hpp"

namespace holdfast::exchange {
namespace {

#define EXPECT(condition)                                                               \
  do {                                                                                  \
    if (!(condition)) {                                                                 \
      std::fprintf(stderr, "rank %d, line %d: not so: %s\n", me, __LINE__, #condition); \
      std::abort();                                                                     \
    }                                                                                   \
  } while (0)

int me = 0;

// `length` bytes that depend on who sends them to whom.
Bytes message(int from, int to, uint64_t length) {
  Bytes bytes(length);
  for (uint64_t i = 0; i < length; ++i) bytes[i] = static_cast<std::byte>(from * 31 + to * 17 + i * 7 + i / 251);
  return bytes;
}

// Empty, short, around what fits inline, and several messages long; different for each pair.
uint64_t length_between(int from, int to, int trial) {
  const uint64_t lengths[] = {0, 1, 247, 248, 249, 1000, 4096, 100'003};
  return lengths[(from * 3 + to * 5 + trial) % 8];
}

void all_gather_brings_everybodys_bytes_in_rank_order(Exchange& exchange) {
  for (int trial = 0; trial < 8; ++trial) {
    const auto all = exchange.all_gather(message(me, 0, length_between(me, 0, trial)));
    EXPECT(static_cast<int>(all.size()) == exchange.size());
    for (int from = 0; from < exchange.size(); ++from) EXPECT(all[from] == message(from, 0, length_between(from, 0, trial)));
  }
}

void all_to_all_delivers_each_pairs_bytes(Exchange& exchange) {
  for (int trial = 0; trial < 8; ++trial) {
    std::vector<Bytes> to(exchange.size());
    for (int rank = 0; rank < exchange.size(); ++rank) to[rank] = message(me, rank, length_between(me, rank, trial));
    const auto from = exchange.all_to_all(std::move(to));
    for (int rank = 0; rank < exchange.size(); ++rank) EXPECT(from[rank] == message(rank, me, length_between(rank, me, trial)));
  }
}

void all_max_is_elementwise_and_knows_negative_numbers(Exchange& exchange) {
  const auto max = exchange.all_max({me, -me - 1, me == exchange.size() - 1 ? 7 : -9, INT64_MIN});
  EXPECT(max == (std::vector<int64_t>{exchange.size() - 1, -1, 7, INT64_MIN}));
  EXPECT(exchange.all_max({}).empty());
}

void two_exchanges_do_not_mix(Exchange& first, Exchange& second) {
  const auto one = first.all_gather(message(me, 1, 300));
  const auto two = second.all_gather(message(me, 2, 300));
  EXPECT(one[0] == message(0, 1, 300));
  EXPECT(two[0] == message(0, 2, 300));
}

double microseconds_per_call(Exchange& exchange) {
  constexpr int kCalls = 200;
  exchange.barrier();
  const double start = real.Wtime();
  for (int i = 0; i < kCalls; ++i) exchange.all_max({i, 1, 2});
  return (real.Wtime() - start) / kCalls * 1e6;
}

std::unique_ptr<Exchange> duplicate_of_world(uint64_t message_bytes) {
  MPI_Comm comm;
  real.Comm_dup(MPI_COMM_WORLD, &comm);
  return make_mpi(comm, message_bytes);
}

}  // namespace
}  // namespace holdfast::exchange

int main(int argc, char** argv) {
  using namespace holdfast::exchange;
  holdfast::intercept::need_real_mpi();
  real.Init(&argc, &argv);
  {
    auto exchange = duplicate_of_world(kMessageBytes);
    auto chopped = duplicate_of_world(1024);  // many messages and rounds for what is one otherwise
    me = exchange->rank();
    for (Exchange* each : {exchange.get(), chopped.get()}) {
      each->barrier();
      all_gather_brings_everybodys_bytes_in_rank_order(*each);
      all_to_all_delivers_each_pairs_bytes(*each);
      all_max_is_elementwise_and_knows_negative_numbers(*each);
    }
    two_exchanges_do_not_mix(*exchange, *chopped);
    const double latency = microseconds_per_call(*exchange);
    if (me == 0) std::printf("all_max: %.0f us on %d ranks\n", latency, exchange->size());
  }
  real.Finalize();
  return 0;
}
