// holdfast plan replicas: what it buys to run a job several times side by side, and to start lost teams again.
#include "cli/plan/replicas.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <random>

#include "base/config.hpp"
#include "base/say.hpp"
#include "cli/command.hpp"
#include "cli/output.hpp"
#include "planning/reliability.hpp"
#include "planning/replicas.hpp"
#include "redundant/membership/membership.hpp"

namespace holdfast::cli {

namespace {

namespace pl = holdfast::planning;
using redundant::Membership;

struct ReplicasOptions {
  int ranks = 0;
  std::string mtbf, relaunch, every, length;
  bool check = false, json = false;
};

// By trial: the mean, and its standard error.
struct Trial {
  double back = 0, expected = 0;  // of the jobs that were tried
  double mean = 0, error = 0;
  double z() const { return (mean - expected) / error; }
};

struct ReplicasRow {
  pl::Replicated job;
  double mean = 0, interrupted = 0;
  std::optional<Trial> trial;
};

// One job, with the membership of the product: who lives, who stands by and who is started again is its word. Which team fails, and when one has
// caught up, is drawn. What comes next rests on the number of teams alone. So a job goes on with a membership of its own before it has used up the
// numbers.
class TriedJob {
 public:
  TriedJob(const pl::Replicated& job, std::mt19937_64& random) : job_(job), random_(random) {}
  double until_interrupted() {
    double time = 0;
    for (begin(job_.teams);;) {
      const std::vector<int> living = those(false), behind = those(true);
      const double fails = 1 / job_.team_mtbf, comes = job_.back > 0 ? 1 / job_.back : 0;
      const double rates[] = {fails * double(living.size()), fails * double(behind.size()), comes * double(behind.size())};
      time += std::exponential_distribution<>(rates[0] + rates[1] + rates[2])(random_);
      const auto what = std::discrete_distribution<>(std::begin(rates), std::end(rates))(random_);
      if (what == 0 && living.size() == 1) return time;
      if (what < 2) lose(one_of(what == 0 ? living : behind));
      else come(one_of(behind));
      if (members_->teams() > job_.teams + 2) begin(int(those(false).size()));
    }
  }

 private:
  static constexpr int ranks = 2, most_again = 4;

  void begin(int living) {
    members_.emplace(job_.teams, job_.back > 0 ? most_again : 0);
    for (int team = 0; team < job_.teams; ++team) join(team);
    for (int team = job_.teams; team-- > living;) lose(team);
  }
  void join(int team) {
    for (int rank = 0; rank < ranks; ++rank) (void)members_->joined(team, rank, ranks);
  }
  void lose(int team) {
    (void)members_->gone(team, int(random_() % ranks), "");
    for (int other = job_.teams; other < members_->teams(); ++other)
      if (!members_->is_lost(other)) join(other);
  }
  void come(int team) {
    for (int rank = 0; rank < ranks; ++rank) (void)members_->caught_up(team, rank);
  }
  std::vector<int> those(bool that_stand_by) const {
    std::vector<int> found;
    for (int team = 0; team < members_->teams(); ++team)
      if (!members_->is_lost(team) && members_->stands_by(team) == that_stand_by) found.push_back(team);
    return found;
  }
  int one_of(const std::vector<int>& teams) { return teams[size_t(random_() % teams.size())]; }

  const pl::Replicated job_;
  std::mt19937_64& random_;
  std::optional<Membership> members_;
};

// Where teams come back so soon that a job outlasts all patience, they are given more time.
Trial try_out(pl::Replicated job) {
  constexpr int jobs = 2000;
  constexpr double soonest = 0.1;
  if (job.back > 0) job.back = std::max(job.back, soonest * job.team_mtbf);
  std::mt19937_64 random(1);
  double sum = 0, squares = 0;
  for (int i = 0; i < jobs; ++i) {
    const double time = TriedJob(job, random).until_interrupted();
    sum += time;
    squares += time * time;
  }
  const double mean = sum / jobs;
  return {job.back, pl::mean_time_to_interruption(job), mean, std::sqrt((squares / jobs - mean * mean) / jobs)};
}

bool agrees(const ReplicasRow& row) { return !row.trial || std::abs(row.trial->z()) <= pl::most_z; }

std::string times(double ratio) { return ratio < 100 ? fmt::format("{:.2f}x", ratio) : fmt::format("{:.0f}x", ratio); }

std::string human_hours(double seconds) {
  const double hours = seconds / 3600;
  return hours < 100 ? fmt::format("{:.1f} hours", hours) : fmt::format("{:.1f} days", hours / 24);
}

void print(const std::vector<ReplicasRow>& rows, const ReplicasOptions& options, double length) {
  show("{} ranks, each with a mean time of {} between failures\n", options.ranks, options.mtbf);
  std::vector<std::string> headings{"teams", "a lost one", ">until interrupted", ">", ">a job of " + human_hours(length) + " is interrupted"};
  if (options.check) headings.emplace_back(">trial");
  Table table(headings);
  const std::string back = options.every.empty() ? options.relaunch : fmt::format("{} + {}/2", options.relaunch, options.every);
  for (const ReplicasRow& row : rows) {
    std::vector<std::string> cells{std::to_string(row.job.teams), row.job.back > 0 ? "is back in " + back : "stays lost", human_hours(row.mean),
                                   times(row.mean / row.job.team_mtbf), fmt::format("{:.3g} %", row.interrupted * 100)};
    if (row.trial) cells.push_back(fmt::format("z = {:+.2f}", row.trial->z()));
    table.add(cells, std::vector<Colour>(cells.size(), Colour::none));
  }
  table.print();
  if (!options.relaunch.empty())
    show("  back: started again, and caught up with the others; the loss of all of them before that counts as the end\n");
  if (options.check)
    show(
        "  trial: jobs drawn at random on the membership of holdfast run --replicas, against the formula; beyond {} one of them is wrong\n"
        "         (a lost team is back after a tenth of the first line's time there, or later)\n",
        pl::most_z);
}

nlohmann::json json_of(const std::vector<ReplicasRow>& rows, const ReplicasOptions& options, double length) {
  nlohmann::json out{{"ranks", options.ranks}, {"job_seconds", length}};
  for (const ReplicasRow& row : rows) {
    nlohmann::json one{{"teams", row.job.teams},
                       {"relaunch_seconds", row.job.back},
                       {"mean_time_to_interruption_seconds", row.mean},
                       {"times_one_team", row.mean / row.job.team_mtbf},
                       {"interrupted", row.interrupted}};
    if (row.trial)
      one["check"] = {{"relaunch_seconds", row.trial->back},
                      {"expected_seconds", row.trial->expected},
                      {"mean_seconds", row.trial->mean},
                      {"z", row.trial->z()}};
    out["jobs"].push_back(std::move(one));
  }
  return out;
}

Status read_time(const char* option, const std::string& text, double& seconds) {
  const auto ms = parse_duration_ms(text);
  if (!ms) return Status(Kind::invalid, fmt::format("{}: {}", option, ms.status().sentence()));
  if (*ms == 0) return Status(Kind::invalid, fmt::format("{} must be more than nothing", option));
  seconds = double(*ms) / 1000;
  return Status();
}

int plan_replicas(const ReplicasOptions& options) {
  double mtbf = 0, back = 0, length = 0;
  if (const Status read = read_time("--mtbf", options.mtbf, mtbf); !read) return fail(read);
  const double team_mtbf = mtbf / options.ranks;
  length = team_mtbf;
  if (!options.relaunch.empty())
    if (const Status read = read_time("--relaunch", options.relaunch, back); !read) return fail(read);
  if (!options.every.empty()) {
    double every = 0;
    if (const Status read = read_time("--checkpoint-every", options.every, every); !read) return fail(read);
    if (options.relaunch.empty())
      return fail(Status(Kind::invalid, "--checkpoint-every is about a team that is started again: say with --relaunch how long that takes"));
    back += every / 2;  // the newest one is so old on average
  }
  if (!options.length.empty())
    if (const Status read = read_time("--job", options.length, length); !read) return fail(read);
  std::vector<ReplicasRow> rows;
  const auto add = [&](int teams, double until_back) {
    const pl::Replicated job{teams, team_mtbf, until_back};
    rows.push_back({job, pl::mean_time_to_interruption(job), pl::interrupted_within(job, length), {}});
    if (options.check) rows.back().trial = try_out(job);
  };
  for (const int teams : {1, 2, 3}) add(teams, 0);
  if (back > 0)
    for (const int teams : {2, 3}) add(teams, back);
  if (options.json) print_json(json_of(rows, options, length));
  else print(rows, options, length);
  return std::all_of(rows.begin(), rows.end(), [](const ReplicasRow& row) { return agrees(row); })
             ? exit_ok
             : fail(Status(Kind::internal, "the formula and the membership do not agree"));
}

}  // namespace

void add_plan_of_replicas(CLI::App& plan, int& code) {
  auto options = std::make_shared<ReplicasOptions>();
  CLI::App* sub = plan.add_subcommand("replicas", "Say how much longer a job runs that is there several times (holdfast run --replicas)");
  sub->add_option("--ranks", options->ranks, "Ranks of the job")->required()->check(CLI::Range(1, 100000000))->type_name("N");
  sub->add_option("--mtbf", options->mtbf, "Mean time between failures of what one rank runs on: 5y")->required()->type_name("TIME");
  sub->add_option("--relaunch", options->relaunch, "How long until a lost team has been started again and has caught up: 10m")->type_name("TIME");
  sub->add_option("--checkpoint-every", options->every,
                  "It goes on from its newest checkpoint, and these are so far apart: half of that is added to --relaunch")
      ->type_name("TIME");
  sub->add_option("--job", options->length, "How long the job runs, if not one mean time between failures of a team")->type_name("TIME");
  sub->add_flag("--check", options->check, "Try the formula on the membership of the product, with failures at random");
  sub->add_flag("--json", options->json, "The same facts for a machine");
  sub->footer("Example:\n  holdfast plan replicas --ranks 1000 --mtbf 5y --relaunch 10m");
  sub->callback([options, &code] { code = plan_replicas(*options); });
}

}  // namespace holdfast::cli
