#include <algorithm>

#include "base/settings/record.hpp"
#include "base/settings/text.hpp"

namespace holdfast {

namespace {

bool take_accept_epoch(Settings& s, const Given& given) {
  uint64_t epoch = 0;
  if (!text::parse_integer(given.value, epoch)) return false;
  s.accept_epoch = epoch;
  return true;
}

std::string text_of_accept_epoch(const Settings& s) { return std::to_string(s.accept_epoch); }

bool take_cb_nodes(Settings& s, const Given& given) {
  int nodes = 0;
  if (!text::parse_integer(given.value, nodes) || nodes < -1) return false;
  s.cb_nodes = std::max(nodes, 0);
  return true;
}

std::string text_of_cb_nodes(const Settings& s) { return std::to_string(s.cb_nodes); }

constexpr Record records[] = {
    {.key = "close", .kind = Either{&EngineSettings::fast_close, "durable", "fast"}, .hint = Hint::ours},
    {.key = "cb_nodes", .kind = Special{take_cb_nodes, text_of_cb_nodes, "a number of processes, or 0 for the default"}, .hint = Hint::layout},
    {.key = "accept_epoch",
     .kind = Special{take_accept_epoch, text_of_accept_epoch, "an epoch's number, as the refused open named it"},
     .hint = Hint::ours},
    {.key = "buffer_bytes", .kind = Size{&EngineSettings::buffer_bytes, 1ull << 20, 1ull << 40}, .hint = Hint::ours},
};

}  // namespace

constinit const Area engine_area{"Writing, closing and reading", records};

}  // namespace holdfast
