#include "target/side_by_side.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <memory>
#include <vector>

#include "target/companion.hpp"
#include "target/lane.hpp"

namespace holdfast::target {

namespace {

constexpr int most_helpers = 16;
constexpr std::chrono::hours for_ever(1000);  // whoever gives a call to a helper has a deadline of his own

// Never destroyed: calls come until the process ends.
struct Helper {
  std::shared_ptr<Lane> lane;
  std::atomic<int> process{0};  // in which it was started: a forked child has it still to start
};

std::array<std::atomic<Helper*>, most_helpers> idle{};
std::atomic<int> made{0};

void give_back(Helper* helper) {
  for (auto& place : idle)
    if (Helper* none = nullptr; place.compare_exchange_strong(none, helper)) return;
}

Helper* take(bool of_this_process) {
  const int here = process_id();
  for (auto& place : idle)
    if (Helper* helper = place.load(); helper && (helper->process == here) == of_this_process && place.compare_exchange_strong(helper, nullptr))
      return helper;
  return nullptr;
}

void start(Helper* helper) {
  if (!helper->lane->run([] { return Status(); }).ok()) return;  // no more processes may be had
  helper->process = process_id();
  give_back(helper);
}

struct Given {
  Helper* helper;
  std::shared_ptr<Ticket> ticket;
};

}  // namespace

void keep_helpers(int count) {
  while (Helper* const helper = take(false)) start(helper);
  for (int number = made; number < std::min(count, most_helpers); number = made)
    if (made.compare_exchange_strong(number, number + 1)) start(new Helper{make_companion_lane("a helper", for_ever)});
}

Status side_by_side(std::span<const std::function<Status()>> calls) {
  std::vector<Status> answers(calls.size());
  std::vector<Given> given(calls.size());
  for (size_t i = 1; i < calls.size(); ++i) {
    given[i].helper = take(true);
    if (!given[i].helper) break;
    given[i].ticket = given[i].helper->lane->submit(calls[i]);
  }
  for (size_t i = 0; i < calls.size(); ++i)
    if (!given[i].ticket) answers[i] = calls[i]();
  for (size_t i = 0; i < calls.size(); ++i) {
    if (!given[i].ticket) continue;
    answers[i] = given[i].ticket->wait();
    give_back(given[i].helper);
  }
  for (const Status& answer : answers) HF_TRY(answer);
  return Status();
}

}  // namespace holdfast::target
