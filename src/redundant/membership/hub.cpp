#include "redundant/membership/hub.hpp"

#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <time.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <nlohmann/json.hpp>
#include <sstream>

#include <fmt/format.h>

#include "redundant/child.hpp"
#include "redundant/membership/appenders.hpp"
#include "redundant/membership/awaiting.hpp"
#include "redundant/membership/child_talks.hpp"
#include "redundant/membership/complaints.hpp"
#include "redundant/membership/control.hpp"
#include "redundant/membership/hub_process.hpp"
#include "redundant/membership/lease.hpp"
#include "redundant/membership/likeness.hpp"
#include "redundant/membership/lock_holders.hpp"
#include "redundant/membership/membership.hpp"
#include "redundant/membership/outlet.hpp"
#include "redundant/membership/output.hpp"
#include "redundant/membership/own_failures.hpp"
#include "redundant/membership/shared_pointers.hpp"
#include "redundant/membership/shown.hpp"
#include "redundant/membership/starter.hpp"
#include "redundant/membership/stillness.hpp"
#include "redundant/membership/written_out.hpp"
#include "transport/server.hpp"

namespace holdfast::redundant {

namespace {

constexpr uint64_t most_payload = 1 << 20;
constexpr int ms_of_s = 1000, ns_of_ms = 1000000;
constexpr int tick_ms = 500;
constexpr int judging_ms = 200;  // in which other ranks' differences may be heard of, where messages are compared
constexpr size_t most_notes = 200;

int64_t now_ms() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return int64_t(now.tv_sec) * ms_of_s + now.tv_nsec / ns_of_ms;
}

class Hub {
 public:
  Hub(int control, int out, int err, Deliver deliver)
      : control_(control), written_out_(out, err), over_(eventfd(0, EFD_CLOEXEC)), deliver_(std::move(deliver)) {}
  void run();

 private:
  class Talk;
  bool begin();
  bool obey();
  bool tick();
  void set_timer(int first_ms);
  void came(Talk& talk, const Frame& frame);
  void joins(Talk& talk, const Frame& frame);
  void ended(const Talk& talk);
  void differs(const Frame& frame);
  void follow(const Orders& orders);
  int first_process(int rank);
  void introduce(int rank, int team);
  void kill(int team);
  void go_on();
  bool has_ended(int team) const;
  bool is_ending(int team) const;
  uint64_t acting() const;
  void hear_complaints(int64_t now);
  void came_of_output(Talk& talk, const Frame& frame);
  void refused(const Talk& talk, const Frame& frame);
  void came_of_child(const Talk& talk, const Frame& frame);
  void deliver_fresh(const Frame& frame);
  void deliver(uint32_t rank, uint64_t stream, Bytes bytes);
  bool look_at_unwritten();
  void let_out_the_last(bool has_ended = false);
  void came_of_append(int rank, const Frame& frame);
  void may_append(uint64_t file, const Appenders::Append& append);
  void came_of_pointer(const Process& process, const Frame& frame);
  void came_of_lock(const Process& process, const Frame& frame);
  void came_of_telling(const Process& process, Word word);
  void let_tell(const std::vector<Awaiting::Who>& all);
  void came_of_failure(const Process& process, const Frame& frame);
  void judge_failures();
  void look_whether_all_stand();
  void look_whether_all_become(int rank);
  void look_whether_gone(int rank);
  void tell_who_lives(int rank);
  void say(const std::string& line);
  void show();
  void finish(int code);
  std::string hosts_of_the_lost() const;
  void start(const Order& order);
  void look_whether_done();
  Process* find(int team, int rank);

  Control control_;
  WrittenOut written_out_;
  raw::Fd over_;
  const int started_by_ = process_behind(control_.descriptor());
  const Deliver deliver_;
  raw::Fd timer_;
  FrameReader orders_{most_payload};
  std::optional<Membership> members_;
  Likeness likeness_;
  Appenders appenders_;
  Awaiting awaiting_;
  SharedPointers pointers_;
  LockHolders locks_;
  OwnFailures failures_;
  Stillness stillness_;
  Output output_;
  ChildTalks children_{[this](int team) { return members_->is_lost(team); }, [this] { return acting(); },
                       [this](const std::string& line) { say(line); }};
  std::set<int> resumed_;  // teams that print something else until they join
  const std::shared_ptr<Outlet> outlet_ = std::make_shared<Outlet>();
  std::deque<Order> waiting_;  // for the end of whom the first one is about
  Complaints complaints_;
  std::vector<std::unique_ptr<Process>> processes_;
  std::set<std::pair<int, int>> introduced_;  // team, or -1 for those of the beginning, and rank
  std::map<int, int> first_processes_;        // by rank
  std::set<std::string> notes_;
  std::map<int, uint64_t> told_;  // by rank: who lived
  uint32_t epoch_ = 0;
  int first_teams_ = 0;
  int64_t ticked_ms_ = 0, deadline_ms_ = 0, finishing_since_ms_ = 0;
  bool shows_later_ = false;
  std::optional<int> code_;
  transport::Server server_;  // goes first: its clients' ends are told to this object
};

// What is said with one process: a rank, or what moves a rank's output.
class Hub::Talk final : public transport::Conversation {
 public:
  Talk(Hub& hub, raw::Fd socket) : hub_(hub), socket_(std::move(socket)) {}
  ~Talk() override { hub_.ended(*this); }
  std::optional<size_t> take(ByteView bytes, Bytes&) override {
    if (!reader_.add(bytes)) return std::nullopt;
    while (auto frame = reader_.next()) hub_.came(*this, *frame);
    return bytes.size();
  }

  Hub& hub_;
  raw::Fd socket_;
  FrameReader reader_{most_payload};
  Process* process_ = nullptr;
  int image_ = 0;  // of that one's
  Process* moves_output_of_ = nullptr;
  std::shared_ptr<raw::Fd> mover_;  // the socket, of one that moves output
};

Process* Hub::find(int team, int rank) {
  for (const auto& process : processes_)
    if (process->team == team && process->rank == rank) return process.get();
  return nullptr;
}

// The first words of `holdfast run`.
bool Hub::begin() {
  std::byte buffer[256];
  std::optional<Frame> first;
  while (!first) {
    const ssize_t got = recv(control_.descriptor(), buffer, sizeof buffer, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0 || !orders_.add(ByteView(buffer, size_t(got)))) return false;
    first = orders_.next();
  }
  transport::Secret secret;
  if (first->word != Word::begin || first->payload.size() != secret.size() || first->number < 1 || first->number > most_replicas) return false;
  std::memcpy(secret.data(), first->payload.data(), secret.size());
  members_.emplace(int(first->number), int(first->rank), first->team != 0);
  first_teams_ = int(first->number);
  deadline_ms_ = first->epoch;
  if (!outlet_->start() || !control_.start()) return false;
  Frame answer;
  answer.word = Word::listens;
  answer.payload = bytes_of(server_.listen(transport::Reach(first->subject), agreement(secret)));
  control_.tell(answer);
  return true;
}

void Hub::run() {
  if (!begin()) return;
  server_.watch(control_.descriptor(), [this] { return obey(); });
  server_.watch(over_.get(), [] { return false; });
  server_.watch(written_out_.descriptor(), [this] { return look_at_unwritten(); });
  timer_ = raw::Fd(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK));
  set_timer(tick_ms);
  server_.watch(timer_.get(), [this] { return tick(); });
  server_.welcome = [this](raw::Fd& socket, ByteView early) -> std::unique_ptr<transport::Conversation> {
    raw::Fd second(raw::fcntl(socket.get(), F_DUPFD_CLOEXEC));
    if (!second) return nullptr;  // nothing could be said to it
    auto talk = std::make_unique<Talk>(*this, std::move(second));
    Bytes none;
    return early.empty() || talk->take(early, none) ? std::move(talk) : nullptr;
  };
  server_.run();
}

void Hub::set_timer(int first_ms) {
  const itimerspec times{{0, long(tick_ms) * ns_of_ms}, {0, long(first_ms) * ns_of_ms}};
  timerfd_settime(timer_.get(), 0, &times, nullptr);
}

// False: nobody waits for the job any more.
bool Hub::obey() {
  std::byte buffer[4096];
  const ssize_t got = recv(control_.descriptor(), buffer, sizeof buffer, MSG_DONTWAIT);
  if (got < 0) return errno == EINTR || errno == EAGAIN;
  if (got == 0) {
    follow(members_->hub_is_left());
    return false;
  }
  if (!orders_.add(ByteView(buffer, size_t(got)))) return false;
  while (auto frame = orders_.next())
    if (frame->word == Word::team_ended) follow(members_->launcher_ended(frame->team, int(frame->number), int(frame->subject)));
    else if (frame->word == Word::log_ends) follow(members_->log_ends(std::string(text_of(frame->payload))));
    else if (frame->word == Word::signalled) follow(members_->signalled(int(frame->number), std::string(text_of(frame->payload))));
  show();
  return true;
}

void Hub::came(Talk& talk, const Frame& frame) {
  if (frame.team >= members_->teams()) return;
  if (frame.word == Word::output) return came_of_output(talk, frame);
  if (frame.word == Word::died && talk.moves_output_of_) {
    talk.moves_output_of_->has_died = true;
    HowFar far;
    if (frame.payload.size() == sizeof far) {
      std::memcpy(&far, frame.payload.data(), sizeof far);
      members_->died_at(talk.moves_output_of_->team, talk.moves_output_of_->rank, far);
    }
    go_on();
    return look_whether_done();
  }
  if (frame.word == Word::child) return came_of_child(talk, frame);
  if (frame.word == Word::child_append) return children_.came(reinterpret_cast<uintptr_t>(&talk), talk.socket_.get(), frame, now_ms());
  if (frame.word == Word::join) joins(talk, frame);
  if (!talk.process_) return;
  if (members_->is_lost(talk.process_->team)) return;  // its time runs out
  talk.process_->heard_ms = now_ms();
  if (frame.word == Word::asks_to_append || frame.word == Word::has_appended) return came_of_append(talk.process_->rank, frame);
  if (frame.word == Word::pointer) return came_of_pointer(*talk.process_, frame);
  if (frame.word == Word::locks) return came_of_lock(*talk.process_, frame);
  if (frame.word == Word::failed) return came_of_failure(*talk.process_, frame);
  if (frame.word == Word::becomes) {
    talk.process_->becomes = text_of(frame.payload);
    return look_whether_all_become(talk.process_->rank);
  }
  if (frame.word == Word::asks_to_tell || frame.word == Word::awaits_all) return came_of_telling(*talk.process_, frame.word);
  if (frame.word == Word::alive && talk.process_->is_far) (void)send_frame(talk.process_->socket.get(), frame, MSG_DONTWAIT);
  if (frame.word == Word::unreached)
    complaints_.add({talk.process_->team, talk.process_->rank, int(frame.subject), std::string(text_of(frame.payload)), now_ms()});
  if (frame.word == Word::reached) complaints_.take_back(talk.process_->team, talk.process_->rank, int(frame.subject));
  if (frame.word == Word::leaves) {
    follow(members_->leaves(talk.process_->team, talk.process_->rank, frame.number == 1, frame.subject, int(frame.epoch)));
    look_whether_gone(talk.process_->rank);
    let_tell(awaiting_.waits({talk.process_->team, talk.process_->rank}));
  }
  if (frame.word == Word::differ) differs(frame);
  if (frame.word == Word::alive) {
    talk.process_->behind_ms = frame.number;
    stillness_.stands(talk.process_->team, talk.process_->rank, {frame.rank == 1, int64_t(frame.epoch), std::string(text_of(frame.payload))});
  }
  if (frame.word == Word::caught_up) follow(members_->caught_up(talk.process_->team, talk.process_->rank));
  if (frame.word == Word::refused) refused(talk, frame);
  if (frame.word == Word::log_ends) follow(members_->log_ends(std::string(text_of(frame.payload))));
  if (frame.word == Word::note && notes_.size() < most_notes && notes_.emplace(text_of(frame.payload)).second && frame.number == 1)
    say(fmt::format("rank {}: {}", talk.process_->rank, text_of(frame.payload)));
  if (frame.word != Word::alive) show();
  else shows_later_ |= members_->follows(talk.process_->team) >= 0;
}

// It waits for the answer before it goes on, or ends.
void Hub::came_of_child(const Talk& talk, const Frame& frame) {
  const std::string line(text_of(frame.payload));
  const auto does = ChildDoes(frame.number);
  follow(does == ChildDoes::starts_ranks ? members_->starts_ranks(frame.team, line)
                                         : members_->told_of_child(frame.team, line, does == ChildDoes::goes_unseen));
  Frame heard = frame;
  heard.payload.clear();
  (void)send_frame(talk.socket_.get(), heard, MSG_DONTWAIT);
}

void Hub::deliver_fresh(const Frame& frame) {
  if (frame.epoch == 0) {
    const ByteView fresh = output_.fresh(frame.rank, frame.subject, frame.number, frame.payload);
    return deliver(frame.rank, frame.subject, {fresh.begin(), fresh.end()});
  }
  resumed_.insert(frame.team);
  deliver(frame.rank, frame.subject, output_.fresh_of_resumed(frame.team, frame.rank, frame.subject, frame.payload));
  let_out_the_last();
}

void Hub::deliver(uint32_t rank, uint64_t stream, Bytes bytes) {
  if (bytes.empty()) return;
  outlet_->give([this, rank, stream, bytes = std::move(bytes)] {
    if (!deliver_) written_out_.write(stream, bytes);
    else deliver_(rank, stream, text_of(bytes));
  });
}

// Where nobody reads it any more (`| head`), a program alone ends by that, as it would have by SIGPIPE. A launcher of ranks would have let them go on.
bool Hub::look_at_unwritten() {
  written_out_.look([this](uint64_t stream, int error) {
    if (error != EPIPE)
      say(fmt::format("standard {} cannot be written, and what ranks print there is lost from now on: {}", stream == 0 ? "output" : "error",
                      std::strerror(error)));
    else if (std::all_of(processes_.begin(), processes_.end(), [](const auto& process) { return process->rank == 0; }))
      follow(members_->nobody_reads());
  });
  return true;
}

// A team that has resumed, when nobody else is left who prints what it prints.
void Hub::let_out_the_last(bool has_ended) {
  for (const int team : resumed_) {
    if (members_->is_lost(team) || !members_->is_last(team)) continue;
    for (const auto& process : processes_)
      for (const uint64_t stream : {0, 1})
        if (process->team == team) deliver(uint32_t(process->rank), stream, output_.let_out(team, uint32_t(process->rank), stream, has_ended));
  }
}

void Hub::refused(const Talk& talk, const Frame& frame) {
  const Process& process = *talk.process_;
  const std::string why(text_of(frame.payload));
  if (frame.number != 2) return follow(members_->refused(process.team, process.rank, why, frame.number == 1));
  bool may = false;
  follow(members_->goes_beyond(process.team, process.rank, why, may));
  if (may) (void)send_frame(process.socket.get(), frame, MSG_DONTWAIT);
}

void Hub::came_of_append(int rank, const Frame& frame) {
  const Appenders::Append append{rank, frame.number};
  if (frame.word == Word::has_appended) {
    if (const auto next = appenders_.over(frame.subject, append)) may_append(frame.subject, *next);
  } else if (appenders_.ask(frame.subject, append)) {
    may_append(frame.subject, append);
  }
}

void Hub::may_append(uint64_t file, const Appenders::Append& append) {
  Frame frame;
  frame.word = Word::may_append, frame.subject = file, frame.number = append.number;
  for (const auto& process : processes_)
    if (process->rank == append.rank && process->connected) (void)send_frame(process->socket.get(), frame, MSG_DONTWAIT);
}

void Hub::came_of_pointer(const Process& process, const Frame& frame) {
  PointerCall call;
  if (frame.payload.size() != sizeof call) return;
  std::memcpy(static_cast<void*>(&call), frame.payload.data(), sizeof call);
  answer_call(process, frame, pointers_.call(frame.subject, process.rank, frame.number, call));
}

void Hub::came_of_lock(const Process& process, const Frame& frame) {
  LockedPart part;
  if (frame.payload.size() != sizeof part) return;
  std::memcpy(static_cast<void*>(&part), frame.payload.data(), sizeof part);
  const bool may = locks_.call(frame.subject, process.rank, part);
  if (part.what != LockedPart::gives_up) answer_call(process, frame, may ? 1 : 0);
}

// Who stands by has no twins that would wait for it.
void Hub::came_of_failure(const Process& process, const Frame& frame) {
  const std::string why(text_of(frame.payload));
  const uint64_t living = members_->living(process.rank);
  if (living != 0 && !(living & team_bit(process.team))) return follow(members_->refused(process.team, process.rank, why));
  failures_.add({process.team, process.rank, frame.subject, int64_t(frame.number), why, now_ms()});
  judge_failures();
}

// They wait for each other here: what they have said to each other has come before any of them is gone.
void Hub::look_whether_all_become(int rank) {
  const uint64_t living = members_->living(rank);
  uint64_t become = 0;
  for (const auto& process : processes_)
    if (process->rank == rank && process->becomes) become |= team_bit(process->team);
  if (living == 0 || (living & ~become)) return;
  std::string what;
  Frame all;
  all.word = Word::becomes;
  for (const auto& process : processes_) {
    if (process->rank != rank || !(living & team_bit(process->team))) continue;
    what = *std::exchange(process->becomes, std::nullopt);
    process->connected = false, ++process->image;
    (void)send_frame(process->socket.get(), all, MSG_DONTWAIT);
  }
  likeness_.becomes_another(rank);
  std::erase_if(introduced_, [rank](const auto& one) { return one.second == rank; });
  complaints_.forget(rank);
  follow(members_->becomes(rank, what));
  show();
}

void Hub::judge_failures() {
  for (const int rank : failures_.ranks()) {
    const OwnFailures::Judged judged = failures_.judge(rank, members_->living(rank), now_ms());
    for (const OwnFailures::Report& one : judged.told) {
      Frame answer;
      answer.word = Word::failed, answer.subject = one.place, answer.number = uint64_t(one.answer);
      const Process* const process = find(one.team, one.rank);
      if (process && process->connected) (void)send_frame(process->socket.get(), answer, MSG_DONTWAIT);
    }
    for (const OwnFailures::Report& one : judged.lost) follow(members_->has_failed_alone(one.team, one.rank, one.why));
    if (!judged.lost.empty()) show();
  }
}

void Hub::came_of_telling(const Process& process, Word word) {
  if (word == Word::awaits_all) return let_tell(awaiting_.waits({process.team, process.rank}));
  if (!awaiting_.has_begun()) {
    std::vector<Awaiting::Who> all;
    Frame frame;
    frame.word = Word::await_all;
    for (const auto& one : processes_) {
      if (!one->connected) continue;
      if (members_->living(one->rank) & team_bit(one->team)) all.push_back({one->team, one->rank});
      (void)send_frame(one->socket.get(), frame, MSG_DONTWAIT);
    }
    awaiting_.begin(all);
  }
  let_tell(awaiting_.asks({process.team, process.rank}));
}

void Hub::let_tell(const std::vector<Awaiting::Who>& all) {
  Frame frame;
  frame.word = Word::may_tell;
  for (const Awaiting::Who& one : all)
    if (const Process* const process = find(one.team, one.rank); process && process->connected)
      (void)send_frame(process->socket.get(), frame, MSG_DONTWAIT);
}

// A program may end in one thread while another one appends.
void Hub::look_whether_gone(int rank) {
  if (members_->living(rank) != 0) return;
  locks_.gone(rank);
  for (const Appenders::Granted& granted : appenders_.gone(rank)) may_append(granted.file, granted.append);
}

void Hub::came_of_output(Talk& talk, const Frame& frame) {
  Process* const process = find(frame.team, int(frame.rank));
  if (!talk.mover_) talk.mover_ = std::make_shared<raw::Fd>(std::move(talk.socket_));
  if (!talk.moves_output_of_ && process) process->guard = talk.mover_;
  talk.moves_output_of_ = process;
  if (process) process->output = Process::open;
  deliver_fresh(frame);
  outlet_->give([socket = talk.mover_, stream = frame.subject] {
    Frame taken;
    taken.word = Word::taken, taken.subject = stream;
    (void)send_frame(socket->get(), taken, MSG_DONTWAIT);
  });
}

void Hub::joins(Talk& talk, const Frame& frame) {
  if (talk.process_) return;
  Process* const first = find(frame.team, int(frame.rank));
  if (first && (first->image == 0 || first->connected || members_->is_lost(first->team))) {
    Frame refused;
    refused.word = Word::refused;
    refused.payload = bytes_of(fmt::format("process {} is or was rank {} of its team; of a script that runs several programs only one may be of MPI",
                                           first->pid, first->rank));
    (void)send_frame(talk.socket_.get(), refused, MSG_DONTWAIT);
    return;
  }
  if (!first) processes_.push_back(std::make_unique<Process>());
  Process* const process = first ? first : processes_.back().get();
  process->connected = true, process->endpoints.clear();
  process->team = frame.team, process->rank = int(frame.rank), process->pid = int(frame.subject);
  std::istringstream lines{std::string(text_of(frame.payload))};
  std::getline(lines, process->host);
  About about;
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with(About::mark)) about.take(line);
    else process->endpoints += line + "\n";
  ucred peer{};
  socklen_t bytes = sizeof peer;
  const bool here = getsockopt(talk.socket_.get(), SOL_SOCKET, SO_PEERCRED, &peer, &bytes) == 0 && peer.pid > 0;
  process->is_far = transport::is_far(talk.socket_.get());
  if (here) process->handle = raw::Fd(int(syscall(SYS_pidfd_open, peer.pid, 0)));
  process->socket = std::move(talk.socket_);
  process->heard_ms = now_ms();
  talk.process_ = process, talk.image_ = process->image;
  Frame await;
  await.word = Word::await_all;
  if (awaiting_.has_begun()) (void)send_frame(talk.process_->socket.get(), await, MSG_DONTWAIT);
  const Likeness::Found found = likeness_.joined(frame.team, int(frame.rank), about);
  if (!found.warning.empty()) say(found.warning);
  const bool is_of_the_beginning = members_->follows(frame.team) < 0;  // a command to start again may name another program
  if (is_of_the_beginning && !found.refusal.empty()) return follow(members_->is_unlike(frame.team, int(frame.rank), found.refusal));
  follow(members_->joined(frame.team, int(frame.rank), int(frame.number)));
}

void Hub::ended(const Talk& talk) {
  children_.gone(reinterpret_cast<uintptr_t>(&talk), now_ms());
  if (talk.moves_output_of_) talk.moves_output_of_->output = Process::ended;
  if (Process* const process = talk.process_; process && process->image == talk.image_) {
    process->connected = false;
    process->has_died |= was_closed(process->socket.get());
    const std::string who = fmt::format("process {} on {}", process->pid, process->host);
    if (!members_->is_over()) follow(members_->gone(process->team, process->rank, who));
    look_whether_gone(process->rank);
    let_tell(awaiting_.waits({process->team, process->rank}));
    process->socket.reset();
    go_on();
    show();
  }
  look_whether_done();
}

void Hub::differs(const Frame& frame) {
  std::vector<std::pair<int, Claim>> claims;
  ByteView rest(frame.payload);
  struct One {
    uint64_t team;
    Claim claim;
  };
  for (uint64_t i = 0; i < frame.number && rest.size() >= sizeof(One); ++i) {
    One one;
    std::memcpy(static_cast<void*>(&one), rest.data(), sizeof one);
    claims.emplace_back(int(one.team), one.claim);
    rest = rest.subspan(sizeof one);
  }
  const std::string what(text_of(rest));
  if (frame.subject == 0 || members_->rehearses()) return follow(members_->differ(int(frame.rank), what, claims));
  members_->hold(int(frame.rank), what, claims, frame.subject - 1);
  set_timer(judging_ms);
}

// Whoever is to end is told at once. What comes after that waits for it.
void Hub::follow(const Orders& orders) {
  for (const Order& order : orders) {
    if (order.what == Order::kill) kill(order.team);
    waiting_.push_back(order);
  }
  go_on();
}

void Hub::go_on() {
  while (!waiting_.empty()) {
    if (waiting_.front().what == Order::kill && !has_ended(waiting_.front().team)) return;
    const Order order = std::move(waiting_.front());
    waiting_.pop_front();
    switch (order.what) {
      case Order::introduce: introduce(order.rank, order.team); break;
      case Order::kill: break;
      case Order::live: tell_who_lives(order.rank); break;
      case Order::say: say(order.line); break;
      case Order::finish: finish(order.code); break;
      case Order::start: start(order); break;
      case Order::is_alone: control_.tell(about_team(Word::is_alone, order.team)); break;
    }
  }
}

// Of the first team that had this rank when its twins were introduced to each other. It stays that, whoever is lost.
int Hub::first_process(int rank) {
  if (const auto known = first_processes_.find(rank); known != first_processes_.end()) return known->second;
  for (int team = 0; team < members_->teams(); ++team)
    if (const Process* const process = find(team, rank)) return first_processes_[rank] = process->pid;
  return 0;
}

// To those of the beginning, or to a team that was started again.
void Hub::introduce(int rank, int only) {
  if (!introduced_.insert({only, rank}).second) return;
  Frame frame;
  frame.word = Word::twins, frame.rank = uint32_t(rank);
  std::string text;
  for (int team = 0; team < members_->teams(); ++team) {
    const Process* const process = find(team, rank);
    text += (process && process->connected ? process->endpoints : "") + "\n";  // an empty line ends a team's paragraph
  }
  frame.payload = bytes_of(text);
  frame.number = uint64_t(first_process(rank));
  if (only < 0) tell_who_lives(rank);
  for (const auto& process : processes_)
    if (process->rank == rank && process->connected && (only < 0 ? process->team < first_teams_ : process->team == only))
      (void)send_frame(process->socket.get(), frame, MSG_DONTWAIT);
  if (only >= 0) tell_who_lives(rank);
}

// A line each. "ended 2 host": the end of a lost process of team 2 was heard of. "silent 2 host": its node did not say so.
std::string Hub::hosts_of_the_lost() const {
  std::string lines;
  for (const auto& process : processes_)
    if (members_->is_lost(process->team))
      lines += fmt::format("{} {} {}\n", !process->is_far || process->has_died ? "ended" : "silent", process->team, process->host);
  return lines;
}

void Hub::start(const Order& order) {
  Frame frame;
  frame.word = Word::relaunch, frame.number = uint64_t(order.team), frame.epoch = uint32_t(order.code);
  frame.subject = order.teams.size();
  for (const int team : order.teams) frame.payload.push_back(std::byte(team));
  const Bytes hosts = bytes_of(hosts_of_the_lost());
  frame.payload.insert(frame.payload.end(), hosts.begin(), hosts.end());
  control_.tell(frame);
}

// One on another node has ended when its node says so, or when so long ago it heard of the hub last that it has ended itself.
bool Hub::has_ended(int team) const {
  const int64_t now = now_ms();
  return std::all_of(processes_.begin(), processes_.end(), [&](const auto& process) {
    return process->team != team || !process->is_far || process->has_died || has_ended_itself(now - process->heard_ms, deadline_ms_);
  });
}

bool Hub::is_ending(int team) const {
  return std::any_of(waiting_.begin(), waiting_.end(), [&](const Order& order) { return order.what == Order::kill && order.team == team; });
}

// Nobody takes the place of a lost team before it has ended.
uint64_t Hub::acting() const {
  uint64_t mask = members_->acting();
  for (int team = 0; team < members_->teams(); ++team) mask |= is_ending(team) ? team_bit(team) : 0;
  return mask;
}

// What cannot be reached by a signal is asked to end, and so is who stands beside it on its node.
void Hub::kill(int team) {
  control_.tell(about_team(Word::team_lost, team));
  std::vector<pollfd> waited;
  Frame end;
  end.word = Word::end;
  for (const auto& process : processes_) {
    if (process->team != team) continue;
    let_tell(awaiting_.waits({team, process->rank}));
    if (process->handle) {
      (void)syscall(SYS_pidfd_send_signal, process->handle.get(), SIGKILL, nullptr, 0);
      waited.push_back({process->handle.get(), POLLIN, 0});
    } else {
      if (process->connected) (void)send_frame(process->socket.get(), end, MSG_DONTWAIT);
      if (const auto guard = process->guard.lock()) (void)send_frame(guard->get(), end, MSG_DONTWAIT);
    }
  }
  const int64_t until = now_ms() + 2 * ms_of_s;
  for (pollfd& one : waited) (void)::poll(&one, 1, int(std::max<int64_t>(until - now_ms(), 0)));
  children_.kill(team);
  let_out_the_last();
}

void Hub::tell_who_lives(int rank) {
  children_.look(now_ms());
  ++epoch_;
  uint64_t lost = 0, ending = 0;
  for (int team = 0; team < members_->teams(); ++team) {
    if (is_ending(team)) ending |= team_bit(team);
    else if (members_->is_lost(team)) lost |= team_bit(team);
  }
  std::map<int, uint64_t> now;
  for (const auto& process : processes_) {
    if (rank >= 0 && process->rank != rank) continue;
    const uint64_t mask = members_->living(process->rank) | (told_[process->rank] & ending);
    now[process->rank] = mask;
    if (!process->connected) continue;
    Frame frame;
    frame.word = Word::lives, frame.epoch = epoch_, frame.subject = mask, frame.number = lost;
    (void)send_frame(process->socket.get(), frame, MSG_DONTWAIT);
  }
  for (const auto& [whose, mask] : now) told_[whose] = mask;
}

void Hub::say(const std::string& line) {
  outlet_->give([this, line] { written_out_.write_line("holdfast: " + line + "\n"); });
}

// For `holdfast status --job`.
void Hub::show() {
  nlohmann::json teams = nlohmann::json::array();
  for (int team = 0; team < members_->teams(); ++team) teams.push_back(shown(*members_, processes_, team));
  nlohmann::json state{
      {"epoch", epoch_},           {"replicas", first_teams_}, {"lost", members_->lost_teams()}, {"relaunched", members_->started_again()},
      {"over", code_.has_value()}, {"teams", std::move(teams)}};
  if (code_) state["exit_status"] = *code_;
  if (!notes_.empty()) state["notes"] = notes_;
  if (members_->rehearses()) state["differences"] = members_->differences();
  control_.show(state.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
}

// What is still in the pipes of the ranks' output comes first, for a while. A process that the job has left behind may hold one open.
void Hub::finish(int code) {
  if (code_) return;
  code_ = code;
  finishing_since_ms_ = now_ms();
  look_whether_done();
}

void Hub::look_whether_done() {
  constexpr int patience_ms = 5 * ms_of_s;
  if (!code_) return;
  const auto is_to_come = [this](const auto& process) {
    return process->output == Process::open || (process->output == Process::none && !members_->is_lost(process->team));
  };
  const bool more = std::any_of(processes_.begin(), processes_.end(), is_to_come);
  const int64_t waited_ms = now_ms() - finishing_since_ms_;
  if ((more && waited_ms < patience_ms) || (members_->lacks_a_place() && waited_ms < ms_of_s)) return;
  let_out_the_last(true);
  if (const std::string line = members_->fault_of_the_program(); !line.empty()) say(line);
  if (deliver_) outlet_->give([this] { deliver_(0, 0, {}); });
  outlet_->wait();
  (void)look_at_unwritten();
  outlet_->wait();
  code_ = members_->code_in_the_end(*code_);
  if (*code_ == 0 && !written_out_.is_whole()) code_ = 1;
  show();
  Frame done;
  done.word = Word::done, done.number = uint64_t(*code_);
  control_.tell(done);
  control_.wait();
  const uint64_t one = 1;
  (void)raw::write(over_.get(), &one, sizeof one);
}

// A hub that could not run itself for a while has not heard of anybody. One whose `holdfast run` is stopped has not either, for its ranks are stopped with it.
bool Hub::tick() {
  uint64_t times = 0;
  (void)raw::read(timer_.get(), &times, sizeof times);
  const int64_t now = now_ms();
  const bool late = now - ticked_ms_ > 4 * tick_ms || is_stopped(started_by_);
  ticked_ms_ = now;
  for (const auto& process : processes_) {
    let_go_of_ended(*process);
    if (late && !members_->is_lost(process->team)) process->heard_ms = now;
    if (!process->connected || members_->is_over() || members_->is_lost(process->team)) continue;
    // The last look that is within the deadline decides about one that the hub can kill.
    const int64_t unheard_ms = now - process->heard_ms;
    if (process->is_far ? !is_lost_far_away(unheard_ms, deadline_ms_) : unheard_ms < deadline_ms_ - tick_ms) continue;
    const Orders orders = members_->silent(process->team, process->rank, fmt::format("process {} on {}", process->pid, process->host));
    if (orders.empty()) continue;
    follow(orders);
    show();
  }
  hear_complaints(now);
  judge_failures();
  children_.look(now);
  look_whether_all_stand();
  for (const auto& process : processes_)
    if (process->becomes) look_whether_all_become(process->rank);
  follow(members_->judge());
  if (std::exchange(shows_later_, false)) show();
  look_whether_done();
  return true;
}

void Hub::look_whether_all_stand() {
  std::vector<std::pair<int, int>> living;
  for (const auto& process : processes_)
    if (process->connected && !members_->is_lost(process->team)) living.emplace_back(process->rank, process->team);
  for (const std::string& line : stillness_.judge(living, deadline_ms_)) {
    say(line);
    if (notes_.size() < most_notes) notes_.insert(line);
  }
}

void Hub::hear_complaints(int64_t now) {
  for (const Complaints::One& one : complaints_.ripe(now, deadline_ms_)) {
    const Process* const other = find(one.other, one.rank);
    const uint64_t both = team_bit(one.team) | team_bit(one.other);
    if (!other || members_->is_over() || (members_->living(one.rank) & both) != both) continue;
    follow(members_->unreached(one.team, one.rank, fmt::format("process {} on {}", other->pid, other->host), one.other, one.why));
    show();
  }
}

}  // namespace

// Never destroyed: the thread that writes output may be in it as long as the process lives.
void serve_hub(int control, int out, int err, Deliver deliver) { (new Hub(control, out, err, std::move(deliver)))->run(); }

}  // namespace holdfast::redundant
