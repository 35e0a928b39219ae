// A log with something in every field; the golden one is it, too.
#pragma once
#include "profile/log.hpp"

namespace holdfast::profile {

inline Log example_log() {
  Log log;
  log.job.command = {"mpirun", "-n", "2", "./caf\xe9", "a b"};
  log.job.program = "/home/user/caf\xe9";
  log.job.scheme = "rs:4+2";
  log.job.holdfast = "0.1.0";
  log.job.start_ns = 1'790'000'000'123'456'789;
  log.job.duration_ns = 4'200'000'000;
  log.job.ranks = 2;
  log.job.nodes = {"alpha", "beta"};
  log.job.exit_code = 137;
  log.job.complete = false;
  log.job.damaged_pieces = 1;
  for (int rank : {0, 1})
    log.processes.push_back(
        {rank, uint32_t(4711 + rank), rank ? "beta" : "alpha", "/home/user/caf\xe9", uint64_t(1000 + rank), 4'100'000'000, rank == 0, {}});

  FileUse shared;
  shared.path = "/scratch/run 7/out.dat";
  shared.scheme = "rs:4+2";
  shared.pointer = "window";
  shared.alignment = 1 << 20;
  for (int rank : {0, 1}) {
    RankCounters r{rank, {}};
    for (size_t i = 0; i < counter_count; ++i) r.counters.at(i) = 1000 * i + uint64_t(rank);
    shared.total.merge(r.counters);
    shared.ranks.push_back(r);
  }
  shared.read_sizes = {{4096, 12}};
  shared.write_sizes = {{4088, 5918150}, {512, 3}};
  shared.read_strides = {{-4096, 2}};
  shared.write_strides = {{65536, 77}, {-131072, 4}};
  log.files.push_back(shared);

  FileUse plain;
  plain.path = "/scratch/input";
  plain.interface = Interface::posix;
  RankCounters reader{1, {}};
  reader.counters[Counter::opens] = 1;
  reader.counters[Counter::reads_independent] = 3;
  reader.counters[Counter::bytes_read] = 300;
  plain.total = reader.counters;
  plain.ranks = {reader};
  log.files.push_back(plain);

  log.time_line = {1ull << 24, {{0, {0, 5, 0}, {1, 2, 3}}, {1, {7, 0, 0}, {0, 0, 1ull << 62}}}};
  log.operations.push_back({0, 0, Counter::writes_collective, 5000, 100, 1 << 20, 4096});
  log.operations.push_back({1, 1, Counter::opens, 6000, 50, UINT64_MAX, 0});
  log.operations_lost = 3;
  return log;
}

}  // namespace holdfast::profile
