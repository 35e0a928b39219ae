// Logs of jobs that never ran, told in a few words.
#pragma once
#include <string>

#include "advice/advice.hpp"
#include "profile/log.hpp"

namespace holdfast::advice {

using profile::Counter;
using profile::FileUse;
using profile::Interface;
using profile::Log;

inline uint64_t ns(double seconds) { return uint64_t(seconds * 1e9); }

// What one process does to one file.
struct Deed {
  bool write = true;
  uint64_t calls = 0, bytes_each = 0;
  double seconds = 0;
  bool collective = false;
  int64_t stride = 0;      // from one access to the next; 0: one behind the other
  double misaligned = 0;   // share of the calls
  double opening = 0.001;  // seconds
  uint64_t opens = 1;
};

class JobOf {
 public:
  explicit JobOf(uint32_t ranks, double seconds = 100) {
    log.job.ranks = ranks;
    log.job.duration_ns = ns(seconds);
    log.job.nodes = {"n0"};
    log.job.program = "/home/me/app";
  }

  JobOf& nodes(int count) {
    log.job.nodes.clear();
    for (int i = 0; i < count; ++i) log.job.nodes.push_back("n" + std::to_string(i));
    return *this;
  }

  FileUse& file(const std::string& path, Interface interface) {
    for (FileUse& known : log.files)
      if (known.path == path && known.interface == interface) return known;
    log.files.emplace_back();
    log.files.back().path = path;
    log.files.back().interface = interface;
    return log.files.back();
  }

  JobOf& does(int64_t rank, const std::string& path, const Deed& deed, Interface interface = Interface::posix) {
    FileUse& use = file(path, interface);
    profile::Counters c;
    c[Counter::opens] = c[Counter::closes] = deed.opens;
    c[Counter::open_ns] = ns(deed.opening);
    c[deed.write ? Counter::bytes_written : Counter::bytes_read] = deed.calls * deed.bytes_each;
    c[deed.write ? Counter::write_ns : Counter::read_ns] = ns(deed.seconds);
    const Counter kind = deed.write ? (deed.collective ? Counter::writes_collective : Counter::writes_independent)
                                    : (deed.collective ? Counter::reads_collective : Counter::reads_independent);
    c[kind] = deed.calls;
    const uint64_t next = deed.calls ? deed.calls - 1 : 0;
    const Counter place = deed.write ? (deed.stride ? Counter::writes_forward : Counter::writes_consecutive)
                                     : (deed.stride ? Counter::reads_forward : Counter::reads_consecutive);
    c[place] = next;
    c[deed.write ? Counter::writes_misaligned : Counter::reads_misaligned] = uint64_t(double(deed.calls) * deed.misaligned);
    use.total.merge(c);
    use.ranks.push_back({rank, c});
    count(deed.write ? use.write_sizes : use.read_sizes, int64_t(deed.bytes_each), deed.calls);
    if (deed.stride) count(deed.write ? use.write_strides : use.read_strides, deed.stride, next);
    return *this;
  }

  // Ranks 0 to ranks - 1 all do it.
  JobOf& all_do(const std::string& path, const Deed& deed, Interface interface = Interface::posix) {
    for (uint32_t rank = 0; rank < log.job.ranks; ++rank) does(rank, path, deed, interface);
    return *this;
  }

  Log log;

 private:
  static void count(std::vector<profile::CommonValue>& values, int64_t value, uint64_t times) {
    for (profile::CommonValue& v : values)
      if (v.value == value) return void(v.count += times);
    values.push_back({value, times});
  }
};

inline const Advice* named(const Report& report, const std::string& name) {
  for (const Advice& advice : report.advice)
    if (advice.name == name) return &advice;
  return nullptr;
}

}  // namespace holdfast::advice
