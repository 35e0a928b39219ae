#include "advice/model.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

namespace holdfast::advice {

namespace {

struct Sample {
  double calls, bytes, seconds;
  double mean() const { return bytes / calls; }
};

// Sizes have to lie that far apart for two unknowns to be told apart.
constexpr double least_spread = 16;

void add_samples(const Use& use, bool write, std::vector<Sample>& into) {
  auto take = [&](const Counters& c) {
    const double ns = double(c[write ? Counter::write_ns : Counter::read_ns]);
    const uint64_t collective =
        write ? c[Counter::writes_collective] + c[Counter::writes_ordered] : c[Counter::reads_collective] + c[Counter::reads_ordered];
    const double bytes = double(c[write ? Counter::bytes_written : Counter::bytes_read]), calls = double(write ? c.writes() : c.reads());
    if (calls > 0 && bytes > 0 && ns > 0 && collective == 0) into.push_back({calls, bytes, ns / 1e9});  // collectives also wait for others
  };
  for (const profile::FileUse* file : use.files)
    for (const auto& r : file->ranks) take(r.counters);
  if (use.ranks.empty()) take(use.total);
}

// Least squares of (latency x calls + slowness x bytes) / seconds against 1.
void fit(const std::vector<Sample>& samples, double& latency, double& bandwidth) {
  double cc = 0, cb = 0, bb = 0, c1 = 0, b1 = 0;
  double least = HUGE_VAL, most = 0;
  for (const Sample& s : samples) {
    const double c = s.calls / s.seconds, b = s.bytes / s.seconds;
    cc += c * c, cb += c * b, bb += b * b, c1 += c, b1 += b;
    least = std::min(least, s.mean()), most = std::max(most, s.mean());
  }
  const double determinant = cc * bb - cb * cb;
  if (most < least * least_spread || determinant <= 1e-9 * cc * bb) return;
  const double per_call = (c1 * bb - b1 * cb) / determinant, per_byte = (cc * b1 - cb * c1) / determinant;
  if (per_call <= 0 || per_byte <= 0) return;
  latency = per_call, bandwidth = 1 / per_byte;
}

}  // namespace

std::string Model::kind_of(const Use& use, bool write) {
  return use.place.file_system + (use.is_protected() ? "/protected" : "/plain") + (write ? "/write" : "/read");
}

Model::Model(const Digest& digest) : nodes_(digest.nodes) {
  std::map<std::string, std::vector<Sample>> samples;
  for (const Use& use : digest.uses)
    for (const bool write : {false, true}) add_samples(use, write, samples[kind_of(use, write)]);
  for (const auto& [kind, of_kind] : samples) {
    Fitted& fitted = fitted_[kind];
    fit(of_kind, fitted.latency, fitted.bandwidth);
  }
}

Cost Model::cost(const Use& use, const Side& side) const {
  Cost cost;
  const Load& slowest = side.slowest;
  if (slowest.calls == 0) return cost;
  const auto found = fitted_.find(kind_of(use, side.write));
  cost.bandwidth = found == fitted_.end() ? 0 : found->second.bandwidth;
  if (cost.bandwidth == 0) {
    cost.assumed = true;
    cost.bandwidth = assumed_local_bandwidth;
    if (!use.place.local()) {  // processes share what the devices, or else the nodes, can take
      const double streams = double(use.place.stripe_count ? use.place.stripe_count : nodes_);
      cost.bandwidth = assumed_shared_bandwidth * std::min(1.0, streams / double(std::max<size_t>(1, side.processes)));
    }
  }
  if (slowest.seconds > 0 && double(slowest.bytes) / slowest.seconds > cost.bandwidth)
    cost.bandwidth = double(slowest.bytes) / slowest.seconds, cost.assumed = false;
  cost.latency = std::max(0.0, slowest.seconds - double(slowest.bytes) / cost.bandwidth) / double(slowest.calls);
  return cost;
}

}  // namespace holdfast::advice
