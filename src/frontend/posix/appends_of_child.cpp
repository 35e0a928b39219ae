#include "frontend/posix/appends_of_child.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <mutex>
#include <utility>

#include "base/config.hpp"
#include "base/rank_variables.hpp"
#include "coding/checksum.hpp"
#include "frontend/posix/this_program.hpp"
#include "redundant/child.hpp"
#include "redundant/child_link.hpp"
#include "redundant/twins/twins.hpp"

namespace holdfast::frontend::posix {

namespace {

using redundant::AppendAnswer;

// Of this process. One that is forked off begins anew.
struct Asking {
  std::mutex mutex;
  pid_t process = 0;
  std::unique_ptr<redundant::ChildLink> hub;
  std::map<std::string, std::unique_ptr<coding::RunningChecksum>> sums;  // by path
};
// Never destroyed: other libraries' destructors may still write.
Asking& asking() {
  static auto* one = new Asking;
  return *one;
}

redundant::ChildLink* whom_to_ask() {
  Asking& one = asking();
  if (one.process == getpid()) return one.hub.get();
  one.process = getpid();
  one.hub.reset(), one.sums.clear();
  const auto orders = redundant::parse_orders(environment_variable(redundant::child_variable));
  if (!orders) return nullptr;
  const std::string rank = own_rank();
  one.hub = std::make_unique<redundant::ChildLink>(*orders, rank.empty() ? 0 : std::atoi(rank.c_str()), name_of_this_program());
  return one.hub.get();
}

// What a lost one has not written of it.
Result<Extent> write_what_is_lacking(FileLayer& file, ByteView bytes, const AppendAnswer& how) {
  const ByteView mine = bytes.subspan(size_t(how.skip));
  uint64_t there = 0;
  if (how.torn > 0) {
    const auto end = file.size();
    if (!end) return end.status();
    Bytes behind(*end > how.at ? *end - how.at : 0);
    const Extent extent{how.at, behind.size()};
    const auto got = behind.empty() ? Result<uint64_t>(0) : file.read({&extent, 1}, behind);
    if (got) there = redundant::there_of_torn(ByteView(behind).first(size_t(*got)), mine, how.torn);
    if (there == mine.size()) return Extent{how.at, there};
  }
  const ByteView rest = mine.subspan(size_t(there));
  auto put = file.append({&rest, 1}, false);
  if (!put && there > 0) return Extent{how.at, there};
  if (put && there > 0) put->length += there, put->offset -= std::min(put->offset, there);
  return put;
}

// With how much of it is done as `skip`.
Result<AppendAnswer> ask_and_append(redundant::ChildLink& hub, FileLayer& file, const std::string& path, ByteView bytes, uint64_t sum) {
  const auto end = file.size();
  if (!end) return end.status();
  auto answer = hub.asks(path, *end, bytes.size(), sum);
  if (answer && answer->what == AppendAnswer::write) {
    const auto put = write_what_is_lacking(file, bytes, *answer);
    const int64_t taken = put ? int64_t(put->length) : -int64_t(put.status().to_errno());
    const uint64_t skipped = answer->skip, place = put ? put->offset + put->length : 0;
    answer = hub.wrote(place, taken);
    if (!answer) answer = AppendAnswer{.what = AppendAnswer::is_done, .value = put ? int64_t(place) : taken};  // nobody has heard, and it is there
    if (answer->what == AppendAnswer::is_done && put) answer->skip = skipped + put->length;
    return answer;
  }
  if (answer) answer->skip = bytes.size();
  return answer;
}

}  // namespace

bool is_asked_before_appends() { return !environment_variable(redundant::child_variable).empty(); }

Result<Extent> append_as_child(FileLayer& file, const std::string& path, std::span<const ByteView> pieces) {
  std::lock_guard lock(asking().mutex);
  redundant::ChildLink* const to = whom_to_ask();
  if (!to) return file.append(pieces, false);
  Bytes all;
  for (const ByteView& piece : pieces) all.insert(all.end(), piece.begin(), piece.end());
  auto& sum = asking().sums[path];
  if (!sum) sum = std::make_unique<coding::RunningChecksum>(0);
  sum->add(all);
  const auto answer = ask_and_append(*to, file, path, all, sum->value());
  if (!answer) return file.append(pieces, false);  // the job is over, and this process has outlived it
  if (answer->what == AppendAnswer::is_lost) syscall(SYS_exit_group, redundant::lost_status);
  if (answer->value < 0) return Status(Kind::io, "", int(-answer->value));
  const uint64_t end = uint64_t(answer->value), done = answer->skip;
  return Extent{end - std::min(end, done), done};
}

}  // namespace holdfast::frontend::posix
