#include "profile/reduce.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <set>
#include <tuple>

#include "profile/piece_layout.hpp"
#include "profile/record.hpp"

namespace holdfast::profile {

namespace {

std::string text_of(const char* from, size_t room) { return std::string(from, strnlen(from, room)); }

uint64_t value_of(const Value& value) { return value.load(std::memory_order_relaxed); }

bool makes_sense(const PieceHeader& h) {
  return std::memcmp(h.magic, piece_magic, sizeof piece_magic) == 0 && h.version == piece_version && h.header_bytes == sizeof(PieceHeader) &&
         h.record_bytes == record_bytes && h.slots == record_slots && h.steps == time_steps && h.counters == counter_count &&
         (h.trace == 0 || h.trace == trace_slots) && value_of(h.last_ticks) >= h.start_ticks && value_of(h.last_ns) >= h.start_ns;
}

class PieceReader {
 public:
  explicit PieceReader(const LeftPiece& piece) : piece_(piece), header_(*piece.header) {
    const uint64_t elapsed = value_of(header_.last_ticks) - header_.start_ticks;
    if (elapsed) ns_per_tick_ = double(value_of(header_.last_ns) - header_.start_ns) / double(elapsed);
    else if (std::isfinite(header_.ns_per_tick) && header_.ns_per_tick > 0) ns_per_tick_ = header_.ns_per_tick;
  }

  const LeftPiece& piece() const { return piece_; }
  const PieceHeader& header() const { return header_; }
  int64_t rank() const { return std::max(header_.rank.load(), -1); }
  uint64_t ns(uint64_t ticks) const { return uint64_t(std::min(double(ticks) * ns_per_tick_, 9e18)); }

  // The latest moment that it knows of, in ns since its start.
  uint64_t last_ns() const {
    uint64_t last = value_of(header_.last_ns) - header_.start_ns;
    for (const auto& [slot, record] : piece_.records)
      for (Counter c : {Counter::last_close, Counter::last_read, Counter::last_write}) last = std::max(last, ns(counted(*record, c)));
    return last;
  }

 private:
  const LeftPiece& piece_;
  const PieceHeader& header_;
  double ns_per_tick_ = 1;
};

constexpr Counter in_ticks[] = {Counter::read_ns,        Counter::write_ns,        Counter::open_ns,         Counter::close_ns,
                                Counter::metadata_ns,    Counter::sync_ns,         Counter::slowest_read_ns, Counter::slowest_write_ns,
                                Counter::system_read_ns, Counter::system_write_ns, Counter::system_sync_ns,  Counter::seek_ns,
                                Counter::stat_ns,        Counter::view_ns,         Counter::resize_ns,       Counter::rename_ns,
                                Counter::unlink_ns,      Counter::mmap_ns,         Counter::other_ns};
constexpr Counter moments[] = {Counter::first_open, Counter::last_close,  Counter::first_read,
                               Counter::last_read,  Counter::first_write, Counter::last_write};

Counters counters_of(const PieceReader& piece, const Record& record, uint64_t piece_start_ns) {
  Counters out;
  for (size_t i = 0; i < counter_count; ++i) out.at(i) = counted(record, Counter(i));
  for (Counter c : in_ticks) out[c] = piece.ns(out[c]);
  for (Counter c : moments)
    if (out[c]) out[c] = piece.ns(out[c]) + piece_start_ns;
  const Meter& m = record.meter;
  const std::pair<Counter, const Value*> metered[] = {{Counter::system_reads, &m.read_calls},
                                                      {Counter::system_read_bytes, &m.read_bytes},
                                                      {Counter::system_read_ns, &m.read_ns},
                                                      {Counter::system_writes, &m.write_calls},
                                                      {Counter::system_write_bytes, &m.write_bytes},
                                                      {Counter::system_write_ns, &m.write_ns},
                                                      {Counter::system_syncs, &m.sync_calls},
                                                      {Counter::system_sync_ns, &m.sync_ns},
                                                      {Counter::system_others, &m.other_calls},
                                                      {Counter::layer_ns, &m.layer_ns},
                                                      {Counter::read_modify_writes, &m.read_modify_writes},
                                                      {Counter::buffers_used, &m.buffers_used},
                                                      {Counter::buffer_bytes, &m.buffer_bytes},
                                                      {Counter::prefetches, &m.prefetches},
                                                      {Counter::preflushes, &m.preflushes}};
  for (const auto& [counter, value] : metered) out[counter] += value_of(*value);  // to what calls that were the system's themselves counted
  return out;
}

using CommonCounts = std::map<int64_t, uint64_t>;

void add_common(CommonCounts& into, const std::array<Common, common_values>& kept) {
  for (const Common& one : kept)
    if (const uint64_t count = value_of(one.count)) into[int64_t(value_of(one.value))] += count;
}

constexpr size_t common_in_log = 8;

std::vector<CommonValue> most_common(const CommonCounts& counts) {
  std::vector<CommonValue> out;
  for (const auto& [value, count] : counts) out.push_back({value, count});
  std::stable_sort(out.begin(), out.end(), [](const CommonValue& a, const CommonValue& b) { return a.count > b.count; });
  if (out.size() > common_in_log) out.resize(common_in_log);
  return out;
}

class Reducer {
 public:
  explicit Reducer(Job job) { log_.job = std::move(job); }

  Log run(const std::vector<LeftPiece>& pieces) {
    for (const LeftPiece& left : pieces) pieces_.emplace_back(left);
    all_unknown_ = std::all_of(pieces_.begin(), pieces_.end(), [](const PieceReader& p) { return p.rank() < 0; });
    learn_the_job();
    for (const PieceReader& piece : pieces_) add_process(piece);
    add_files();
    add_time_line();
    for (const PieceReader& piece : pieces_) add_operations(piece);
    std::sort(log_.operations.begin(), log_.operations.end(), [](const Operation& a, const Operation& b) { return a.begin_ns < b.begin_ns; });
    return std::move(log_);
  }

 private:
  using Key = std::pair<uint32_t, std::string>;
  struct Gathered {
    FileUse use;
    std::map<int64_t, Counters> ranks;
    CommonCounts sizes[2], strides[2];
  };

  uint64_t start_of(const PieceReader& piece) const {
    const uint64_t at = piece.header().start_realtime_ns;
    return at > log_.job.start_ns ? at - log_.job.start_ns : 0;
  }

  void learn_the_job() {
    Job& job = log_.job;
    if (job.start_ns == 0)
      for (const PieceReader& piece : pieces_)
        job.start_ns = job.start_ns == 0 ? piece.header().start_realtime_ns : std::min(job.start_ns, piece.header().start_realtime_ns);
    std::set<std::string> nodes;
    std::map<std::string, uint64_t> programs;
    uint64_t last = 0;
    int64_t ranks = job.ranks;
    for (const PieceReader& piece : pieces_) {
      const PieceHeader& h = piece.header();
      nodes.insert(text_of(h.node, sizeof h.node));
      programs[text_of(h.program, sizeof h.program)] += 1;
      last = std::max(last, start_of(piece) + piece.last_ns());
      ranks = std::max<int64_t>(ranks, h.ranks.load());
      if (!h.ended.load()) job.complete = false;
      if (job.mpi.empty()) job.mpi = text_of(h.mpi, sizeof h.mpi);
      if (job.id.empty()) job.id = text_of(h.job, sizeof h.job);
    }
    job.nodes.assign(nodes.begin(), nodes.end());
    if (job.duration_ns == 0) job.duration_ns = last;
    job.ranks = uint32_t(std::max<int64_t>(ranks, 1));
    uint64_t most = 0;
    for (const auto& [program, count] : programs)
      if (count > most) most = count, job.program = program;
  }

  void add_process(const PieceReader& piece) {
    const PieceHeader& h = piece.header();
    Process p;
    p.rank = rank_of(piece);
    p.pid = h.pid;
    p.node = text_of(h.node, sizeof h.node);
    p.program = text_of(h.program, sizeof h.program);
    p.start_ns = start_of(piece);
    p.duration_ns = piece.last_ns();
    p.ended = h.ended.load() != 0;
    if (h.counts_mpi_calls) p.mpi_calls = mpi_calls_of(piece);
    log_.processes.push_back(std::move(p));
    std::sort(log_.processes.begin(), log_.processes.end(),
              [](const Process& a, const Process& b) { return std::tie(a.rank, a.start_ns) < std::tie(b.rank, b.start_ns); });
    for (const auto& [slot, record] : piece.piece().records) add_record(piece, *record);
  }

  static MpiUses mpi_calls_of(const PieceReader& piece) {
    MpiUses uses;
    for (size_t i = 0; i < mpi_calls_kinds; ++i) {
      const MpiCallsOfOneKind& one = piece.header().mpi_calls[i];
      uses[i] = {value_of(one.calls), piece.ns(value_of(one.ticks))};
    }
    return uses;
  }

  // A serial program and what it starts are rank 0.
  int64_t rank_of(const PieceReader& piece) const { return all_unknown_ ? 0 : piece.rank(); }

  void add_record(const PieceReader& piece, const Record& record) {
    Gathered& g = gathered_[{record.interface, text_of(record.path, sizeof record.path)}];
    g.use.interface = Interface(record.interface);
    if (g.use.scheme.empty()) g.use.scheme = text_of(record.scheme, sizeof record.scheme);
    for_each_name(text_of(record.pointer, sizeof record.pointer), [&](std::string_view name) {
      std::string& known = g.use.pointer;
      if (!names_one(known, name)) known += (known.empty() ? "" : std::string(name_separator)) + std::string(name);
    });
    g.use.alignment = std::max(g.use.alignment, value_of(record.alignment));
    const Counters counters = counters_of(piece, record, start_of(piece));
    g.use.total.merge(counters);
    g.ranks[rank_of(piece)].merge(counters);
    add_common(g.sizes[0], record.read_sizes);
    add_common(g.sizes[1], record.write_sizes);
    add_common(g.strides[0], record.read_strides);
    add_common(g.strides[1], record.write_strides);
  }

  void add_files() {
    for (auto& [key, g] : gathered_) {
      FileUse use = std::move(g.use);
      use.path = key.second;
      for (const auto& [rank, counters] : g.ranks) use.ranks.push_back({rank, counters});
      use.read_sizes = most_common(g.sizes[0]), use.write_sizes = most_common(g.sizes[1]);
      use.read_strides = most_common(g.strides[0]), use.write_strides = most_common(g.strides[1]);
      log_.files.push_back(std::move(use));
    }
    auto bytes = [](const FileUse& f) { return f.total[Counter::bytes_read] + f.total[Counter::bytes_written]; };
    std::stable_sort(log_.files.begin(), log_.files.end(), [&](const FileUse& a, const FileUse& b) { return bytes(a) > bytes(b); });
    for (size_t i = 0; i < log_.files.size(); ++i) index_[{uint32_t(log_.files[i].interface), log_.files[i].path}] = uint32_t(i);
  }

  // Steps of one length over the whole job: the shortest that keeps them few, and no shorter than what the pieces have.
  void add_time_line() {
    uint64_t length = 1ull << time_shift, end = std::max<uint64_t>(log_.job.duration_ns, 1);
    for (const PieceReader& piece : pieces_) end = std::max(end, start_of(piece) + piece.last_ns());
    while (end / length >= first_steps && length < (1ull << 62)) length *= 2;
    const size_t steps = size_t(end / length + 1);
    log_.time_line.step_ns = length;
    std::map<int64_t, TimeLine::Row> rows;
    for (const PieceReader& piece : pieces_) {
      TimeLine::Row& row = rows[rank_of(piece)];
      row.rank = rank_of(piece);
      row.read.resize(steps), row.written.resize(steps);
      const auto add = [&](uint32_t i, const TimeStep& bytes) {
        const Span span = span_of_step(i);
        const size_t step = std::min<size_t>(steps - 1, size_t((start_of(piece) + span.begin + span.length / 2) / length));
        row.read[step] += value_of(bytes.read), row.written[step] += value_of(bytes.written);
      };
      for (uint32_t i = 0; i < time_steps; ++i)
        if (value_of(piece.piece().times[i].read) || value_of(piece.piece().times[i].written)) add(i, piece.piece().times[i]);
      for (const auto& [slot, record] : piece.piece().records) add(std::min(record->step.load(), time_steps - 1), record->in_step);
    }
    for (auto& [rank, row] : rows) log_.time_line.rows.push_back(std::move(row));
  }

  void add_operations(const PieceReader& piece) {
    const uint64_t made = value_of(piece.header().traced);
    if (piece.piece().trace.empty()) return;
    if (made > trace_slots) log_.operations_lost += made - trace_slots;
    for (size_t i = 0; i < std::min<uint64_t>(made, trace_slots); ++i) {
      const Traced& t = piece.piece().trace[i];
      const auto record = piece.piece().records.find(t.record);
      if (value_of(t.number) == 0 || t.counter >= counter_count || record == piece.piece().records.end()) continue;
      const auto file = index_.find({record->second->interface, text_of(record->second->path, sizeof record->second->path)});
      if (file == index_.end()) continue;
      log_.operations.push_back(
          {rank_of(piece), file->second, Counter(t.counter), start_of(piece) + piece.ns(t.begin), piece.ns(t.duration), t.offset, t.bytes});
    }
  }

  bool all_unknown_ = false;
  Log log_;
  std::vector<PieceReader> pieces_;
  std::map<Key, Gathered> gathered_;
  std::map<Key, uint32_t> index_;
};

}  // namespace

namespace {
template <class T>
ByteSpan bytes_of(T* first, size_t count) {
  return ByteSpan(reinterpret_cast<std::byte*>(first), count * sizeof(T));
}
}  // namespace

std::optional<LeftPiece> read_piece(const ReadAt& read_at) {
  LeftPiece piece;
  piece.header = std::make_unique<PieceHeader>();
  if (!read_at(0, bytes_of(piece.header.get(), 1)) || !makes_sense(*piece.header)) return std::nullopt;
  const PieceOffsets at = piece_offsets(piece.header->trace);
  std::vector<Value> keys(record_slots);
  piece.times = std::vector<TimeStep>(time_steps);
  piece.trace = std::vector<Traced>(piece.header->trace);
  if (!read_at(at.keys, bytes_of(keys.data(), keys.size())) || !read_at(at.times, bytes_of(piece.times.data(), piece.times.size())) ||
      !read_at(at.trace, bytes_of(piece.trace.data(), piece.trace.size())))
    return std::nullopt;
  for (uint32_t slot = 0; slot < record_slots; ++slot) {
    if (value_of(keys[slot]) == 0) continue;
    auto record = std::make_unique<Record>();
    if (!read_at(at.records + uint64_t(slot) * record_bytes, bytes_of(record.get(), 1))) return std::nullopt;
    if (record->ready.load() && record->interface < interface_count) piece.records[slot] = std::move(record);
  }
  return piece;
}

Log reduce(Job job, const std::vector<LeftPiece>& pieces) { return Reducer(std::move(job)).run(pieces); }

std::string encode_job(const Job& job) {
  Log log;
  log.job = job;
  return to_json_text(log);
}

Result<Job> decode_job(std::string_view text) {
  auto log = from_json_text(text);
  if (!log) return log.status();
  return std::move(log->job);
}

}  // namespace holdfast::profile
