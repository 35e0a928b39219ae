#include "checkpoint/at_close.hpp"

#include <algorithm>
#include <chrono>

#include <fmt/format.h>

#include "catalog/environment.hpp"

namespace holdfast::checkpoint {

namespace {

constexpr std::chrono::milliseconds shortest_wait(1), longest_wait(20);

}  // namespace

// What the protector has still to do with it, in the order in which it does that: of several versions the newest.
std::optional<LocalFile> AtClose::coming(const std::string& path, uint32_t most_number) const {
  std::optional<LocalFile> newest;
  for (const State state : {State::closed, State::protecting})
    for (LocalName& name : files_.list(state)) {
      const bool is_meant = name.file == path && name.kind == LocalName::of_user && name.number <= most_number;
      if (is_meant && (!newest || newest->name.number < name.number)) newest = LocalFile{state, std::move(name)};
    }
  return newest;
}

Status AtClose::wait(const std::string& path) {
  if (!waits_ || path.empty()) return {};
  const auto until = catalog::environment().now() + patience_;
  auto now = coming(path, UINT32_MAX);
  const uint32_t number = now ? now->name.number : 0;
  for (auto wait = shortest_wait; now; now = coming(path, number), wait = std::min(2 * wait, longest_wait)) {
    if (now->state == State::closed && has_writers(files_.path(State::closed, now->name)))
      return Status(Kind::busy, path + ": not protected yet, for a program still has it open to write");
    if (catalog::environment().now() >= until || is_in_vain()) return give_up(now->name);
    catalog::environment().wait(wait);
  }
  return {};
}

// Where nothing is protected any more a program waits once for that, and not at each of its closes.
bool AtClose::is_in_vain() {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (lock && in_vain_ && !coming(in_vain_->file, in_vain_->number)) in_vain_.reset();
  return lock && in_vain_.has_value();
}

Status AtClose::give_up(const LocalName& name) {
  if (const std::unique_lock lock(mutex_, std::try_to_lock); lock && !in_vain_) in_vain_ = name;
  return Status(Kind::timed_out,
                fmt::format("{}: not protected yet, and not waited for any longer: see what keeps it with 'holdfast checkpoints'", name.file));
}

}  // namespace holdfast::checkpoint
