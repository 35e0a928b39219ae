#include "file/coordinated/protocol.hpp"

#include <sys/stat.h>
#include <sys/vfs.h>

#include <algorithm>
#include <array>
#include <bit>

#include <fmt/format.h>

#include "base/raw_syscalls.hpp"
#include "coding/checksum.hpp"
#include "file/coordinated/threads.hpp"
#include "target/lock_reach.hpp"

namespace holdfast::file {

namespace {

constexpr std::array read_names{"none", "simple", "extended-simple", "read-and-distribute", "chained", "chunked-and-chained", "distributed-chunked"};
constexpr std::array write_names{"simple", "distributed", "distributed-separate"};

template <class Names>
std::optional<size_t> place_in(const Names& names, std::string_view name) {
  const auto found = std::find(names.begin(), names.end(), name);
  return found == names.end() ? std::nullopt : std::optional(size_t(found - names.begin()));
}

}  // namespace

const char* name_of(ReadProtocol protocol) { return read_names[size_t(protocol)]; }
const char* name_of(WriteProtocol protocol) { return write_names[size_t(protocol)]; }

std::optional<ReadProtocol> read_protocol_named(std::string_view name) {
  const auto place = place_in(read_names, name);
  return place ? std::optional(ReadProtocol(*place)) : std::nullopt;
}

std::optional<WriteProtocol> write_protocol_named(std::string_view name) {
  const auto place = place_in(write_names, name);
  return place ? std::optional(WriteProtocol(*place)) : std::nullopt;
}

std::string line_of(const std::string& file, const Protocols& protocols) {
  const char *read = name_of(protocols.read), *write = name_of(protocols.write);
  return fmt::format("{}: read {}{}, write {}{}", file, read, protocols.reads ? " or simple, as measured" : "", write,
                     protocols.writes ? " or simple, as measured" : "");
}

namespace {

// Where a node sees at once what others have written.
bool nodes_see_alike(int descriptor) {
  struct statfs found {};
  return raw::fstatfs(descriptor, &found) == 0 && !target::caches_by_node(uint64_t(found.f_type));
}

// `auto`, where teams have nodes of their own: by measure.
void choose_by_measure(const ReplicaSettings& asked, const Use& use, bool alike, Protocols& chosen) {
  struct stat state {};
  if (raw::fstat(use.descriptor, &state) != 0 || !S_ISREG(state.st_mode)) return;
  Paces& paces = Paces::of(state.st_dev);
  if (!read_protocol_named(asked.read_protocol)) {
    chosen.read = ReadProtocol::distributed_chunked;
    chosen.reads = &paces;
  }
  if (!write_protocol_named(asked.write_protocol) && alike) {
    chosen.write = WriteProtocol::distributed;
    chosen.writes = &paces;
  }
}

}  // namespace

// On one node all read from the kernel's memory, and one writes what all could.
Protocols choose(const ReplicaSettings& asked, redundant::Replica& replica, const Use& use) {
  Protocols chosen{read_protocol_named(asked.read_protocol).value_or(ReadProtocol::simple),
                   write_protocol_named(asked.write_protocol).value_or(WriteProtocol::simple)};
  if (struct stat state{}; use.descriptor >= 0 && raw::fstat(use.descriptor, &state) == 0) chosen.file = state.st_ino;
  if (!use.led && use.descriptor >= 0 && !replica.shares_node() && redundant::Sharing::of(replica)) {
    const bool alike = nodes_see_alike(use.descriptor);
    if (!replica.rehearses()) choose_by_measure(asked, use, alike, chosen);
    // Each node has its own memory of what is there, and may not see what another one has written a moment ago.
    const bool read_by_one = !alike && use.writes && chosen.read == ReadProtocol::distributed_chunked;
    if (read_by_one) chosen.read = ReadProtocol::chunked_and_chained;
  }
  if (replica.rehearses()) chosen.write = WriteProtocol::simple;
  if (!use.led) return chosen;
  chosen.write = WriteProtocol::simple;
  switch (chosen.read) {
    case ReadProtocol::chained:
    case ReadProtocol::chunked_and_chained: break;
    case ReadProtocol::distributed_chunked: chosen.read = ReadProtocol::chunked_and_chained; break;
    default: chosen.read = ReadProtocol::read_and_distribute;
  }
  return chosen;
}

Outcome Common::meet(const redundant::Claim& claim, const char* call, const std::function<Outcome(const redundant::Turn&)>& act) const {
  return Meeting::meet(claim, call, [&](const redundant::Turn& turn) {
    const Status ready = take_over();
    return ready.ok() ? act(turn) : Outcome{ready};
  });
}

Outcome Meeting::meet(const redundant::Claim& claim, const char* call, const std::function<Outcome(const redundant::Turn&)>& act) const {
  note_thread_on(name);
  const auto what = [&] { return fmt::format("{}, {} of {} bytes at {}{}", name, call, claim.bytes, claim.at, said_of_threads_on(name)); };
  bool acted = false;
  Outcome outcome = unpack(replica.meet(subject, claim, what, [&](const redundant::Turn& turn) {
    acted = true;
    return pack(act(turn));
  }));
  outcome.is_own = acted;
  return outcome;
}

uint64_t sum_of(std::span<const Extent> extents, ByteView data) {
  return coding::plain_checksum(data, coding::plain_checksum(std::as_bytes(extents)));
}

std::vector<Extent> part_of(std::span<const Extent> extents, uint64_t begin, uint64_t end) {
  std::vector<Extent> part;
  uint64_t at = 0;
  for (const Extent& extent : extents) {
    const uint64_t from = std::max(begin, at), to = std::min(end, at + extent.length);
    if (from < to) part.push_back({extent.offset + (from - at), to - from});
    at += extent.length;
  }
  return part;
}

Share share_of(uint64_t bytes, uint64_t writers, int team) {
  constexpr uint64_t page = 4096;
  if (!(writers >> team & 1)) return {};
  const uint64_t place = uint64_t(std::popcount(writers & ((uint64_t(1) << team) - 1)));
  const uint64_t chunk = round_up(divide_up(bytes, uint64_t(std::popcount(writers))), page);
  const uint64_t begin = std::min(place * chunk, bytes);
  return {begin, std::min(begin + chunk, bytes)};
}

Outcome read_by(ReadProtocol protocol, const Common& file, std::span<const Extent> extents, ByteSpan into) {
  const bool is_small = into.size() < least_shared;
  switch (protocol) {
    case ReadProtocol::none: break;
    case ReadProtocol::simple: return read_simply(file, extents, into);
    case ReadProtocol::extended_simple: return read_extended_simply(file, extents, into);
    case ReadProtocol::read_and_distribute: return is_small ? read_by_the_leader(file, extents, into) : read_and_distribute(file, extents, into);
    case ReadProtocol::chained: return is_small ? read_by_the_leader(file, extents, into) : read_chained(file, extents, into);
    case ReadProtocol::chunked_and_chained: return is_small ? read_by_the_leader(file, extents, into) : read_chunked_and_chained(file, extents, into);
    case ReadProtocol::distributed_chunked: return is_small ? read_simply(file, extents, into) : read_distributed_chunks(file, extents, into);
  }
  const Result<uint64_t> got = file.below.read(extents, into);  // None: each for itself
  return {got.status(), got ? *got : 0, {}, true};
}

}  // namespace holdfast::file
