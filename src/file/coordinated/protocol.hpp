// How replicas share the work on bytes that are read or written. What a call comes to is always the same in all of them.
#pragma once
#include <cstdint>
#include <string>

#include "base/file_layer.hpp"
#include "file/coordinated/outcome.hpp"
#include "redundant/twins/replica.hpp"

namespace holdfast::file {

enum class ReadProtocol : uint8_t { simple, distribute };

// What a protocol is given: the file of this replica, and the meeting.
struct Common {
  FileLayer& below;
  redundant::Replica& replica;
  uint64_t subject;
  const std::string& name;
  // In the leader, before it does anything: what a lost one had left undone.
  const std::function<Status()>& take_over;

  Outcome meet(const redundant::Claim& claim, const char* call, const std::function<Outcome(const redundant::Turn&)>& act) const;
};

uint64_t sum_of(std::span<const Extent> extents, ByteView data = {});

// read/
Outcome read_simply(const Common& file, std::span<const Extent> extents, ByteSpan into);
Outcome read_and_distribute(const Common& file, std::span<const Extent> extents, ByteSpan into);
// write/
Outcome write_simply(const Common& file, std::span<const Extent> extents, ByteView data);

}  // namespace holdfast::file
