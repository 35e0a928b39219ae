// How what a replica has started asks the hub before it appends to a file (membership/child_appends).
#pragma once
#include <string>

#include "redundant/frame.hpp"
#include "redundant/membership/child_appends.hpp"
#include "redundant/orders.hpp"
#include "transport/link.hpp"

namespace holdfast::redundant {

// What an asking process says, in a frame's `number`.
enum class OfChildAppend : uint64_t { asks, wrote };

class ChildLink {
 public:
  ChildLink(const TeamOrders& orders, int rank, std::string program) : orders_(orders), rank_(rank), program_(std::move(program)) {}
  // Kind::io and the like where there is no hub any more. That is found out once.
  Result<AppendAnswer> asks(const std::string& path, uint64_t end, uint64_t length, uint64_t sum);
  Result<AppendAnswer> wrote(uint64_t place, int64_t taken);

 private:
  Status connect();
  Result<AppendAnswer> say(OfChildAppend what, uint64_t subject, ByteView payload);

  const TeamOrders orders_;
  const int rank_;
  const std::string program_;
  transport::Link hub_;
  Status unreached_;
};

// In the hub. False: it makes no sense.
bool parse_asked(const Frame& frame, ChildAppend& append);
Frame frame_of(const AppendAnswer& answer);

}  // namespace holdfast::redundant
