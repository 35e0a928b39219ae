#include "cli/redundant/teams.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/config.hpp"
#include "base/cores.hpp"
#include "base/launcher_names.hpp"
#include "base/say.hpp"
#include "base/shell_word.hpp"
#include "checkpoint/pattern.hpp"
#include "checkpoint/run.hpp"
#include "cli/command.hpp"
#include "cli/files/merge_parts.hpp"
#include "cli/job/program.hpp"
#include "cli/log/job.hpp"
#include "cli/redundant/hub_link.hpp"
#include "cli/redundant/inherited.hpp"
#include "cli/redundant/job_state.hpp"
#include "cli/redundant/spare_hosts.hpp"
#include "cli/redundant/team_hosts.hpp"
#include "redundant/membership/membership.hpp"
#include "redundant/membership/outlet.hpp"
#include "tree/mounts.hpp"

namespace holdfast::cli {

namespace {

using Clock = std::chrono::steady_clock;
using redundant::Frame;
using redundant::Word;
constexpr auto holding = std::chrono::milliseconds(700);
constexpr auto patience = std::chrono::seconds(5);  // after a launcher has been told to end
// After a signal that ends the job: the program may write its last checkpoint then. So long batch systems wait, too.
constexpr auto patience_with_program = std::chrono::seconds(30);
constexpr auto comes_as_one = std::chrono::milliseconds(300);  // who sends a signal to a process and to its group, as `timeout` does, means one

struct Team {
  pid_t launcher = -1;
  bool ended = false, lost = false;
  bool again = false;        // for a lost one
  Clock::time_point told{};  // to end
  raw::Fd in, out, err;
  std::string input;  // that it has not taken yet
  // What its launcher says, which waits a moment: one whose team is lost complains of that.
  struct Held {
    int to;
    std::string text;
  };
  std::vector<Held> held;
  Clock::time_point held_since{};
  bool was_refused = false;  // one of its processes, which was said
};

struct Ends {
  raw::Fd read_end, write_end;
};
Ends make_pipe() {
  int ends[2] = {-1, -1};
  (void)::pipe2(ends, O_CLOEXEC);
  return {raw::Fd(ends[0]), raw::Fd(ends[1])};
}

// Open MPI 4's launcher makes a directory below /tmp that all launchers of a user share, and ends where another one makes it at that moment. So each
// team has a place of its own for it.
constexpr const char* place_of_open_mpi = "OMPI_MCA_orte_tmpdir_base";

// Each launcher counts its own ranks only, and theirs would spin while those of other teams need the cores.
constexpr const char* turns_of_open_mpi = "OMPI_MCA_mpi_yield_when_idle";

// Sums over ranks are made within each node first, where nodes are not alike in other places for each team. By these they are made as if there were none.
// MPICH's device is not all of it: three of its own ways go by nodes where it may choose.
constexpr std::pair<const char*, const char*> sums_without_nodes[] = {
    {"OMPI_MCA_coll_han_priority", "0"},
    {"OMPI_MCA_coll_hcoll_enable", "0"},
    {"OMPI_MCA_coll_ucc_enable", "0"},
    {"MPIR_CVAR_DEVICE_COLLECTIVES", "none"},
    {"MPIR_CVAR_SCAN_INTRA_ALGORITHM", "recursive_doubling"},
    {"MPIR_CVAR_ISCAN_INTRA_ALGORITHM", "sched_recursive_doubling"},
    {"MPIR_CVAR_IREDUCE_INTRA_ALGORITHM", "sched_binomial"},
};

class LauncherPlaces {
 public:
  LauncherPlaces() = default;
  ~LauncherPlaces() {
    for (const std::string& place : made_) {
      std::error_code ignored;
      std::filesystem::remove_all(place, ignored);
    }
  }
  LauncherPlaces(const LauncherPlaces&) = delete;
  LauncherPlaces& operator=(const LauncherPlaces&) = delete;
  // Empty: it cannot be made.
  std::string make() {
    std::error_code ignored;
    std::string place = std::filesystem::temp_directory_path(ignored).string() + "/holdfast-team-XXXXXX";
    return ::mkdtemp(place.data()) ? made_.emplace_back(place) : "";
  }

 private:
  std::vector<std::string> made_;
};

// All that this process starts: launchers that bind nothing let their ranks stay there.
void stay_on(const std::vector<int>& processors) {
  if (processors.empty()) return;
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int one : processors) CPU_SET(one, &set);
  (void)::sched_setaffinity(0, sizeof set, &set);
}

// Else it is the program itself that is started here, and a rank.
bool is_launcher_known(const Teams& teams) { return teams.mpi.launcher || base_name(teams.command[0]) == "srun"; }

class Job {
 public:
  Job(const Teams& teams, TeamPlaces places, std::optional<TeamPlaces> of_restart, LauncherPlaces& made, JobState state)
      : takes_turns_(places.takes_turns),
        unlike_(places.unlike),
        processors_(places.processors),
        hosts_(std::move(places), teams.spare_hosts, [&made] { return made.make(); }),
        find_beginning_(teams.beginning),
        has_launcher_(is_launcher_known(teams)),
        teams_(size_t(teams.count)),
        places_(made),
        state_(std::move(state)) {
    if (of_restart) restart_hosts_.emplace(std::move(*of_restart), teams.spare_hosts, [&made] { return made.make(); });
  }
  int run(redundant::TeamOrders orders, const std::string& gathered);

 private:
  Status start(int team, const std::vector<std::string>& command, const std::string& told_of_checkpoints);
  void start_again(const Frame& frame);
  void serve();
  void heard(const Frame& frame);
  void children();
  void signalled();
  void read_input();
  bool keeps_input();
  void pass_input(Team& team);
  void relay(Team& team, raw::Fd& from, int to);
  void say_what_was_held(Team& team, bool now);
  static void say_why_refused(Team& team, const std::string& text);
  void end(Team& team);
  void hand(const Team& team, int signal) const;
  void pass_on(int signal);
  void stop();
  void end_all(int code);
  void end_late_ones();
  void look_whether_hub_hears();
  bool leads(const Team& team) const;
  bool all_ended() const {
    return std::all_of(teams_.begin(), teams_.end(), [](const Team& team) { return team.ended; });
  }

  Result<std::vector<std::string>> next_command(const Frame& frame, std::string& told_of_checkpoints);

  size_t free_part() const;
  const std::vector<int>& processors_of(int team) const;

  const bool takes_turns_, unlike_;
  const std::vector<std::vector<int>> processors_;  // dealt out
  std::vector<size_t> parts_;                       // of them, by team
  SpareHosts hosts_;
  std::optional<SpareHosts> restart_hosts_;  // of another command
  const FindBeginning find_beginning_;
  const bool has_launcher_;
  const Inherited inherited_ = Inherited::here();
  std::vector<Team> teams_;
  LauncherPlaces& places_;
  JobState state_;
  HubLink hub_;
  raw::Fd signals_;
  sigset_t before_{};
  bool input_open_ = true;
  redundant::TeamOrders orders_;
  std::string given_;  // of standard input, for a team that is started again
  // Signals of the user's for the program.
  std::vector<int> to_pass_on_;  // to the team that is alone then
  bool is_signalled_ = false;
  std::optional<size_t> alone_;  // the team
  int ends_by_ = 0;
  Clock::time_point ends_since_{};
  std::optional<Clock::time_point> hub_behind_since_;
  std::optional<int> code_;
};

size_t Job::free_part() const {
  for (size_t part = 0; part < processors_.size(); ++part) {
    bool taken = false;
    for (size_t team = 0; team < parts_.size(); ++team) taken |= parts_[team] == part && !teams_[team].lost;
    if (!taken) return part;
  }
  return 0;
}

// A team that is started again has those of a lost one.
const std::vector<int>& Job::processors_of(int team) const {
  static const std::vector<int> any;
  return processors_.empty() ? any : processors_[parts_[size_t(team)]];
}

// In its own way of life: the same addresses in every team, or programs that print or sort by addresses would differ.
Status Job::start(int number, const std::vector<std::string>& command, const std::string& told_of_checkpoints) {
  orders_.team = number;
  const size_t part = free_part();
  parts_.resize(size_t(number) + 1);
  parts_.back() = part;
  Team& team = teams_[size_t(number)];
  Ends in = make_pipe(), out = make_pipe(), err = make_pipe();
  if (!in.read_end || !out.read_end || !err.read_end) return Status::from_errno(errno, "pipe");
  (void)::fcntl(in.write_end.get(), F_SETFL, O_NONBLOCK);  // of this end alone
  const std::string text = redundant::text_of(orders_);
  const std::string place = environment_variable(place_of_open_mpi).empty() ? places_.make() : "";
  const pid_t parent = ::getpid();
  team.launcher = ::fork();
  if (team.launcher < 0) return Status::from_errno(errno, "fork");
  if (team.launcher == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (::getppid() != parent) ::_exit(1);
    ::setpgid(0, 0);  // what comes to this process's group, as from a terminal, is passed on to one team
    ::dup2(in.read_end.get(), STDIN_FILENO);
    ::dup2(out.write_end.get(), STDOUT_FILENO);
    ::dup2(err.write_end.get(), STDERR_FILENO);
    inherited_.hand_on();
    ::setenv(redundant::orders_variable, text.c_str(), 1);
    ::setenv(checkpoint::team_variable, told_of_checkpoints.c_str(), 1);
    if (!place.empty()) ::setenv(place_of_open_mpi, place.c_str(), 1);
    if (takes_turns_) ::setenv(turns_of_open_mpi, "1", 0);
    for (const auto& [name, value] : sums_without_nodes)
      if (unlike_) ::setenv(name, value, 0);
    stay_on(processors_of(number));
    ::personality(ADDR_NO_RANDOMIZE);
    ::sigprocmask(SIG_SETMASK, &before_, nullptr);
    become(command);
    say("holdfast: {} cannot be started\n", command[0]);
    ::_exit(127);
  }
  ::setpgid(team.launcher, team.launcher);  // whoever comes first
  team.in = std::move(in.write_end);
  team.out = std::move(out.read_end);
  team.err = std::move(err.read_end);
  return Status();
}

int Job::run(redundant::TeamOrders orders, const std::string& gathered) {
  if (const Status started = hub_.start(orders, gathered); !started) return fail(started, exit_lost);
  sigset_t wanted = heeded({SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGTSTP});
  ::sigaddset(&wanted, SIGCHLD);
  ::sigprocmask(SIG_BLOCK, &wanted, &before_);
  signals_.reset(::signalfd(-1, &wanted, SFD_CLOEXEC | SFD_NONBLOCK));
  orders_ = std::move(orders);
  if (const std::string line = inherited_.said(); !line.empty()) say("holdfast: {}\n", line);
  for (int team = 0; team < int(teams_.size()); ++team) {
    const Status started = start(team, hosts_.places().commands[size_t(team)], checkpoint::encode_team(team, {}));
    if (!started) return hub_.close(), fail(started, exit_lost);
  }
  while (!(code_ && all_ended())) serve();
  for (Team& team : teams_) say_what_was_held(team, true);
  ::sigprocmask(SIG_SETMASK, &before_, nullptr);
  for (const std::string& path : state_.separate_files())
    if (const std::string said = said_of_parts(path); !said.empty()) say("holdfast: {}\n", said);
  return *code_;
}

// What launchers say themselves is the same in all teams: it is heard of the first.
bool Job::leads(const Team& team) const {
  for (const Team& other : teams_)
    if (!other.lost) return &other == &team;
  return false;
}

void Job::serve() {
  std::vector<pollfd> waited{{hub_.descriptor(), POLLIN, 0}, {signals_.get(), POLLIN, 0}};
  const bool all_taken = std::all_of(teams_.begin(), teams_.end(), [](const Team& team) { return team.again || team.input.empty(); });
  const size_t count = teams_.size();  // of those that are polled here
  const bool may_read = input_open_ && all_taken && (!::isatty(STDIN_FILENO) || ::tcgetpgrp(STDIN_FILENO) == ::getpgrp());
  waited.push_back({may_read ? STDIN_FILENO : -1, POLLIN, 0});
  for (const Team& team : teams_) {
    waited.push_back({team.out.get(), POLLIN, 0});
    waited.push_back({team.err.get(), POLLIN, 0});
  }
  for (const Team& team : teams_) waited.push_back({team.input.empty() ? -1 : team.in.get(), POLLOUT, 0});
  constexpr int step_ms = 500;
  if (::poll(waited.data(), waited.size(), step_ms) < 0 && errno != EINTR) return;
  if (waited[0].revents && !hub_.hear([this](const Frame& frame) { heard(frame); })) {
    hub_.close();
    if (!code_) say("holdfast: the process that joins the teams has gone, and the job ends with it\n");
    if (!code_) code_ = redundant::all_lost;
    for (Team& team : teams_) end(team);
  }
  if (waited[2].revents) read_input();
  for (size_t i = 0; i < count; ++i) {
    if (waited[3 + 2 * i].revents) relay(teams_[i], teams_[i].out, STDOUT_FILENO);
    if (waited[4 + 2 * i].revents) relay(teams_[i], teams_[i].err, STDERR_FILENO);
    if (waited[3 + 2 * count + i].revents) pass_input(teams_[i]);
  }
  for (Team& team : teams_) say_what_was_held(team, false);
  if (waited[1].revents) signalled();
  end_late_ones();
  look_whether_hub_hears();
}

void Job::heard(const Frame& frame) {
  if (frame.word == Word::state) state_.write(redundant::text_of(frame.payload));
  if (frame.word == Word::team_lost && frame.team < teams_.size()) {
    if (!teams_[frame.team].lost) hosts_.lost(frame.team);
    if (!teams_[frame.team].lost && restart_hosts_) restart_hosts_->lost(frame.team);
    teams_[frame.team].lost = true;
    end(teams_[frame.team]);
  }
  if (frame.word == Word::relaunch) start_again(frame);
  if (frame.word == Word::is_alone && frame.team < teams_.size()) {
    alone_ = frame.team;
    for (const int signal : std::exchange(to_pass_on_, {})) pass_on(signal);
  }
  if (frame.word == Word::done) code_ = int(frame.number);
}

// Both go on counting, whichever is used.
Result<std::vector<std::string>> Job::next_command(const Frame& frame, std::string& told_of_checkpoints) {
  using redundant::TeamOrders;
  const int team = int(frame.number);
  const auto lost = redundant::text_of(ByteView(frame.payload).subspan(frame.subject));
  auto command = hosts_.next(lost);
  auto again = restart_hosts_ ? std::optional(restart_hosts_->next(lost)) : std::nullopt;
  if (command && !hosts_.said().empty()) say("holdfast: {}\n", hosts_.said());
  told_of_checkpoints = checkpoint::encode_team(team, {});
  orders_.joins = TeamOrders::from_the_beginning;
  const bool may_go_on = frame.epoch == 0;
  const auto beginning = may_go_on && find_beginning_ ? find_beginning_() : std::nullopt;
  if (!may_go_on || (find_beginning_ ? !beginning : !restart_hosts_)) return command;
  orders_.joins = restart_hosts_ ? TeamOrders::where_it_resumes : TeamOrders::if_it_can;
  if (beginning) told_of_checkpoints = beginning->told(team), say("holdfast: team {} goes on from checkpoint {}\n", team, beginning->step);
  if (again && *again)
    for (std::string& word : **again)
      for (size_t at = 0; (at = word.find(step_mark, at)) != std::string::npos;)
        word.replace(at, std::strlen(step_mark), fmt::format("{}", beginning ? beginning->step : 0));
  return again ? std::move(*again) : std::move(command);
}

void Job::start_again(const Frame& frame) {
  if (code_ || is_signalled_ || frame.number != teams_.size() || frame.payload.size() < frame.subject) return;
  orders_.follows.clear();
  for (const std::byte team : ByteView(frame.payload).first(frame.subject)) orders_.follows.push_back(int(team));
  Team& team = teams_.emplace_back();
  team.again = true;
  std::string told_of_checkpoints;
  const auto command = next_command(frame, told_of_checkpoints);
  if (const Status started = command ? start(int(frame.number), *command, told_of_checkpoints) : command.status(); !started) {
    team.ended = true;
    say("holdfast: the command cannot be started again: {}\n", started.sentence());
    Frame ended;
    ended.word = Word::team_ended, ended.team = uint16_t(frame.number), ended.number = uint64_t(exit_lost);
    return hub_.tell(ended);
  }
  team.input = given_;
  pass_input(team);
}

bool ends(int signal) { return signal != SIGUSR1 && signal != SIGUSR2; }

void Job::signalled() {
  signalfd_siginfo signal{};
  while (::read(signals_.get(), &signal, sizeof signal) == ssize_t(sizeof signal)) {
    if (signal.ssi_signo == SIGCHLD) {
      children();
      continue;
    }
    const int number = int(signal.ssi_signo);
    if (number == SIGTSTP) {
      stop();
      continue;
    }
    hear_of_signal(number);
    if (ends(number) && ends_by_ == number && Clock::now() - ends_since_ < comes_as_one) continue;
    if (ends(number) && ends_by_ != 0) return end_all(128 + number);
    if (ends(number)) ends_by_ = number, ends_since_ = Clock::now();
    pass_on(number);
  }
}

// The launchers are in groups of their own: the terminal has not stopped them.
void Job::stop() {
  for (const Team& team : teams_)
    if (!team.ended) (void)::kill(-team.launcher, SIGTSTP);
  ::raise(SIGSTOP);
  for (const Team& team : teams_)
    if (!team.ended) (void)::kill(-team.launcher, SIGCONT);
}

// Launchers pass it on. A script's programs are in its group, as they are in a terminal's.
void Job::hand(const Team& team, int signal) const { (void)::kill(has_launcher_ ? team.launcher : -team.launcher, signal); }

// All replicas would get it, each at another place. So one team gets it, when the others have ended. Of those that end a job the second one ends that team as well.
void Job::pass_on(int signal) {
  if (code_) return;
  if (alone_) {
    if (!teams_[*alone_].ended) hand(teams_[*alone_], signal);
    return;
  }
  to_pass_on_.push_back(signal);
  if (std::exchange(is_signalled_, true)) return;
  Frame frame;
  frame.word = Word::signalled, frame.number = uint64_t(128 + signal);
  if (!ends(signal))
    frame.payload = redundant::bytes_of(fmt::format("signal {} ({}) has come for the program, and one team gets it", signal, ::strsignal(signal)));
  hub_.tell(frame);
}

void Job::end_all(int code) {
  code_ = code;
  hub_.close();
  for (Team& team : teams_) end(team);
}

void Job::children() {
  int status = 0;
  // Of these alone: protectors are children of this process as well.
  for (size_t i = 0; i < teams_.size(); ++i) {
    if (teams_[i].ended || teams_[i].launcher <= 0 || ::waitpid(teams_[i].launcher, &status, WNOHANG) != teams_[i].launcher) continue;
    teams_[i].ended = true;
    Frame frame;
    frame.word = Word::team_ended, frame.team = uint16_t(i);
    frame.number = uint64_t(WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status));
    if (has_launcher_ && WIFSIGNALED(status)) frame.subject = uint64_t(WTERMSIG(status));
    if (hub_.descriptor() >= 0) hub_.tell(frame);
  }
}

void Job::end(Team& team) {
  if (team.ended || team.told != Clock::time_point()) return;
  team.told = Clock::now();
  hand(team, SIGTERM);
}

void Job::end_late_ones() {
  if (ends_by_ != 0 && !code_ && Clock::now() - ends_since_ > patience_with_program) end_all(128 + ends_by_);
  for (Team& team : teams_)
    if (!team.ended && team.told != Clock::time_point() && Clock::now() - team.told > patience) hand(team, SIGKILL);
}

// A hub that is stopped says nothing, and closes nothing. Ranks that do not hear from it have ended by themselves; so does the job then.
void Job::look_whether_hub_hears() {
  if (code_ || !all_ended() || !hub_.is_behind()) return hub_behind_since_.reset();
  if (!hub_behind_since_) hub_behind_since_ = Clock::now();
  if (Clock::now() - *hub_behind_since_ < std::chrono::milliseconds(orders_.deadline_ms)) return;
  say("holdfast: all teams have ended, and the process that joins them does not answer; the job ends without it\n");
  code_ = redundant::all_lost;
  hub_.close();
}

// For a team that is started again: as much as can be kept.
bool Job::keeps_input() {
  constexpr size_t most_input = 64 << 20;
  if (orders_.log.empty() || given_.size() < most_input) return !orders_.log.empty();
  orders_.log.clear();
  given_ = std::string();
  Frame frame;
  frame.word = Word::log_ends;
  frame.payload = redundant::bytes_of(fmt::format("standard input has brought more than {} MiB, which is not kept", most_input >> 20));
  hub_.tell(frame);
  return false;
}

// To all teams. The next piece is read when all have taken this one.
void Job::read_input() {
  char buffer[16 << 10];
  const ssize_t got = ::read(STDIN_FILENO, buffer, sizeof buffer);
  if (got < 0 && errno == EINTR) return;
  if (got <= 0) input_open_ = false;
  if (got > 0 && keeps_input()) given_.append(buffer, size_t(got));
  for (Team& team : teams_) {
    if (got > 0 && team.in) team.input.append(buffer, size_t(got));
    pass_input(team);
  }
}

// As much as it takes now: a program that does not read its input is not waited for.
void Job::pass_input(Team& team) {
  while (!team.input.empty()) {
    const ssize_t done = ::write(team.in.get(), team.input.data(), team.input.size());
    if (done < 0 && errno == EINTR) continue;
    if (done < 0 && errno == EAGAIN) return;
    if (done <= 0) return team.input.clear(), team.in.reset();
    team.input.erase(0, size_t(done));
  }
  if (!input_open_) team.in.reset();
}

void Job::relay(Team& team, raw::Fd& from, int to) {
  char buffer[16 << 10];
  const ssize_t got = ::read(from.get(), buffer, sizeof buffer);
  if (got < 0 && errno == EINTR) return;
  if (got <= 0) return from.reset();
  if (team.held.empty()) team.held_since = Clock::now();
  team.held.push_back({to, {buffer, size_t(got)}});
}

// A process that has not come to the hub can say so in its own team only.
void Job::say_why_refused(Team& team, const std::string& text) {
  const size_t at = text.find(redundant::cannot_take_part);
  if (at == std::string::npos || std::exchange(team.was_refused, true)) return;
  const std::string line = text.substr(at, text.find('\n', at) - at) + "\n";
  (void)redundant::write_all(STDERR_FILENO, redundant::bytes_of(line));
}

void Job::say_what_was_held(Team& team, bool now) {
  if (team.held.empty() || (!now && Clock::now() - team.held_since < holding)) return;
  for (const Team::Held& one : team.held)
    if (leads(team)) (void)redundant::write_all(one.to, redundant::bytes_of(one.text));
    else say_why_refused(team, one.text);
  team.held.clear();
}

// Whether the launcher itself is given one of these options.
template <class Is>
bool launcher_is_given(const std::vector<std::string>& command, Is is) {
  OwnWords words;
  return std::any_of(command.begin() + 1, command.end(), [&](const std::string& word) {
    const bool own = words.are_own();
    words.pass(word);
    return own && is(word);
  });
}

// Each launcher would bind its ranks to the same cores. Where the user says how they are bound, or which cores they get, that stands.
void share_cores(const Teams& teams, TeamPlaces& places) {
  const auto binds = [](const std::string& word) { return word == "--bind-to" || word == "-bind-to" || word == "--cpu-set" || word == "--cpu-list"; };
  const auto says_where = [&binds](const std::string& word) { return binds(word) || word == "-map-by" || word == "--map-by"; };
  for (std::vector<std::string>& command : places.commands) {
    if (!teams.mpi.launcher) continue;
    if (launcher_is_given(command, says_where)) places.processors.clear();
    if (teams.mpi.name.starts_with("openmpi") && !launcher_is_given(command, binds)) command.insert(command.begin() + 1, {"--bind-to", "none"});
  }
}

std::string said_of_processors(const std::vector<std::vector<int>>& parts) {
  std::string said;
  for (size_t team = 0; team < parts.size(); ++team)
    said += fmt::format("{} team {} has {}", team == 0 ? "; of its processors" : ",", team, text_of_processors(parts[team]));
  return said;
}

// What the replicas of a rank cannot write as one yet.
Status check_patterns(const Settings& settings) {
  if (settings.checkpoint.empty()) return {};
  const auto patterns = checkpoint::Patterns::parse(settings.checkpoint, settings.complete);
  if (!patterns) return patterns.status();
  if (patterns->are_rolled() || !settings.complete.empty())
    return Status(
        Kind::unsupported,
        "--checkpoint with * or ?, and --complete, cannot be had with --replicas yet: name each file by {step} and {rank}, as 'ck/ck.{step}.{rank}'");
  const auto& all = patterns->all();
  if (std::any_of(all.begin(), all.end(), [](const checkpoint::Pattern& one) { return one.is_shared(); }))
    return Status(
        Kind::unsupported,
        "--checkpoint 'shared:...' cannot be had with --replicas yet: let each rank write a file of its own, and name it 'ck/ck.{step}.{rank}'");
  return {};
}

}  // namespace

namespace {

// What it starts would be replicas of nothing: only programs behind a launcher that is known are told which rank they are.
Status check_launcher(const Teams& teams) {
  const std::string& first = teams.command[0];
  const bool is_no_launcher = !starts_ranks(base_name(first)) && (teams.mpi.name == "posix" || detect_mpi({first}).name != "posix");
  if (is_launcher_known(teams) || is_no_launcher) return {};
  return Status(Kind::invalid,
                fmt::format("'{}' is no launcher that --replicas knows: begin with mpirun, mpiexec, orterun or prterun (also by a path, or as "
                            "mpirun.openmpi), or with srun; put other words behind it",
                            first));
}

// The settings allow no other.
redundant::TeamOrders::Clock clock_named(const std::string& name) {
  using Clock = redundant::TeamOrders::Clock;
  return name == "strict" ? Clock::strict : name == "own" ? Clock::own : Clock::decided;
}

}  // namespace

Status check_teams(const Teams& teams, const Settings& settings) {
  if (teams.compare != "files" && teams.compare != "messages")
    return Status(Kind::invalid, fmt::format("--compare is '{}': allowed is files or messages", teams.compare));
  if (teams.count < 1 || teams.count > redundant::most_replicas)
    return Status(Kind::invalid, fmt::format("--replicas is {}: allowed is 1 to {}", teams.count, redundant::most_replicas));
  if (teams.count < 2 && teams.compare != "files") return Status(Kind::invalid, "--compare is about replicas: give --replicas too");
  if (teams.count < 2 && teams.rehearses) return Status(Kind::invalid, "--rehearse is about replicas: give --replicas too");
  if (teams.rehearses && settings.write_protocol.starts_with("distributed"))
    return Status(Kind::invalid,
                  fmt::format("--rehearse and --write-protocol {} cannot be had together: the leader writes", settings.write_protocol));
  if (teams.count < 2) return Status();
  const auto refused = [](const char* what) { return Status(Kind::unsupported, fmt::format("{} and --replicas cannot be had together yet", what)); };
  if (settings.buffers > 0 && settings.buffer_flush_ms > 0) return refused("buffers that are written after a time (--buffer-flush)");
  HF_TRY(check_launcher(teams));
  HF_TRY(check_patterns(settings));
  if (!teams.spare_hosts.empty() && teams.relaunches == 0)
    return Status(Kind::invalid, "--spare-hosts is about teams that are started again: give --relaunch too");
  return check_places(teams.command, teams.mpi, teams.count, teams.spare_hosts);
}

int run_teams(const Teams& teams, const Settings& settings) {
  redundant::TeamOrders orders;
  orders.teams = teams.count;
  orders.deadline_ms = std::max(settings.deadline_ms, redundant::least_deadline_ms);
  orders.compares_messages = teams.compare == "messages";
  orders.rehearses = teams.rehearses;
  orders.clock = clock_named(settings.clock);
  JobState state(fmt::format("{}", fmt::join(teams.shown, " ")));
  LauncherPlaces made;
  auto places = place_teams(teams.command, teams.mpi, teams.count, [&made] { return made.make(); });
  if (!places) return fail(places.status(), exit_lost);
  if (!places->apart) share_cores(teams, *places);
  orders.reach = places->far ? transport::Reach::network : transport::Reach::node;
  orders.apart = places->apart;
  std::error_code ignored;
  orders.logs_travel = places->far;
  if (teams.relaunches > 0) orders.log = places->far ? std::filesystem::temp_directory_path(ignored).string() : state.make_log();
  orders.log_bytes = teams.log_bytes;
  orders.relaunches = orders.log.empty() ? 0 : teams.relaunches;
  if (teams.relaunches > 0 && orders.log.empty())
    say("holdfast: the log of the job cannot be made in {}: a lost team is not started again\n", jobs_directory());
  say("holdfast: {}{}\n", places->said, said_of_processors(places->processors));
  if (const std::string here = std::filesystem::current_path(ignored).string();
      places->apart && tree::sharing_of(here, settings) == tree::Sharing::node_local)
    say("holdfast: {} is node-local by its file system, so each team makes its own files there by plain calls; if nodes share "
        "it, add --shared-mounts {}\n",
        here, shell_word(here));
  std::optional<TeamPlaces> of_restart;
  if (!teams.restart.empty()) {
    auto found = place_teams(teams.restart, teams.mpi, teams.count, [&made] { return made.make(); });
    if (!found) return fail(found.status(), exit_lost);
    if (!found->apart) share_cores(teams, *found);
    of_restart = std::move(*found);
  }
  return Job(teams, std::move(*places), std::move(of_restart), made, std::move(state)).run(orders, settings.gather_output);
}

}  // namespace holdfast::cli
