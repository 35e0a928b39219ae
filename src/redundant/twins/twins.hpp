// A replica's inside: its connections to its twins and to the hub, what they have agreed on, and the threads that serve them. Of twins/ alone.
#pragma once
#include <pthread.h>

#include <array>
#include <chrono>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <unordered_map>

#include "redundant/compare/sent.hpp"
#include "redundant/compare/standstill.hpp"
#include "redundant/decisions/decisions.hpp"
#include "redundant/log/catch_up.hpp"
#include "redundant/log/join.hpp"
#include "redundant/membership/lease.hpp"
#include "redundant/membership/stillness.hpp"
#include "redundant/pieces/pieces.hpp"
#include "redundant/twins/hub_answers.hpp"
#include "redundant/twins/kernel_waits.hpp"
#include "redundant/twins/sharing.hpp"
#include "redundant/twins/way.hpp"
#include "transport/link.hpp"
#include "transport/server.hpp"

namespace holdfast::redundant {

inline constexpr int lost_status = 121;  // of a process that ends itself

inline constexpr const char* torn = "its twins do not remember all that the lost leader was told and this rank was not";
inline constexpr const char* cut_log = "what was done then is written down in part, for the log had no more room";

// This thread is in a call below: a signal's handler that asks for the time again must not wait for it.
inline constinit thread_local bool busy __attribute__((tls_model("initial-exec"))) = false;
struct Busy {
  Busy() { busy = true; }
  ~Busy() { busy = false; }
  Busy(const Busy&) = delete;
  Busy& operator=(const Busy&) = delete;
};

class Twins final : public Replica, public Sharing {
 public:
  Twins(const TeamOrders& orders, int rank, int ranks)
      : orders_(orders),
        place_{orders.team, orders.teams, rank, ranks},
        own_log_(orders.log_bytes),
        their_log_(orders.log_bytes),
        keeper_(own_log_, [this] { return decisions_.learned() > 0 ? decisions_.waiting() : Bytes(); }),
        meetings_(orders.team, first_living(orders), keeps() ? &keeper_ : nullptr),
        decisions_(orders.team, first_living(orders), meetings_.leader(), keeps() ? &keeper_ : nullptr) {
    joining_ = orders.joins != TeamOrders::from_the_beginning;
    if (orders.compares_messages && !joining_) sent_ = std::make_unique<SentMessages>(orders.team);
    log_has_come_ = !orders.logs_travel;
    if (orders.rehearses) meetings_.rehearse();
    if (joining_) meetings_.resumes(orders.joins == TeamOrders::if_it_can);
    may_tell_ = orders.clock == TeamOrders::Clock::strict;
    if (may_tell_) decisions_.await_all_from_the_beginning();
    if (!orders.follows.empty()) past_.emplace([this] { return their_log_.next(); }, keeper_);
  }

  Status begin(const std::string& about);
  const Place& place() const override { return place_; }
  ProcessNumbers process_numbers() const override { return numbers_; }
  raw::Fd progress() override { return progress_.take_memory(); }
  bool leads() override {
    std::lock_guard lock(mutex_);
    return joining_ || (meetings_.leads() && meetings_.learned() == 0);
  }
  Bytes meet(uint64_t subject, const Claim& claim, const std::function<std::string()>& what, const Act& act) override;
  NumberedCall numbered(uint64_t subject) override {
    std::lock_guard lock(mutex_);
    return {known_as(subject), meetings_.number(known_as(subject))};
  }
  void begin_append(uint64_t file, uint64_t number) override;
  void end_append(uint64_t file, uint64_t number) override;
  bool call_lock(uint64_t file, const LockedPart& part) override;
  int64_t call_pointer(uint64_t file, const PointerCall& call) override;
  int64_t answer_of_failure(uint64_t place, int64_t answer, const std::string& why) override;
  void ends_by_signal(int signal, const std::string& why) override;
  std::string becomes(const std::string& program) override;
  void forget(uint64_t subject) override;
  void decide(uint64_t subject, ByteSpan answer, Ask ask, void* given) override;
  void thread_begins(uint32_t number) override;
  void thread_ends(uint32_t number) override;
  Bytes answer(uint64_t subject, const std::function<Bytes()>& ask) override;
  Known known(uint64_t subject, Bytes& answer) override;
  void say(uint64_t subject, ByteView answer) override;
  void say_no(uint64_t subject) override;
  void before_a_send() override;
  void wait_a_moment(std::chrono::microseconds most) override;
  [[noreturn]] void differs(const std::string& what) override;
  bool shares_node() const override { return !orders_.apart; }
  bool rehearses() const override { return orders_.rehearses; }
  bool is_alone() override {
    std::lock_guard lock(mutex_);
    return joining_ || (meetings_.is_alone() && !keeps());  // one that comes has to be told as well
  }
  uint32_t successions() override {
    std::lock_guard lock(mutex_);
    return successions_;
  }
  void leaves(bool with_its_team, int code) override;
  SentMessages* sent() override { return sent_.get(); }
  void sent_note(const char* line) override { note(line); }
  void warn(const std::string& line) override { put_note(line, true); }
  void look_at_sent() override;
  void compare_at_the_end() override;
  Living living() override {
    std::lock_guard lock(mutex_);
    return {meetings_.is_member() && !joining_ ? meetings_.living() : team_bit(place_.team), meetings_.epoch()};
  }
  void give(int team, uint64_t subject, uint64_t index, ByteView head, ByteView bytes) override;
  std::optional<Bytes> take(uint64_t subject, uint64_t index, uint32_t epoch) override;
  void note(const std::string& line) override { put_note(line, false); }
  bool is_kept() override { return keeps(); }
  std::optional<Claim> claimed_then(uint64_t subject) override;
  void keep_read(uint64_t subject, ByteView bytes) override;
  std::optional<Bytes> read_then(uint64_t subject) override;
  bool is_behind() override;
  bool is_joining() override { return joining_; }
  uint64_t next_open(uint64_t name) override;
  void resumes_from(uint64_t subject) override;
  void when_a_leader_is_lost(std::function<void()> then) override {
    std::lock_guard lock(mutex_);
    when_a_leader_is_lost_ = std::move(then);
  }
  void when_joined(std::function<void()> then) override { when_joined_ = std::move(then); }
  void looks_at_other_calls(std::function<OtherCall()> look) override {
    std::lock_guard lock(mutex_);
    other_call_ = std::move(look);
  }
  [[noreturn]] void cannot_catch_up(const std::string& why) override;
  void in_child();

 private:
  static uint64_t first_living(const TeamOrders& orders) { return orders.follows.empty() ? first_teams(orders.teams) : team_bit(orders.follows[0]); }
  bool keeps() const { return !orders_.log.empty(); }
  Way& hub() { return ways_[most_teams]; }
  Status make_logs();
  std::string log_trouble() const;
  void open_logs();
  // Of a team that was started again; under the mutex.
  bool follows() const { return past_ && past_->follows(); }
  void join_at(uint64_t subject, const Claim& claim, const std::function<std::string()>& what, std::unique_lock<std::mutex>& lock);
  void says_that_it_is_beyond();
  void pass_until(uint64_t place, const CatchUp::Later& later);
  uint64_t known_as(uint64_t subject) const {
    const auto found = aliases_.find(subject);
    return found == aliases_.end() ? subject : found->second;
  }
  // Of what was asked about messages lately, by any thread.
  struct Asked {
    Asked(uint64_t about, Decisions::Noes& its) : subject(about), noes(its) {}
    const uint64_t subject;
    Decisions::Noes& noes;
    std::atomic<uint64_t> nothing_as_of{~uint64_t(0)};  // nobody had said anything then: `frames_heard_`
  };
  Asked* lately_asked(uint64_t subject) const {
    Asked* const asked = lately_asked_[subject % lately_asked_.size()].load(std::memory_order_acquire);
    return asked && asked->subject == subject ? asked : nullptr;
  }
  Asked& will_be_asked_again(uint64_t subject);
  bool reads_on();
  bool is_near() const;
  void read_all();
  bool has_unread() const { return (follows() && !their_log_.at_end()) || meetings_.learned() + decisions_.learned() > 0; }
  bool says_where_it_is();
  void carry_out(uint64_t subject, const Claim& claim, const Act& act, bool again, bool& is_noted, std::unique_lock<std::mutex>& lock);
  void wait_for_more(std::unique_lock<std::mutex>& lock, std::chrono::milliseconds most);
  void counts_this_thread();
  void forgets_this_thread();
  // `what`: of a call; null: it waits for an answer.
  void wait_at(uint64_t subject, uint64_t number, const std::function<std::string()>* what, std::unique_lock<std::mutex>& lock,
               std::chrono::milliseconds most = std::chrono::milliseconds(0));
  // For an answer about a clock that the leader's own thread may never ask for.
  struct Awaits {
    int64_t since_ms = 0, told_ms = 0;
  };
  void wait_for_clock(uint64_t subject, Awaits& awaits, std::unique_lock<std::mutex>& lock);
  void answer_ahead(const Frame& frame);
  bool asks_no_more(uint64_t subject, int64_t awaited_ms);
  static std::optional<Bytes> ask_clock(uint64_t clock);
  bool stands_still() const;
  bool look_whether_all_stand();
  int64_t in_one_call_ms();
  void say_where_it_stands(bool waits_for_twins, Frame& alive);
  void tell_twins(const Standing& own);
  void take_standing(const Frame& frame);
  uint64_t number_at(const Standing& there) const;
  int team_that_waits_for_this() const;
  void look_at_children(int team);
  void judge_standstill(const Standing& own);
  void wait_while_full(std::unique_lock<std::mutex>& lock);
  void wait_until_all_has_arrived(std::unique_lock<std::mutex>& lock);
  void put_to_hub(Word word, uint64_t file, uint64_t number, Bytes call);
  int64_t ask_the_hub(Word word, uint64_t file, uint64_t number, Bytes call, std::unique_lock<std::mutex>& lock);
  void wait_until_it_may_tell(std::unique_lock<std::mutex>& lock);
  void await_all();
  void say_that_it_awaits();
  void wait_for_arrival(std::unique_lock<std::mutex>& lock);
  void refuse(const std::string& why);
  uint64_t behind_ms() const;
  int64_t log_clock_ms() const { return clock_ms() - log_skew_ms_; }  // of who writes the log that is followed
  bool is_followed() const { return followed_.load(std::memory_order_relaxed); }
  void follow_me(int team);
  void let_go(int team);
  void pour(int team, uint64_t window);
  void pour_all();
  void log_taken(int team, uint64_t to);
  void take_log(const Frame& part);
  bool followers_have_all() const;
  bool wait_for_followers(std::unique_lock<std::mutex>& lock);
  void last_to_followers(std::unique_lock<std::mutex>& lock);
  void hear(int way);
  bool read_from(int way);
  void came(int way, Frame& frame);
  void came_of_twin(int way, Frame& frame, Outbox& out);
  void meet_twins(const std::string& paragraphs, uint64_t first_process);
  void live(const Frame& frame);
  void put(Outbox& out);
  void put(int way, const Frame& frame);
  void flush();
  void flush(Way& way) { (void)way.flush(mutex_, true); }
  void flush_while_hearing();
  void tell_of_a_lost_leader();
  void serve_flushing();
  void serve_sending();
  void serve_alive();
  void serve_lease();
  // On another node than the hub, and it has not been heard of for the deadline. It may have declared this process lost, and nobody could say so.
  bool is_cut_off() const { return leased_ && lease_.is_over(lease_clock_ms()); }
  static int64_t lease_clock_ms();
  void has_met(int team, const transport::Link& link);
  void go_on_trying(int team, const std::string& endpoints);
  void cannot_reach(int team, const std::string& why);
  void tell_of_reaching(Word word, int team, const std::string& why);
  void look_now();
  void hub_is_lost();
  bool all_there() const;
  void put_note(const std::string& line, bool warns);
  void put_about_append(Word word, uint64_t file, uint64_t number);
  void report(const std::vector<std::pair<int, Claim>>& claims, const std::string& what, uint64_t after_messages = 0);
  bool goes_on(uint64_t subject) const;
  void report_or_ask(const std::vector<std::pair<int, Claim>>& claims, const std::string& what);
  void report_found();
  void report_what_was_otherwise(uint64_t subject, const Claim& mine, const std::function<std::string()>& what);
  void send_soon();  // under the mutex, as what follows
  void send_later();
  void flush_soon() {
    flushes_soon_ = true;
    to_flush_.notify_one();
  }

  const TeamOrders orders_;
  const Place place_;
  ProcessNumbers numbers_;  // known when the twins are
  Progress progress_;
  LogFile own_log_, their_log_;
  LogKeeper keeper_;
  std::optional<CatchUp> past_;
  // Of a team that resumes: until it has joined, its opens by name, and those names by the subjects that it has given them.
  std::atomic<bool> joining_{false};
  bool log_is_over_ = false, had_matches_ = false, looks_for_its_place_ = false, told_that_beyond_ = false, may_go_beyond_ = false;
  std::function<void()> when_joined_, when_a_leader_is_lost_;
  std::vector<std::pair<int, Frame>> early_frames_;  // of twins, which count from where it joins on
  std::set<uint64_t> resumed_from_;                  // subjects of what it has read
  std::unordered_map<uint64_t, uint64_t> early_opens_, early_names_, aliases_;
  std::unordered_map<uint64_t, uint64_t> opens_;  // by name
  // Of teams on nodes of their own that go by this process's log: how much they have been sent, and have.
  struct Follower {
    bool is_there = false, in_step = false, told_cut = false;
    uint64_t sent = LogFile::beginning, taken = LogFile::beginning;
  };
  std::array<Follower, most_teams> followers_;
  std::atomic<bool> followed_{false};  // by any
  std::once_flag left_;
  void leave(bool with_its_team, int code);
  int64_t log_skew_ms_ = 0;
  std::string own_log_trouble_, their_log_trouble_;  // they cannot be made
  bool log_has_come_ = true;                         // that of who is followed, up to where that one waits
  bool told_that_caught_up_ = false, told_that_log_ends_ = false, told_of_messages_ = false, refused_ = false;
  std::mutex mutex_;
  std::condition_variable changed_, to_send_, to_flush_;
  Meetings meetings_;
  Decisions decisions_;
  std::map<uint64_t, Asked> all_asked_;
  std::array<std::atomic<Asked*>, 16> lately_asked_{};
  std::atomic<uint64_t> frames_heard_{0};  // and taken in
  Pieces pieces_;
  // Where the thread waits, or has waited last, and in which epoch that was told. Of one thread alone, which all know that wait.
  struct Stands {
    Standing there = {};
    const std::function<std::string()>* what = nullptr;  // while it waits in a call
    int64_t since_ms = 0;
    bool now = false;
    uint32_t told_epoch = ~uint32_t(0), reported_epoch = ~uint32_t(0);
  } stands_;
  std::set<int> standing_;  // the threads that wait for twins now
  // The other call that it is in, where that is one of other ranks, and since when all its threads have waited there.
  std::function<OtherCall()> other_call_;
  OtherCall in_other_call_;
  int64_t stood_since_ms_ = 0;  // where it waits for its twins, the last time that was asked; 0: it did not
  Stood stood_, stood_in_other_call_;
  unsigned acting_ = 0;  // threads that carry a call out
  IdleThreads idle_beside_;
  std::atomic<unsigned> callers_{0};       // threads that have called and live
  std::atomic<int64_t> their_numbers_{0};  // their sum: of one alone, its number
  pthread_key_t when_one_ends_ = 0;
  IdleThreads idle_threads_;
  // Threads of the program that were started and live, by number, and where each was when a follower last asked in its place.
  std::unordered_map<uint32_t, int> threads_;
  std::map<uint64_t, std::string> seen_waiting_;  // by clock
  Standstill standstill_;
  std::unique_ptr<SentMessages> sent_;                        // none where messages are not compared
  std::map<std::pair<uint64_t, uint64_t>, bool> may_append_;  // by file and call of those who wait for their turn
  std::set<uint64_t> pointing_;                               // files on whose shared pointer a thread calls
  HubAnswers hub_answers_;                                    // where a pointer stood, or whether a lock may be taken
  bool is_failing_ = false;                                   // a thread, in a call on a file of its own
  std::optional<int64_t> told_of_failure_;
  bool may_become_ = false;  // another program
  std::set<std::string> noted_;
  std::string no_place_;                  // in the job: why
  std::array<Way, most_teams + 1> ways_;  // to the teams; the last one to the hub
  bool introduced_ = false, sends_soon_ = false, sends_later_ = false, flushes_soon_ = false;
  bool leased_ = false;
  Lease lease_;                                   // how long the hub lets this process live
  std::atomic<bool> said_{false};                 // something about messages, which may not have arrived; where all are awaited, anything
  bool asks_to_tell_ = false, may_tell_ = false;  // of messages
  uint32_t successions_ = 0, successions_told_ = 0;
  uint64_t locks_called_ = 0;
  transport::Server server_;
};

}  // namespace holdfast::redundant
