// A log as the recognisers see it: files that are used alike are one Use.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "advice/advice.hpp"

namespace holdfast::advice {

using profile::Counter;
using profile::Counters;

// What was done, and how long it took.
struct Load {
  uint64_t calls = 0, bytes = 0;
  double seconds = 0;
  double mean_bytes() const { return calls ? double(bytes) / double(calls) : 0; }
};

// One direction of a Use.
struct Side {
  bool write = false;
  Load all;      // of all processes together
  Load slowest;  // of the process that spent most time here: it is the one that the job waits for
  size_t processes = 0;
  uint64_t end = 0;  // of the longest file, as far as it was reached
  uint64_t collective = 0, consecutive = 0, forward = 0, backward = 0, misaligned = 0;
  std::vector<profile::CommonValue> sizes, strides;  // most frequent first

  bool by_rank = false;  // the log says who did what
  size_t whole = 0;      // processes that moved more than half of the file each, to its end

  const char* verb() const { return write ? "writes" : "reads"; }
  double share(uint64_t calls) const { return all.calls ? double(calls) / double(all.calls) : 0; }
  // How often each byte is moved, on the mean.
  double times(size_t files) const { return end ? double(all.bytes) / (double(end) * double(files)) : 1; }
  bool overlapping(size_t files) const { return times(files) > 1.5; }
  // By several processes, not by one again and again.
  bool same_bytes(size_t files) const { return overlapping(files) && whole * 2 > processes; }
  // How often each process goes over its own part; 0: nobody can tell whose bytes they were.
  double rounds(size_t files) const { return !overlapping(files) ? 1 : by_rank && backward && !same_bytes(files) ? times(files) : 0; }
  // The size of at least half of the calls, or 0.
  uint64_t usual_size() const;
  // The distance from one access of a process to its next, where at least half of the calls keep it; else 0.
  int64_t usual_stride() const;
};

struct Use {
  std::string glob;  // the path itself where it is one file
  std::vector<const profile::FileUse*> files;
  Place place;
  Counters total;
  std::map<int64_t, Counters> ranks;  // over all its files; empty: the log has no ranks
  Side reads, writes;
  size_t processes = 0;              // that moved bytes
  size_t most_processes_a_file = 0;  // 1: no file has more than one

  const profile::FileUse& first() const { return *files.front(); }
  bool shared() const { return most_processes_a_file > 1; }
  bool mpi() const { return first().interface == profile::Interface::mpiio; }
  bool is_protected() const { return !first().scheme.empty(); }
  // Where new files of this kind are made: what a layout is set for.
  std::string directory() const;
  // Of the process that spent most, in opens, closes, stats and the like.
  double metadata_seconds = 0;
  const Side& main() const { return writes.all.seconds >= reads.all.seconds ? writes : reads; }
  double data_seconds() const { return reads.slowest.seconds + writes.slowest.seconds; }
};

struct Digest {
  const profile::Log* log = nullptr;
  std::vector<Use> uses;  // most bytes first
  double job_seconds = 0, io_seconds = 0;
  size_t ranks = 1, nodes = 1;

  // The process with most bytes, and its part of all.
  int64_t busiest_rank = -1;
  double busiest_share = 0;
};

Digest digest(const profile::Log& log, const Site& site);

}  // namespace holdfast::advice
