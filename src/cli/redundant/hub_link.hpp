// The hub as `holdfast run` holds it: a process that ends with this object, and ends all teams then.
#pragma once
#include <functional>
#include <optional>
#include <string>

#include "base/raw_syscalls.hpp"
#include "base/status.hpp"
#include "redundant/frame.hpp"
#include "redundant/orders.hpp"

namespace holdfast::cli {

class HubLink {
 public:
  // `orders` comes back with secret and endpoints.
  Status start(redundant::TeamOrders& orders, const std::string& gathered);
  int descriptor() const { return control_.get(); }
  void tell(const redundant::Frame& frame);
  // What has come by now. False: the hub has gone.
  bool hear(const std::function<void(const redundant::Frame&)>& each);
  // What it was told last it has not taken yet.
  bool is_behind() const;
  void close() { control_.reset(); }

 private:
  raw::Fd control_;
  redundant::FrameReader reader_{1 << 26};  // the state of a job of many ranks
};

}  // namespace holdfast::cli
