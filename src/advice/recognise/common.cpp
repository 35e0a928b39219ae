#include "advice/recognise/common.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "base/shell_word.hpp"

namespace holdfast::advice {

Advice about(const Use& use, std::string name) {
  Advice advice;
  advice.name = std::move(name);
  advice.files.push_back(use.glob);
  advice.file_count = use.files.size();
  return advice;
}

bool is_standard(const std::string& path) {
  return path.ends_with("<STDOUT>") || path.ends_with("<STDERR>") || path == "/dev/stdout" || path == "/dev/stderr";
}

bool is_output(const Use& use, const Digest& digest) {
  constexpr double a_line = 200;
  const std::string& path = use.first().path;
  const std::string name = path.substr(path.rfind('/') + 1);
  const bool by_name = name.ends_with(".log") || name.ends_with(".out") || name.ends_with(".err") || name.ends_with(".txt");
  if (use.writes.all.calls == 0 || use.writes.all.mean_bytes() > a_line) return false;
  return is_standard(path) || (by_name && !use.mpi() && use.reads.all.calls == 0 && use.writes.processes * 2 >= digest.ranks && digest.ranks > 1);
}

namespace {

// The conversion buffer less the two length marks, of 4 or 8 bytes.
bool is_in_short_records(const Side& writes) {
  constexpr uint64_t many = 1000, mark = 4, most_below = 16;
  const uint64_t size = writes.usual_size();
  if (writes.all.calls < many || size < 448 || size >= 65536) return false;
  const uint64_t below = power_above(size) - size;
  return below > 0 && below <= most_below && below % mark == 0 && writes.sizes[0].count * 10 >= writes.all.calls * 9 &&
         writes.consecutive * 10 >= writes.all.calls * 9;
}

}  // namespace

uint64_t record_marks(const Side& writes) {
  uint64_t marks = 0;
  for (const profile::CommonValue& size : writes.sizes)
    if (size.value == 4 || size.value == 8) marks = std::max(marks, size.count);
  return marks;
}

bool is_in_pieces_of_records(const Side& writes) {
  constexpr uint64_t many = 64, pieces_a_record = 4;  // of smaller records the runtime's buffer would hold several, swapped or not
  const uint64_t size = writes.usual_size(), marks = record_marks(writes);
  if (writes.all.calls < many || size < 4096 || size > 1 << 20 || !std::has_single_bit(size)) return false;
  return marks > 0 && writes.backward > 0 && writes.backward <= marks + 1 && writes.sizes[0].count >= pieces_a_record * writes.backward;
}

bool is_byte_swapped(const Use& use) {
  if (use.most_processes_a_file != 1 || use.mpi()) return false;
  return is_in_short_records(use.writes) || is_in_pieces_of_records(use.writes);
}

std::string Buffers::text() const { return fmt::format("{}x{}MiB", number, bytes >> 20); }

Buffers buffers_for(const Digest& digest, const Side& side, const Cost& cost) {
  constexpr uint64_t least = 1ull << 20, most = 64ull << 20, most_a_node = 4ull << 30;
  constexpr double latency_share = 1.0 / 400;  // of a buffer's transfer
  Buffers buffers;
  buffers.bytes = power_above(uint64_t(std::min(cost.latency * cost.bandwidth / latency_share, double(most))));
  const uint64_t moved = side.slowest.bytes / buffers.number;
  buffers.bytes = std::clamp(std::min(buffers.bytes, power_above(moved)), least, most);
  const uint64_t processes_a_node = std::max<uint64_t>(1, (side.processes + digest.nodes - 1) / digest.nodes);
  while (buffers.bytes > least && buffers.bytes * buffers.number * processes_a_node > most_a_node) buffers.bytes /= 2;
  return buffers;
}

void add_buffers(Advice& advice, const Use& use, const Buffers& buffers) {
  if (!use.glob.starts_with('/')) return;  // streams, and files that were counted together: no path to go by
  advice.settings.push_back({"buffer", {buffers.text()}, false});
  advice.settings.push_back({"path", {use.files.size() > 1 ? use.glob : glob_of(use.glob)}, true});
}

void expect_of_buffers(Advice& advice, const Use& use, const Side& side, const Cost& cost, const Buffers& buffers) {
  const Load& slow = side.slowest;
  const double large = double(slow.bytes) / double(buffers.bytes), memory = in_memory(double(slow.calls), double(slow.bytes));
  advice.seconds_now = slow.seconds;
  advice.seconds_after = cost.seconds(large, double(slow.bytes)) + memory;
  advice.expectation = fmt::format("{}; {} {}, and {} in memory", reckoning(slow, cost), use.shared() ? "gathered" : "through the buffers",
                                   plural_text(uint64_t(large + 1), "call"), seconds_text(memory));
  if (!use.shared()) add_buffers(advice, use, buffers);
}

std::string reckoning(const Load& load, const Cost& cost) {
  return fmt::format("{} = {} x {} + {} at {}{}", seconds_text(load.seconds), plural_text(load.calls, "call"), seconds_text(cost.latency),
                     bytes_text(double(load.bytes)), rate_text(cost.bandwidth),
                     cost.assumed ? " (assumed: the log has no accesses of other sizes to tell it from)" : "");
}

namespace {

std::string unit_text(uint64_t bytes) {
  if (bytes % (1ull << 20) == 0) return fmt::format("{}m", bytes >> 20);
  return fmt::format("{}k", bytes >> 10);
}

}  // namespace

void add_layout(Advice& advice, const Use& use, uint32_t count, uint64_t stripe_bytes) {
  if (!use.glob.starts_with('/')) return;
  constexpr uint64_t lustre_grain = 64 << 10;  // what Lustre's stripe sizes are multiples of
  stripe_bytes = std::max<uint64_t>(1, stripe_bytes / lustre_grain) * lustre_grain;
  const std::string directory = shell_word(use.directory());
  if (use.place.lustre())
    advice.commands.push_back(fmt::format("lfs setstripe -c {} -S {} {}", count ? std::to_string(count) : "-1", unit_text(stripe_bytes), directory));
  if (use.place.ceph())
    advice.commands.push_back(fmt::format("setfattr -n ceph.dir.layout -v \"stripe_unit={0} stripe_count={1} object_size={0}\" {2}", stripe_bytes,
                                          count ? count : std::max(1u, use.place.reachable_devices()), directory));
  if (!use.is_protected()) return;  // only of protected files is the layout Holdfast's
  advice.settings.push_back({"striping_unit", {std::to_string(stripe_bytes)}, false});
  if (count) advice.settings.push_back({"striping_factor", {std::to_string(count)}, false});
}

double pieces(double access_bytes, uint64_t unit_bytes, double misaligned_share) {
  if (unit_bytes == 0) return 1;
  return std::max(1.0, std::ceil(access_bytes / double(unit_bytes))) + misaligned_share;
}

}  // namespace holdfast::advice
