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

std::string text_of_accept_epoch(const Settings& s) { return s.accept_epoch ? std::to_string(s.accept_epoch) : ""; }

bool take_cb_nodes(Settings& s, const Given& given) {
  int nodes = 0;
  if (!text::parse_integer(given.value, nodes) || nodes < -1) return false;
  s.cb_nodes = std::max(nodes, 0);
  return true;
}

std::string text_of_cb_nodes(const Settings& s) { return s.cb_nodes ? std::to_string(s.cb_nodes) : ""; }

constexpr Record engine_records[] = {
    {.key = "close",
     .kind = Either{&EngineSettings::fast_close, "durable", "fast"},
     .hint = Hint::ours,
     .value = "HOW",
     .help = "durable: close waits for the devices; fast: it does not",
     .more = "With fast a close only protects the data: a loss of power may take what the devices do not have yet."},
    {.key = "cb_nodes",
     .kind = Special{take_cb_nodes, text_of_cb_nodes, "a number of processes, or 0 for the default"},
     .hint = Hint::layout,
     .value = "N",
     .unset = "all",
     .help = "Processes that write for the others in a collective call; for unprotected files the MPI is told this number",
     .more = "They are spread over the job's processes. 0, or more than there are, means all. The MPI is told by the hint cb_nodes, "
             "if the program has not given it."},
    {.key = "accept_epoch",
     .kind = Special{take_accept_epoch, text_of_accept_epoch, "an epoch's number, as the refused open named it"},
     .hint = Hint::ours,
     .value = "N",
     .help = "Serve this old epoch where nothing newer can be reached",
     .more = "The refused open names it."},
    {.key = "buffer_bytes",
     .kind = Size{&EngineSettings::buffer_bytes, 1ull << 20, 1ull << 40},
     .hint = Hint::ours,
     .value = "BYTES",
     .help = "Memory of each process and file set for partial rows that wait for the next sync",
     .more = "What does not fit is kept on the targets until then."},
};

}  // namespace

constinit const Area engine_area{"Writing, closing and reading", engine_records};

}  // namespace holdfast
