// What has come of a call, for all replicas: success, a short count, or one failure.
#pragma once
#include <cstdint>

#include "base/bytes.hpp"
#include "base/status.hpp"

namespace holdfast::file {

struct Outcome {
  Status status = {};
  uint64_t value = 0;
  Bytes payload = {};
  bool is_own = false;  // this replica has carried it out; is not sent
};

Bytes pack(const Outcome& outcome);
Outcome unpack(ByteView bytes);

}  // namespace holdfast::file
