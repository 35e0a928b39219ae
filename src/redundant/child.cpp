#include "redundant/child.hpp"

#include "redundant/frame.hpp"
#include "transport/link.hpp"

namespace holdfast::redundant {

Status tell_of_child(const TeamOrders& orders, ChildDoes what, const std::string& line, uint64_t patience_ms) {
  transport::Link hub;
  HF_TRY(hub.connect(orders.hub, agreement(orders.secret), patience_ms));
  Frame frame;
  frame.word = Word::child, frame.team = uint16_t(orders.team), frame.number = uint64_t(what);
  frame.payload = bytes_of(line);
  Bytes asked = encode(frame);
  frame.payload.clear();
  Bytes heard(encode(frame).size());
  const iovec to{asked.data(), asked.size()}, from{heard.data(), heard.size()};
  HF_TRY(hub.send({&to, 1}));
  return hub.receive({&from, 1});
}

}  // namespace holdfast::redundant
