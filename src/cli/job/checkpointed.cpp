#include "cli/job/checkpointed.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <thread>

#include "base/keep_errno.hpp"
#include "base/node_path.hpp"
#include "base/raw_syscalls.hpp"
#include "base/say.hpp"
#include "catalog/pool.hpp"
#include "catalog/user_files.hpp"
#include "checkpoint/attempt.hpp"
#include "checkpoint/ended.hpp"
#include "checkpoint/given_up.hpp"
#include "checkpoint/left_by_program.hpp"
#include "checkpoint/leftovers.hpp"
#include "checkpoint/pattern.hpp"
#include "checkpoint/roll.hpp"
#include "checkpoint/seen_whole.hpp"
#include "checkpoint/shared.hpp"
#include "checkpoint/singles.hpp"
#include "checkpoint/step_directories.hpp"
#include "checkpoint/survey.hpp"
#include "checkpoint/together.hpp"
#include "checkpoint/unread.hpp"
#include "checkpoint/updates.hpp"
#include "cli/command.hpp"
#include "cli/job/agents.hpp"
#include "cli/job/caretaker.hpp"
#include "cli/job/closed_before.hpp"
#include "cli/job/drainer.hpp"
#include "cli/job/drop_old.hpp"
#include "cli/job/live_runs.hpp"
#include "cli/job/passed_over.hpp"
#include "cli/job/plain_before.hpp"
#include "cli/job/protectors.hpp"
#include "cli/job/restart_hosts.hpp"
#include "cli/job/simulated_loss.hpp"
#include "cli/job/singles.hpp"
#include "cli/job/slurm_no_kill.hpp"
#include "cli/job/slurm_step.hpp"
#include "cli/log/job.hpp"
#include "cli/output.hpp"
#include "layout/manifest.hpp"

namespace holdfast::cli {

using checkpoint::Checkpoint;
using checkpoint::left_by_program;
using checkpoint::LocalEntry;
using checkpoint::Run;
using checkpoint::Standing;
using checkpoint::Survey;
using checkpoint::Surveyor;

namespace {

const layout::Attempt any_later(UINT32_MAX, UINT64_MAX);
constexpr auto between_looks = std::chrono::milliseconds(200);  // at a silent node, when the job has ended

// By the user: then a program that goes on without some of its ranks has ended well.
bool may_lose_ranks(const std::vector<std::string>& command) {
  constexpr std::string_view saying_so[] = {"--with-ft", "--enable-recovery", "-enable-recovery", "-disable-auto-cleanup", "--disable-auto-cleanup"};
  return std::any_of(command.begin(), command.end(),
                     [&](const std::string& word) { return std::count(std::begin(saying_so), std::end(saying_so), word) > 0; });
}

// "checkpoint 3", "checkpoints 3, 4 and 5".
std::string checkpoints_text(const std::set<uint64_t>& steps) {
  if (steps.size() == 1) return fmt::format("checkpoint {}", *steps.begin());
  return fmt::format("checkpoints {} and {}", fmt::join(steps.begin(), std::prev(steps.end()), ", "), *steps.rbegin());
}

class Attempts {
 public:
  Attempts(const Settings& settings, const CheckpointOptions& options, const std::vector<std::string>& command, const Mpi& mpi)
      : settings_(settings), options_(options), command_(command), mpi_(mpi), drainer_(settings, *parse_drain(options.drain)) {}

  int run(const Attempt& attempt) {
    if (const Status alone = live_.begin(settings_); !alone) return fail(alone, exit_lost);
    if (!options_.simulated_loss.empty()) loss_ = *parse_simulated_loss(options_.simulated_loss, options_.simulated_nodes);
    if (loss_) say_what_is_left();
    run_.id = checkpoint::new_run(std::chrono::system_clock::now());
    run_.simulated = options_.simulated_nodes > 0;
    run_.teams = options_.teams;
    if (options_.restarts > 0 && !run_.simulated && is_slurm_job() && !is_known_to_outlive_nodes())
      say("holdfast: Slurm ends a job that loses a node, and then nothing is started again; begin the job with salloc --no-kill "
          "or sbatch --no-kill\n");
    if (const Status found = options_.resume ? find_run() : Status(); !found) return fail(found, exit_restart_refused);
    const Input input;
    for (int again = 0;; ++again) {
      if (again > 0 && !input.begin_again() && again == 1)
        say("holdfast: standard input is no file: what an attempt has read of it does not come again; give it as a file: < FILE\n");
      if (const Status ready = prepare(again > 0 || options_.resume); !ready) return fail(ready, exit_restart_refused);
      const bool goes_on = again > 0 || options_.resume;
      const auto command = goes_on ? command_of_restart(again > 0) : command_at_first();
      if (!command) return fail(command.status(), goes_on ? exit_restart_refused : exit_lost);
      const int code = once([&](const FindBeginning& beginning) { return attempt(*command, beginning); });
      if (code < 0 && again == 0) return code;
      if (code < 0) {
        const Status failed = Status::from_errno(errno, command->front() + " cannot be started");
        give_up();
        return fail(failed, exit_restart_refused);
      }
      if (code == 0) return finish();
      if (was_told_to_end() && again < options_.restarts) say("holdfast: the job was told to end, and is not started again\n");
      if (was_told_to_end()) return give_up(), ended_with_;
      if (again == options_.restarts) return give_up(), code;
      say("holdfast: the job has ended with {}; it is started again ({} of {})\n", code, again + 1, options_.restarts);
    }
  }

 private:
  // Who tries it begins with as many nodes as the scheme is wide.
  void say_what_is_left() const {
    const auto scheme = layout::Scheme::parse(settings_.protect.value_or(""));
    const std::set<uint32_t> gone(loss_->nodes.begin(), loss_->nodes.end());
    const int left = options_.simulated_nodes - int(gone.size()), fewest = scheme ? scheme->k + (scheme->m > 0) : 0;
    if (left < fewest)
      say("holdfast: --simulate-loss leaves {} nodes, and {} needs {} to protect later checkpoints; try it with --simulate-nodes {}\n", left,
          scheme->name(), fewest, fewest + int(gone.size()));
  }

  // --resume: the last run with these checkpoints that has a whole one; else the last that had one before too many nodes were lost. A later run whose
  // checkpoints cannot be read is remembered: nobody goes back behind it without a word.
  Status find_run() {
    const auto patterns = checkpoint::Patterns::resolve(settings_.checkpoint, settings_.complete);
    const auto survey = checkpoint::survey_to_begin("", settings_, damaged_);
    if (!survey || !patterns) return {};
    HF_TRY(check_are_of_one_kind(*survey, *patterns));
    bool any_whole = false;
    std::string lost;
    const std::string began_as = run_.id;
    for (const Checkpoint& one : survey->checkpoints) {  // ascending
      if (!one.has_all() || !has_match(one, *patterns)) continue;
      if (one.whole() || !any_whole) run_.id = one.run;
      any_whole |= one.whole();
      if (!one.whole() && one.rivals.empty()) lost = one.run;
    }
    for (const checkpoint::DrainedCheckpoint& one : survey->drained)
      if (patterns->match(one.files.front().path) && (!any_whole || run_.id < one.run)) run_.id = one.run, any_whole = true;
    if (run_.id < lost) lost_run_ = lost;
    is_new_run_ = run_.id == began_as;
    return {};
  }

  // Which attempt comes, on which nodes, and what it begins with.
  Status prepare(bool goes_on) {
    live_.chooses(run_.id);
    auto survey = checkpoint::survey_to_begin(run_.id, settings_, damaged_);
    if (survey && goes_on && protect_what_was_closed(*survey, run_, settings_, options_.with))
      survey = checkpoint::survey_to_begin(run_.id, settings_, damaged_);
    if (!survey) return survey.status();
    // A clock may have been set back since: the next --resume has to take this run for the last.
    const bool is_new = std::exchange(is_new_run_, false);
    if (is_new) run_.id = checkpoint::new_run(std::chrono::system_clock::now(), checkpoint::latest_run(*survey));
    run_.nodes = survey->live;
    run_.attempt = next_attempt(*survey, run_.id, last_attempt_, checkpoint::new_attempt_id(std::chrono::system_clock::now()));
    if (last_attempt_.number == 0) first_attempt_ = run_.attempt;
    last_attempt_ = run_.attempt;
    run_.from.reset();
    begun_ = {};
    if (goes_on) {
      checkpoint::remove_left(run_.id, run_.attempt, run_.nodes, settings_.deadline_ms);  // where `run` was killed as well
      const checkpoint::Beginning beginning = beginning_of(*survey, run_.id);
      run_.from = beginning.from;
      begun_ = beginning.age;
      if (run_.from) remove_unfinished_before(run_.from->attempt);  // a protector of a later one may be at work still
    }
    checkpoint::add_torn_updates(survey->checkpoints, passed_over_ = damaged_);
    live_.began(run_);
    checkpoint::note_removed(*survey, run_, settings_.deadline_ms);
    drop_removed_singles(*survey, run_, settings_);
    see_program();
    look_at_nodes(*survey);
    if (goes_on) make_directories(*survey);
    // Those of before stay for a new job: its program knows them.
    tidy_directories([&](uint64_t step) { return goes_on && !is_new && !(run_.from && run_.from->step == step); });
    if (!goes_on) return {};
    checkpoint::note_beginning(*survey, run_, settings_.deadline_ms);
    HF_TRY(check_unreadable(*survey));
    checkpoint::forget_unneeded(*survey, run_.id, run_.attempt, begun_, settings_);
    remember_beginning(*survey);
    say_passed_over(*survey, run_, begun_);
    say_what_has_changed(*survey, run_);
    say_quarantined(*survey);
    say_beginning(*survey);
    say_losses_of_singles(*survey, run_, settings_);
    say_where_ranks_may_differ(*survey);
    return {};
  }

  void say_beginning(const Survey& survey) const {
    const Checkpoint* const newest = newest_whole(survey.checkpoints, run_.id);
    if (newest && newest->are_singles)
      say("holdfast: attempt {} begins with the newest version of {}{}, on {}\n", run_.attempt.number, name_of(*newest),
          newest->files.size() == 1 ? "" : ", which may be of different times", nodes_text(run_.nodes));
    else if (run_.from)
      say("holdfast: attempt {} begins with checkpoint {}{}, on {}\n", run_.attempt.number, run_.from->step,
          run_.from->drained ? " as it was drained" : "", nodes_text(run_.nodes));
    else say("holdfast: {}, on {}\n", why_from_start(survey, run_, settings_), nodes_text(run_.nodes));
  }

  // A file that is updated in place, or appended to, has one version: what it was before is gone.
  void say_where_ranks_may_differ(const Survey& survey) const {
    const auto patterns = checkpoint::Patterns::resolve(settings_.checkpoint, settings_.complete);
    for (const Checkpoint& one : survey.checkpoints) {
      const auto uneven = patterns && is_from(one) && !run_.from->drained ? written_unevenly(one, survey.checkpoints, *patterns) : std::nullopt;
      if (uneven)
        say("holdfast: {} of the {} files of checkpoint {} {} written again more often than the others (the first is that of rank {}), and may be "
            "of a later time; write each file by one open, or rename it to its name when it is complete\n",
            uneven->more_often, uneven->all, one.step, uneven->more_often == 1 ? "was" : "were", uneven->first_rank);
    }
  }

  void remove_unfinished_before(const layout::Attempt& until) const {
    checkpoint::remove_unfinished(
        settings_.local, [run = run_.id, until](const checkpoint::Unfinished& one) { return one.run == run && one.attempt < until; },
        settings_.deadline_ms);
  }

  // Its files would be found at their paths natively as well: nobody is kept from going on with another program's, and everybody hears of it.
  void see_program() const {
    const std::string program = program_of(command_), before = run_.from ? checkpoint::noted_program(run_.id, run_.nodes, settings_.deadline_ms) : "";
    if (!before.empty() && before != program) {
      const auto patterns = checkpoint::Patterns::parse(settings_.checkpoint, settings_.complete);
      const bool are_single = patterns && patterns->are_single();
      say("holdfast: {} written by {}, and this job runs {}; give it another directory if that is another program\n",
          are_single ? "what is protected of the last run was" : fmt::format("checkpoint {} was", run_.from->step), before, program);
    }
    checkpoint::note_program(run_.id, program, run_.nodes, settings_.deadline_ms);
  }

  // Those that hold most of the checkpoint first: a rank finds its file nearest there.
  void look_at_nodes(const Survey& survey) {
    std::map<std::string, int> held;
    for (const catalog::FoundVersion& one : survey.versions)
      if (run_.from && is_of(*one.manifest.version, run_.id, *run_.from))
        for (const std::string& place : one.on) ++held[parse_node_path(place).node];
    nodes_ = {names_of(survey.live), names_of(survey.lost)};
    if (steps_ && !nodes_.lost.empty()) make_room(*steps_);
    std::stable_sort(nodes_.live.begin(), nodes_.live.end(), [&](const std::string& a, const std::string& b) { return held[a] > held[b]; });
  }

  // The last attempt's steps may have outlived it. Where Slurm does not let go of their processors the next ones share them.
  void make_room(const std::map<std::string, std::vector<std::string>>& before) const {
    const auto left = end_steps_left(checkpoint::run_variable, run_.id + " ", nodes_.lost, before);
    if (left.empty()) return;
    say("holdfast: Slurm has not ended step {}, which was on {}; what is started now shares its processors (SLURM_OVERLAP)\n", fmt::join(left, ", "),
        fmt::join(nodes_.lost, ", "));
    ::setenv("SLURM_OVERLAP", "1", 0);
  }

  // Nobody would keep what a rank writes on a node whose agent does not answer. What becomes of teams there is their own matter.
  Result<std::vector<std::string>> command_at_first() const {
    if (run_.teams > 1) return command_;
    auto command = command_of_restart(false);
    if (command && *command != command_)
      say("holdfast: no agent answers on {}: {} is given the nodes that are there\n", fmt::join(nodes_.lost, ", "), command_.front());
    return command;
  }

  // On nodes that are there. `again`: by this `run`; what it begins with is the command that it was given.
  Result<std::vector<std::string>> command_of_restart(bool again) const {
    std::vector<std::string> command = command_;
    const bool has_another = again && !options_.restart_with.empty();
    if (has_another) {
      auto words = restart_words("--restart-with", options_.restart_with, run_.from ? fmt::format("{}", run_.from->step) : "0", nodes_.live);
      if (!words) return words;
      command = std::move(*words);
    }
    const bool says_nodes = has_another && options_.restart_with.find("{nodes}") != std::string::npos;
    if (says_nodes || nodes_.lost.empty() || run_.simulated) return command;
    auto elsewhere = on_live_nodes(command, has_another ? detect_mpi(command) : mpi_, nodes_);
    if (elsewhere.status().kind() == Kind::unsupported) {
      say("holdfast: {}\n", elsewhere.status().sentence());
      return command;
    }
    return elsewhere;
  }

  bool is_from(const Checkpoint& one) const {
    return run_.from && one.run == run_.id && one.attempt == run_.from->attempt && one.step == run_.from->step;
  }

  // A directory is there as soon as a file of it is: for programs that look for it first.
  void make_directories(const Survey& survey) const {
    for (const Checkpoint& one : survey.checkpoints)
      if (is_from(one))
        for (const auto& [rank, file] : one.files) (void)catalog::make_with_parents(catalog::parent_of(file.version.file));
  }

  // What lies in them is not to be seen from here on, or is no more.
  void tidy_directories(const checkpoint::MayGo& may_go) const {
    if (const auto patterns = checkpoint::Patterns::resolve(settings_.checkpoint, settings_.complete))
      checkpoint::tidy_step_directories(*patterns, may_go);
  }

  std::vector<LocalEntry> of_this_attempt(const Survey& survey) const {
    std::vector<LocalEntry> own;
    std::copy_if(survey.local.begin(), survey.local.end(), std::back_inserter(own),
                 [this](const LocalEntry& entry) { return entry.attempt == run_.attempt; });
    return own;
  }

  // Also where none is whole: the next job begins from the start, and its program would go on from one of these. A job that has written nothing has made none.
  void remove_directories_of_others(const Checkpoint* newest, const Survey& survey) const {
    const auto is_own = [this](const LocalEntry& entry) { return entry.run == run_.id; };
    const bool has_written = newest || std::any_of(survey.local.begin(), survey.local.end(), is_own);
    tidy_directories([&](uint64_t step) { return has_written && !(newest && newest->step == step); });
  }

  // Who loses it while the attempt writes nothing newer has to hear of it.
  void remember_beginning(const Survey& survey) {
    seen_.reset();
    for (const Checkpoint& one : survey.checkpoints)
      if (is_from(one) && !run_.from->drained && !one.are_singles) seen_ = checkpoint::begun_with(one, survey.versions);
  }

  struct Unreadable {
    std::string name, why;
  };
  static std::string text_of(const Checkpoint& one) { return one.are_singles ? one.lost.front().version.file : name_of(one); }
  static std::string text_of(const checkpoint::SeenWhole& one) {
    if (!one.are_singles) return fmt::format("checkpoint {}", one.step);
    return one.files == 1 ? "the file that was protected by itself" : fmt::format("each of the {} files that were protected one by one", one.files);
  }

  // What cannot be read any more: of which every file has a version, or that was whole when it was seen last.
  Status check_unreadable(const Survey& survey) {
    std::optional<Unreadable> lost;
    if (const Checkpoint* const one = unreadable_after(survey, run_.id, begun_, lost_run_))
      lost = Unreadable{text_of(*one), why_unreadable(survey, *one)};
    else if (seen_ && has_gone(*seen_, survey, run_.id)) lost = Unreadable{text_of(*seen_), why_gone(survey)};
    lost_run_.clear();  // it is said once
    if (!lost) return {};
    if (!run_.from) return Status(Kind::lost, fmt::format("{} cannot be read, and there is no other: {}", lost->name, lost->why));
    say("holdfast: {} cannot be read: {}; back to checkpoint {}\n", lost->name, lost->why, run_.from->step);
    return {};
  }

  // The same when the program has ended well: what it began with, or has written. Not what is plain at its paths, or was removed.
  std::optional<Unreadable> lost_at_end(const Survey& survey) const {
    const Checkpoint* const one = unreadable_after(survey, run_.id, beginning_of(survey, run_.id).age, "");
    if (one && (is_from(*one) || one->attempt == run_.attempt) && !was_removed(*one, survey.local))
      return Unreadable{text_of(*one), why_unreadable(survey, *one)};
    for (const Checkpoint& singles : survey.checkpoints)
      if (singles.are_singles && singles.run == run_.id && !singles.lost.empty())
        return Unreadable{text_of(singles), why_unreadable(survey, singles)};
    if (!seen_ || !has_gone(*seen_, survey, run_.id) || checkpoint::was_removed(*seen_, survey, run_.attempt)) return {};
    return Unreadable{text_of(*seen_), why_gone(survey)};
  }

  std::string why_unreadable(const Survey& survey, const Checkpoint& lost) const {
    if (const checkpoint::Protected* const damaged = damaged_file(lost, damaged_))
      return fmt::format("{} is damaged beyond what {} tolerates; see: holdfast checkpoints --verify", damaged->version.file, *settings_.protect);
    return fmt::format("more of its nodes are lost than {} tolerates; bring back the data of {}", *settings_.protect, missing_of(survey, lost));
  }

  std::string why_gone(const Survey& survey) const {
    return fmt::format("more of {} nodes are lost than {} tolerates; bring back the data of {}",
                       seen_->are_singles && seen_->files > 1 ? "their" : "its", *settings_.protect,
                       fmt::join(nodes_that_would_help(*seen_, survey), ", "));
  }

  // The nodes that had a part of it and have it no more.
  static std::string missing_of(const Survey& survey, const Checkpoint& lost) {
    std::set<std::string> nodes;
    for (const catalog::FoundVersion& one : survey.versions) {
      const layout::Version& version = *one.manifest.version;
      if (!is_of(version, lost.run, Run::From{lost.attempt, lost.step})) continue;
      for (const layout::ManifestMember& member : one.manifest.members)
        if (!member.stale && std::count(one.on.begin(), one.on.end(), member.path) == 0) nodes.insert(member.path);
    }
    return nodes_text({nodes.begin(), nodes.end()});
  }

  static std::vector<std::string> names_of(const std::vector<std::string>& addresses) {
    std::vector<std::string> names;
    for (const std::string& address : addresses)
      if (const std::string node = parse_node_path(address).node; std::count(names.begin(), names.end(), node) == 0) names.push_back(node);
    return names;
  }
  static std::string nodes_text(const std::vector<std::string>& addresses) { return fmt::format("{}", fmt::join(names_of(addresses), ", ")); }

  void say_quarantined(const Survey& survey) const {
    std::set<uint64_t> steps;
    for (const Standing& one : standings_of(survey)) {
      const bool is_offered = one.state == "whole" || one.state == "superseded" || one.state == "drained";
      if (one.file.empty() && one.run == run_.id && one.attempt < run_.attempt && !is_offered && is_before(begun_, one.age)) steps.insert(one.step);
    }
    if (!steps.empty()) say("holdfast: not whole, and neither opened nor listed from here on: {}\n", checkpoints_text(steps));
    say_who_is_silent(survey, begun_);
  }

  // Of the last one after that: a rank that writes nothing of a step is waited for until the job ends well.
  void say_who_is_silent(const Survey& survey, const checkpoint::Age& after) const {
    const Checkpoint* last = nullptr;
    for (const Checkpoint& one : survey.checkpoints)
      if (one.run == run_.id && one.silent_rank() && is_before(after, one.age())) last = &one;
    if (last) say("holdfast: checkpoint {} is not whole: {}\n", last->step, last->why_not_rolled());
  }

  int once(const std::function<int(const FindBeginning&)>& attempt) {
    Protectors protectors;
    for (const Status& remark : protectors.start(run_, settings_, options_.with)) say("holdfast: {}\n", remark.sentence());
    ::setenv(checkpoint::run_variable, encode(run_).c_str(), 1);
    Caretaker caretaker(run_, settings_, options_, loss_, protectors, drainer_, before_, first_attempt_, passed_over_);
    steps_ = program_steps();
    const auto beginning = [&]() -> std::optional<TeamBeginning> {
      const auto from = has_steps() ? caretaker.hold_newest() : std::nullopt;
      if (!from) return std::nullopt;
      return TeamBeginning{from->step, [from](int team) { return checkpoint::encode_team(team, from); }};
    };
    ended_with_ = attempt(beginning);
    const KeepErrno why_not_started;  // for the caller, through all that is still to be done
    const int code = code_of_ranks(ended_with_, caretaker.has_seen_ranks());
    failed_on_ = protectors.finish();
    seal_shared(code == 0);
    if (code == 0) end_checkpoints(protectors.died());
    checkpoint::remove_left(run_.id, run_.attempt, settings_.local, settings_.deadline_ms);
    caretaker.finish();
    if (caretaker.seen()) see(seen_, *caretaker.seen());
    if (caretaker.has_lost_nodes()) loss_.reset();
    return code;
  }

  // Open MPI 5's launcher ends with 0 when a node is lost with its daemon, after it has ended the ranks of the others.
  int code_of_ranks(int code, bool any_seen) const {
    if (code != 0 || run_.teams > 1) return code;
    const checkpoint::RanksThen ranks = ranks_at_end(any_seen);
    if (any_seen && !ranks.any_begun()) {
      const std::string silent = ranks.silent.empty() ? "" : fmt::format(" (no answer from {})", nodes_text(ranks.silent));
      say("holdfast: the launcher has ended with 0, but the nodes of all ranks are lost{}: the job has failed\n", silent);
      return exit_ranks_lost;
    }
    if (ranks.never_ended.empty() || (ranks.any_ended && may_lose_ranks(command_))) return code;
    if (was_told_to_end()) return exit_ranks_lost;  // MPICH's launcher ends with 0 then
    say("holdfast: the launcher has ended with 0, but the end of {} was not seen (the first is rank {}), as after the loss of a node: the job has "
        "failed\n",
        plural(ranks.never_ended.size(), "rank"), ranks.never_ended.front());
    return exit_ranks_lost;
  }

  // Where ranks were seen, and nobody knows of them: a node that is late may.
  checkpoint::RanksThen ranks_at_end(bool any_seen) const {
    const auto end = end_of_patience();
    for (;;) {
      checkpoint::RanksThen ranks = checkpoint::ranks_then(run_, settings_.deadline_ms);
      if (!any_seen || ranks.any_begun() || !may_come(ranks.silent) || std::chrono::steady_clock::now() > end) return ranks;
      std::this_thread::sleep_for(between_looks);
    }
  }

  // Which one a program has read is not known where they are counted.
  bool has_steps() const {
    const auto patterns = checkpoint::Patterns::parse(settings_.checkpoint, settings_.complete);
    return patterns && patterns->have_step();
  }

  // What processes of several nodes have written becomes a version where all of them are done with it.
  void seal_shared(bool ended_well) const {
    const auto patterns = checkpoint::Patterns::parse(settings_.checkpoint, settings_.complete);
    const auto is_shared = [](const checkpoint::Pattern& one) { return one.is_shared(); };
    if (!patterns || std::none_of(patterns->all().begin(), patterns->all().end(), is_shared)) return;
    for (const std::string& remark : checkpoint::seal_left(run_, settings_, ended_well)) say("holdfast: {}\n", remark);
  }

  // All ranks have ended well: nobody writes more of any checkpoint. Where files complete them nothing else does.
  void end_checkpoints(const std::vector<std::string>& unknown) const {
    const auto patterns = checkpoint::Patterns::resolve(settings_.checkpoint, settings_.complete);
    if (!patterns || !patterns->are_rolled() || patterns->have_completing()) return;
    for (const Status& remark : checkpoint::roll_ended(run_, settings_, unknown)) say("holdfast: {}\n", remark.sentence());
  }

  // What was being drained when the others went, at the attempt's end, is too old by now as well.
  void finish_drains() {
    if (!drainer_.finish()) return;
    Surveyor surveyor(settings_.local, settings_.deadline_ms, passed_over_);
    const auto all = surveyor.look_during(run_);
    if (!all) return;
    auto old = to_drop(*all, run_.id, size_t(options_.keep));
    std::erase_if(old, [this](const checkpoint::Protected& one) { return drainer_.has_left(one); });
    drop_old(surveyor, old, run_, settings_, first_attempt_, before_);
  }

  // The program has ended well: what it closed is protected, and the last checkpoint is at its paths, or it is said why not.
  int finish() {
    catch_interrupts();
    checkpoint::note_over(run_, settings_.deadline_ms);
    finish_drains();
    const auto survey = look_at_end();
    if (!survey) return fail(survey.status(), exit_not_protected);
    const Checkpoint* const newest = newest_whole(survey->checkpoints, run_.id);
    std::set<uint64_t> left = unprotected_steps(*survey, newest);
    for (const Checkpoint& one : survey->checkpoints) {
      if (one.run != run_.id || one.attempt != run_.attempt || one.rivals.empty() || (newest && is_before(one.age(), newest->age()))) continue;
      say("holdfast: {} fails: {}, and nobody can say which is right; let one rank write it\n",
          one.are_singles ? one.rivals.front().version.file : name_of(one), rivalry_in(one, *survey));
      left.insert(one.step);
    }
    say_what_is_there(newest);
    // What an attempt has removed that was killed then the last one has gone on from.
    const auto is_meant = [own = of_this_attempt(*survey)](const Checkpoint& one) { return one.removed.empty() && !was_removed(one, own); };
    const bool sees_all = newest && left.empty() && unseen_on(*survey, newest).empty();
    const auto changed = sees_all ? left_by_program(survey->checkpoints, run_, *newest) : std::nullopt;
    const bool is_changed = changed && drainer_.drains() && is_meant(*changed);
    const bool drained = is_changed ? drain_changed(*changed, *newest, *survey) : drain_last(*survey, is_meant);
    if (drained && newest) clear_paths(*survey, *newest);
    remove_directories_of_others(newest, *survey);
    if (newest) say_what_is_newer(*survey, run_, is_changed ? *changed : *newest, left, settings_);
    const auto lost = lost_at_end(*survey);
    if (lost) say("holdfast: the program has ended well, and {} cannot be read: {}\n", lost->name, lost->why);
    if (const auto unseen = unseen_on(*survey, newest); !unseen.empty()) {
      say("holdfast: the program has ended well, and whether all that was written on {} is protected cannot be told, for no agent answers there; "
          "bring it "
          "back, and look: holdfast checkpoints\n",
          nodes_text(unseen));
      return exit_not_protected;
    }
    if (say_unprotected_singles(*survey, run_)) return exit_not_protected;
    drop_removed_singles(*survey, run_, settings_);
    if (left.empty()) {
      checkpoint::note_ended_well(run_, newest && drained && drainer_.drains(), settings_.deadline_ms);
      // What lies on the nodes may be all that there is of them.
      if (lost) return exit_not_protected;
      if (!newest && say_why_none_is_whole(*survey)) return exit_not_protected;
      forget_copies(*survey, newest);
      return drained ? 0 : exit_not_protected;
    }
    say("holdfast: the program has ended well, and {} {} not protected; see: holdfast checkpoints\n", checkpoints_text(left),
        left.size() == 1 ? "is" : "are");
    return exit_not_protected;
  }

  // A node that was cut off for a moment, or is late, may have what seems to be missing. It is asked again, for a while. Not one without the note of its
  // agent, which has ended.
  Result<Survey> look_at_end() const {
    Surveyor surveyor(settings_.local, settings_.deadline_ms, damaged_);
    const auto end = end_of_patience();
    for (;;) {
      auto survey = surveyor.look(run_.id);
      if (survey) {
        leave_out_later(survey->versions, run_);
        tell_checkpoints(*survey, damaged_);
        unmark_what_is_whole(*survey);
      }
      if (!survey || !may_come(survey->silent) || !misses_something(*survey) || std::chrono::steady_clock::now() > end) return survey;
      std::this_thread::sleep_for(between_looks);
    }
  }

  // The program has closed all that it meant to. What a node that is gone has not protected nobody knows.
  void unmark_what_is_whole(Survey& survey) const {
    unmark_beginning(survey.checkpoints, run_);
    const auto is_silent = [&](const std::string& node) { return std::count(survey.silent.begin(), survey.silent.end(), node) > 0; };
    if (std::any_of(failed_on_.begin(), failed_on_.end(), is_silent)) return;
    unmark_ended_well(survey.checkpoints, {{run_.id, {run_.attempt}}}, survey.local);
  }

  std::chrono::steady_clock::time_point end_of_patience() const {
    constexpr int deadlines = 3;
    return std::chrono::steady_clock::now() + deadlines * std::chrono::milliseconds(settings_.deadline_ms);
  }

  static bool may_come(const std::vector<std::string>& silent) {
    const std::vector<std::string> known = known_directories();
    return std::any_of(silent.begin(), silent.end(), [&](const std::string& node) { return std::count(known.begin(), known.end(), node) > 0; });
  }

  bool misses_something(const Survey& survey) const {
    const Checkpoint* const newest = newest_whole(survey.checkpoints, run_.id);
    const bool has_a_later_one = std::any_of(survey.checkpoints.begin(), survey.checkpoints.end(), [&](const Checkpoint& one) {
      return one.run == run_.id && one.attempt == run_.attempt && (!newest || is_before(newest->age(), one.age()));
    });
    return !unprotected_steps(survey, newest).empty() || !checkpoint::unprotected_singles(survey, run_.id, run_.attempt).empty() ||
           !unseen_on(survey, newest).empty() || has_a_later_one || lost_at_end(survey);
  }

  // Of this attempt, by what lies on the nodes that answer.
  std::set<uint64_t> unprotected_steps(const Survey& survey, const Checkpoint* newest) const {
    std::set<uint64_t> steps;
    for (const LocalEntry& entry : survey.local) {
      const bool open = !checkpoint::is_settled(entry.state);
      const bool replaced = newest && is_before(age_of(entry), newest->age_beside(entry.name.rank, entry.name.writer));
      if (entry.attempt == run_.attempt && open && !replaced && !entry.name.is_single()) steps.insert(entry.name.step);
    }
    return steps;
  }

  // Something may not be protected there, and the node does not answer, so that nobody can say whether that matters still.
  std::vector<std::string> unseen_on(const Survey& survey, const Checkpoint* newest) const {
    const auto patterns = checkpoint::Patterns::resolve(settings_.checkpoint, settings_.complete);
    std::vector<std::string> nodes;
    for (const std::string& node : failed_on_) {
      if (std::count(survey.silent.begin(), survey.silent.end(), node) == 0) continue;
      if (!newest || !patterns || checkpoint::may_have_ranks(node, survey, run_, *newest, *patterns)) nodes.push_back(node);
    }
    return nodes;
  }

  // Programs end before their first checkpoint; but a path that goes through a link, or a node of another name, looks like that as well. True where
  // this attempt has written some.
  bool say_why_none_is_whole(const Survey& survey) const {
    const Checkpoint* last = nullptr;
    for (const Checkpoint& one : survey.checkpoints)
      if (one.run == run_.id) last = &one;
    const std::string why = last ? last->why_not_rolled() : "";
    if (run_.from && run_.from->drained && (!last || last->attempt != run_.attempt))
      say("holdfast: no checkpoint was written; {}, with which the job began, is plain at its paths\n", run_.from->step);
    else if (last)
      say("holdfast: no checkpoint is whole: of the {} of checkpoint {} {} are protected{}{}\n", plural(last->files_of_all(), "file"), last->step,
          last->files.size(), why.empty() ? "" : ", and ", why);
    else if (survey.local.empty())
      say("holdfast: no file was written that --checkpoint '{}' means, by a process on {}\n", fmt::join(settings_.checkpoint, "' or '"),
          nodes_text(run_.nodes));
    return last && last->attempt == run_.attempt;
  }

  // What stood at their paths before is no more what the program has left there. Only when the newest is where it is to be: until then the files of
  // before may be all that the user can reach.
  void clear_paths(const Survey& survey, const Checkpoint& newest) {
    for (const Checkpoint& one : survey.checkpoints)
      if (one.run == run_.id && one.attempt >= first_attempt_ && !is_before(newest.age(), one.age()))
        for (const auto& [place, file] : one.files) before_.replaced(file.version.file);
    before_.remove(survey.drained, kept_);
  }

  void give_up() {
    catch_interrupts();
    finish_drains();
    auto survey = Surveyor(settings_.local, settings_.deadline_ms, damaged_).look(run_.id);
    if (!survey) return;
    unmark_beginning(survey->checkpoints, run_);
    const Checkpoint* const newest = newest_whole(survey->checkpoints, run_.id);
    say_what_is_there(newest);
    say_who_is_silent(*survey, newest ? newest->age() : checkpoint::Age());
    // What the program has removed for the sake of a newer one may be all that it can go on from.
    const bool drained = drain_last(*survey, [](const Checkpoint& one) { return one.removed.empty(); });
    if (drained && newest) clear_paths(*survey, *newest);
    remove_directories_of_others(newest, *survey);
    forget_until_all(*survey, newest);
  }

  // The newest whole one of those that are meant. True where nothing is left to do.
  bool drain_last(const Survey& survey, const std::function<bool(const Checkpoint&)>& is_meant) {
    const Checkpoint* last = nullptr;
    for (const Checkpoint& one : survey.checkpoints)
      if (one.run == run_.id && one.whole() && is_meant(one)) last = &one;  // in their order
    const Checkpoint* const newest = last ? last : newest_whole(survey.checkpoints, run_.id);
    if (!newest || stands_before_plain_beginning(*newest)) return true;
    if (last) return drain_this(*last, survey);
    if (!newest->are_singles) say("holdfast: {} is not drained, for the program has removed or renamed a file of it\n", name_of(*newest));
    return true;
  }

  // What the attempt has begun with stands at its paths, and an older one may have files of the same names.
  bool stands_before_plain_beginning(const Checkpoint& one) const { return run_.from && run_.from->drained && is_before(one.age(), begun_); }

  bool drain_this(const Checkpoint& one, const Survey& survey) {
    if (!drainer_.drain_last(one, survey)) return false;
    // The survey is of before, and another machine's clock may say that these files are older than the run.
    for (const auto& [place, file] : one.files)
      if (drainer_.drains()) kept_.insert(file.version.file);
    return true;
  }

  // No rank has died since it was written, so what is of two attempts is of one time.
  bool drain_changed(const Checkpoint& changed, const Checkpoint& begun, const Survey& survey) {
    const auto count =
        std::count_if(changed.files.begin(), changed.files.end(), [&](const auto& file) { return file.second.version.attempt == run_.attempt; });
    say("holdfast: of the {} of checkpoint {} {} written again by ranks that have ended well; all of them are drained as they are now\n",
        plural(begun.files.size(), "file"), begun.step, count == 1 ? "1 was" : fmt::format("{} were", count));
    return drain_this(changed, survey);
  }

  void say_what_is_there(const Checkpoint* newest) const {
    if (!newest) return;
    const auto nodes = newest->nodes();
    if (newest->are_singles)
      return say("holdfast: {} on {} ({}); go on from there with: holdfast run --resume ...\n", are_singles(*newest),
                 nodes_text({nodes.begin(), nodes.end()}), human_bytes(newest->bytes));
    say("holdfast: checkpoint {} is whole ({}, {}) on {}; go on from it with: holdfast run --resume ...\n", newest->step,
        plural(newest->files.size(), "file"), human_bytes(newest->bytes), nodes_text({nodes.begin(), nodes.end()}));
  }

  // What shows that a checkpoint is not to be gone on from stays as long as that is there, and what shows that a file was removed.
  void forget_copies(const Survey& survey, const Checkpoint* newest) {
    const auto is_torn = [&](const Checkpoint& one) { return one.run == run_.id && !one.torn_update.empty(); };
    const auto is_given_up = [&](const Checkpoint& one) { return one.run == run_.id && !one.removed.empty(); };
    const auto& all = survey.checkpoints;
    const bool any_passed_over = std::any_of(all.begin(), all.end(), is_torn) || std::any_of(all.begin(), all.end(), is_given_up);
    if (!any_passed_over && !checkpoint::remembers_removed(survey, run_.id)) return forget_local(newest != nullptr);
    remove_unfinished_before(any_later);
    forget_until_all(survey, newest);
  }

  void forget_until_all(const Survey& survey, const Checkpoint* newest) const {
    checkpoint::forget_unneeded(survey, run_.id, any_later, newest ? newest->age() : checkpoint::Age(), settings_);
  }

  // The local copies were a cache. Whose checkpoints these are stays known where there are some, and which attempts have ended well.
  void forget_local(bool has_checkpoints) const {
    remove_unfinished_before(any_later);  // by protectors that were started anew as well
    const auto pool = catalog::look_at_pool(run_.nodes, settings_.deadline_ms);
    if (!pool) return;
    for (const catalog::Member& member : pool->members)
      if (member.usable())
        (void)member.lane->run([target = member.target, at = fmt::format("{}/{}", checkpoint::local_directory, run_.id), has_checkpoints] {
          return has_checkpoints ? checkpoint::remove_attempts(*target, at) : target->remove_directory(at);
        });
    if (has_checkpoints) checkpoint::note_program(run_.id, program_of(command_), run_.nodes, settings_.deadline_ms);
  }

  const Settings& settings_;
  const CheckpointOptions& options_;
  const std::vector<std::string>& command_;
  const Mpi& mpi_;
  std::optional<SimulatedLoss> loss_;
  LiveRun live_;
  Run run_;
  bool is_new_run_ = true;                     // until its first attempt: there are no checkpoints of it
  checkpoint::Age begun_;                      // of what this attempt has begun with; of attempt 0: nothing
  std::optional<checkpoint::SeenWhole> seen_;  // the newest one, that or a later one
  NodesNow nodes_;
  std::optional<std::map<std::string, std::vector<std::string>>> steps_;  // of Slurm, before the last attempt
  std::set<std::string> damaged_, passed_over_;  // versions that this attempt has passed over, by their ids; those, and torn updates
  std::string lost_run_;                         // later than the one that goes on, with checkpoints of which more is lost than its scheme bears
  layout::Attempt last_attempt_ = 0;
  std::vector<std::string> failed_on_;  // addresses; of the last attempt
  layout::Attempt first_attempt_;
  int ended_with_ = 0;  // the last attempt, whatever became of its ranks
  Drainer drainer_;
  PlainBefore before_;
  std::set<std::string> kept_;  // paths at which the last checkpoint is plain
};

}  // namespace

int run_attempts(const Settings& settings, const CheckpointOptions& options, const std::vector<std::string>& command, const Mpi& mpi,
                 const Attempt& attempt) {
  return Attempts(settings, options, command, mpi).run(attempt);
}

}  // namespace holdfast::cli
