// How replicas share the work on bytes that are read or written. What a call comes to is always the same in all of them.
#pragma once
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/file_layer.hpp"
#include "base/settings/replicas.hpp"
#include "file/coordinated/kept_writes.hpp"
#include "file/coordinated/outcome.hpp"
#include "file/coordinated/paces.hpp"
#include "redundant/twins/sharing.hpp"

namespace holdfast::file {

// With the names of the publication on file I/O under redundancy.
enum class ReadProtocol : uint8_t { none, simple, extended_simple, read_and_distribute, chained, chunked_and_chained, distributed_chunked };
enum class WriteProtocol : uint8_t { simple, distributed, distributed_separate };

const char* name_of(ReadProtocol protocol);
const char* name_of(WriteProtocol protocol);
std::optional<ReadProtocol> read_protocol_named(std::string_view name);
std::optional<WriteProtocol> write_protocol_named(std::string_view name);

struct Protocols {
  ReadProtocol read = ReadProtocol::simple;
  WriteProtocol write = WriteProtocol::simple;
  // Where it is set and true: each call is one call below, by the leader.
  std::shared_ptr<const std::atomic<bool>> atomic = nullptr;
  uint64_t most_kept = KeptWrites::most_bytes;
  // `auto`: where these are set, `read` or `write` or the simple protocol, whichever they say is faster.
  Paces *reads = nullptr, *writes = nullptr;
  // A number for the file that is the same in all ranks which append to it; 0: one by its name.
  uint64_t file = 0;
  bool shares_out() const { return !atomic || !*atomic; }
};
// For `holdfast status --job`.
std::string line_of(const std::string& file, const Protocols& protocols);
// What can be had of what is asked for.
struct Use {
  bool led = false;     // only the leader has the file open
  int descriptor = -1;  // else where it is open
  bool writes = false;
};
Protocols choose(const ReplicaSettings& asked, redundant::Replica& replica, const Use& use);

// Where the replicas meet for their calls on one file.
struct Meeting {
  redundant::Replica& replica;
  uint64_t subject;
  const std::string& name;  // for messages

  Outcome meet(const redundant::Claim& claim, const char* call, const std::function<Outcome(const redundant::Turn&)>& act) const;
};

// What all replicas know alike of the last read, and go by in the next one.
struct Reading {
  uint64_t readers = 0;      // the teams that have ended it, as bits; what each of them hears of losses is not the same
  bool shared = true;        // where that is chosen by measure: whether the next one is
  bool reads_itself = true;  // each replica can read the file below
  // In the leader.
  Paces* paces = nullptr;
  uint64_t began_ns = 0;  // the present one
};

// What a protocol is given: the meeting, and the file below.
struct Common : Meeting {
  FileLayer& below;
  // In the leader, before it does anything: what a lost one had left undone.
  const std::function<Status()>& take_over;
  Reading& reading;
  // In the leader: taking over has changed the file since this call began.
  const bool& has_repeated;

  Outcome meet(const redundant::Claim& claim, const char* call, const std::function<Outcome(const redundant::Turn&)>& act) const;
};

uint64_t sum_of(std::span<const Extent> extents, ByteView data = {});
// The bytes from `begin` to `end` of a request.
std::vector<Extent> part_of(std::span<const Extent> extents, uint64_t begin, uint64_t end);
// What a team writes of so many bytes that `writers` (as bits) share; nothing where it is none of them.
struct Share {
  uint64_t begin = 0, end = 0;
};
Share share_of(uint64_t bytes, uint64_t writers, int team);
// What is smaller is not worth being shared out.
inline constexpr uint64_t least_shared = 64 << 10;

// read/ -- each gets bytes in its way, and all end alike. Where they have seen different bytes, counts or failures, or nothing, the leader's are
// everybody's.
struct Had {
  bool has = false;
  Status status = {};
  uint64_t count = 0;
  static Had of(const Result<uint64_t>& got) { return {true, got.status(), got ? *got : 0}; }
};
Outcome end_read(const Common& file, std::span<const Extent> extents, ByteSpan into, Had had);

Outcome read_simply(const Common& file, std::span<const Extent> extents, ByteSpan into);
Outcome read_extended_simply(const Common& file, std::span<const Extent> extents, ByteSpan into);
Outcome read_and_distribute(const Common& file, std::span<const Extent> extents, ByteSpan into);
Outcome read_by_the_leader(const Common& file, std::span<const Extent> extents, ByteSpan into);
Outcome read_chained(const Common& file, std::span<const Extent> extents, ByteSpan into);
Outcome read_chunked_and_chained(const Common& file, std::span<const Extent> extents, ByteSpan into);
Outcome read_distributed_chunks(const Common& file, std::span<const Extent> extents, ByteSpan into);
Outcome read_by(ReadProtocol protocol, const Common& file, std::span<const Extent> extents, ByteSpan into);
// write/
Outcome write_simply(const Common& file, std::span<const Extent> extents, ByteView data);
// Their value: whose chunks there are, as bits; none where one has written all. `paces`: the leader writes alone where that is faster.
Outcome write_distributed(const Common& file, std::span<const Extent> extents, ByteView data, Paces* paces = nullptr);
// write/separate.hpp has a state: what is not in the file yet.

}  // namespace holdfast::file
