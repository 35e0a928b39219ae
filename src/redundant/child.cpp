#include "redundant/child.hpp"

#include "base/config.hpp"
#include "base/rank_variables.hpp"
#include "redundant/frame.hpp"
#include "transport/link.hpp"

namespace holdfast::redundant {

namespace {

// With a blank on both sides of each.
std::string words_of_launchers(const std::string& known) {
  std::string words = " ";
  for (const char* name : rank_variables_of_launchers)
    if (const std::string value = environment_variable(name), word = std::string(name) + "=" + value + " ";
        !value.empty() && known.find(" " + word) == known.npos)
      words += word;
  return words;
}

}  // namespace

std::string ranks_of_launchers() { return words_of_launchers(""); }
bool is_rank_since() { return words_of_launchers(environment_variable(ranks_before_variable)) != " "; }

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
