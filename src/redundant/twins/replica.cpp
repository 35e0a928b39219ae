#include "redundant/twins/replica.hpp"

#include <pthread.h>
#include <unistd.h>

#include <fmt/format.h>

#include "base/host_name.hpp"
#include "base/own_numbers.hpp"
#include "base/quiet_thread.hpp"
#include "redundant/twins/twins.hpp"
#include "transport/link.hpp"

namespace holdfast::redundant {

std::atomic<Replica*> Replica::now_{nullptr};

namespace {
constexpr size_t most_askers = 4;
constinit std::array<std::atomic<Replica::AskClock>, most_askers> askers{};
}  // namespace

void Replica::asks_clocks_by(AskClock ask) {
  for (auto& one : askers) {
    AskClock none = nullptr;
    if (one.compare_exchange_strong(none, ask)) return;
  }
}

std::optional<Bytes> Twins::ask_clock(uint64_t clock) {
  Bytes answer;
  for (const auto& one : askers)
    if (const AskClock ask = one.load(); ask && ask(clock, answer)) return answer;
  return std::nullopt;
}

uint64_t Replica::next_open(uint64_t name) {
  static std::mutex mutex;
  static auto* const opens = new std::unordered_map<uint64_t, uint64_t>;  // never destroyed: files are used to the end
  std::lock_guard lock(mutex);
  return ++(*opens)[name];
}

bool Twins::all_there() const {
  if (!introduced_) return false;
  for (int team = 0; team < most_teams; ++team)
    if (team != place_.team && meetings_.lives(team) && !ways_[size_t(team)].socket) return false;
  return true;
}

Status Twins::begin(const std::string& about) {
  HF_TRY(make_logs());
  pthread_key_create(&when_one_ends_, [](void* twins) { static_cast<Twins*>(twins)->forgets_this_thread(); });
  transport::Link link;
  const Status met = link.connect(orders_.hub, agreement(orders_.secret), orders_.deadline_ms);
  if (!met) return Status(met.kind(), fmt::format("{} does not reach the process that joins the teams: {}", host_name(), met.sentence()));
  leased_ = transport::is_far(link.descriptor());
  lease_.renew(lease_clock_ms(), int64_t(orders_.deadline_ms));
  hub().socket = raw::out_of_the_way(raw::Fd(raw::fcntl(link.descriptor(), F_DUPFD_CLOEXEC)));
  const std::string endpoints = server_.listen(orders_.reach, agreement(orders_.secret));
  server_.welcome = [this](raw::Fd& socket, ByteView early) -> std::unique_ptr<transport::Conversation> {
    const std::optional<Frame> who = first_frame(socket.get(), early, orders_.deadline_ms / 2);
    if (!who || who->word != Word::who || who->team >= most_teams || int(who->team) == place_.team || ways_[who->team].socket) return nullptr;
    {
      std::lock_guard lock(mutex_);
      transport::notice_a_dead_peer(socket.get());
      if (who->number == 1) follow_me(who->team);
      ways_[who->team].socket = raw::out_of_the_way(raw::Fd(raw::fcntl(socket.get(), F_DUPFD_CLOEXEC)));
    }
    hear(who->team);
    changed_.notify_all();
    flush_while_hearing();
    return nullptr;
  };
  hear(most_teams);
  Frame frame;
  frame.word = Word::join, frame.team = uint16_t(place_.team), frame.rank = uint32_t(place_.rank);
  frame.number = uint64_t(place_.ranks), frame.subject = uint64_t(getpid());
  frame.payload = bytes_of(host_name() + "\n" + about + endpoints);
  {
    std::lock_guard lock(mutex_);
    put(most_teams, frame);
  }
  flush();
  if (!start_quiet_thread([this] { server_.run(); }) || !start_quiet_thread([this] { serve_sending(); }) ||
      !start_quiet_thread([this] { serve_alive(); }) || !start_quiet_thread([this] { serve_flushing(); }) ||
      (leased_ && !start_quiet_thread([this] { serve_lease(); })))
    return Status(Kind::io, "no thread can be started");
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return all_there() || !no_place_.empty(); });
  return no_place_.empty() ? Status() : Status(Kind::invalid, no_place_);
}

// A child of fork is no replica: it has no threads, and the connections are its parent's.
void Twins::in_child() {
  now_.store(nullptr);
  for (Way& way : ways_)
    if (way.socket) raw::close(way.socket.get());
}

namespace {
Twins* the_one = nullptr;
}  // namespace

Status Replica::join(const TeamOrders& orders, int rank, int ranks, const std::string& about) {
  auto twins = std::make_unique<Twins>(orders, rank, ranks);
  const Status status = twins->begin(about);
  the_one = twins.release();  // never destroyed: its threads use it as long as the process lives
  if (!status.ok()) return status;
  pthread_atfork(nullptr, nullptr, [] { the_one->in_child(); });
  now_.store(the_one, std::memory_order_release);
  return Status();
}

}  // namespace holdfast::redundant
