// holdfast plan: how often to write a checkpoint, and what a scheme costs and buys.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>

#include "base/say.hpp"
#include "cli/command.hpp"
#include "cli/output.hpp"
#include "cli/plan/reliability.hpp"
#include "cli/plan/replicas.hpp"
#include "layout/geometry.hpp"
#include "layout/groups.hpp"
#include "planning/durability.hpp"
#include "planning/history.hpp"
#include "planning/interval.hpp"
#include "planning/reliability.hpp"

namespace holdfast::cli {

namespace {

namespace pl = holdfast::planning;

// As typed; empty is not given.
struct PlanOptions {
  std::string history, from, to, per = "all";
  std::string mtbf, node_mtbf, checkpoint, bandwidth, restart = "0", target_mtbf, rebuild, within = "1y";
  uint64_t nodes = 0, of_nodes = 0;
  int targets = 0;
  std::vector<std::string> schemes;
  bool json = false, local = false;
};

// The same as numbers, in seconds and bytes.
struct Facts {
  std::vector<pl::Count> counts;
  double mtbf = 0;  // of the job; 0: not known
  std::string mtbf_from;
  double checkpoint_bytes = 0, bytes_per_second = 0, restart = 0;
  double target_mtbf = 0, rebuild = 0, within = 0;
  double node_mtbf = 0;  // of nodes that have the checkpoints themselves; 0: other targets have them
  std::vector<layout::Scheme> schemes;

  bool has_losses() const { return target_mtbf > 0 || node_mtbf > 0; }
  bool has_job() const { return mtbf > 0 && checkpoint_bytes > 0; }
  pl::Job job(double volume = 1) const { return {mtbf, volume * checkpoint_bytes / bytes_per_second, restart}; }
};

std::string human_time(double seconds) {
  constexpr double kDay = 86400, kYear = 365.25 * kDay;
  if (seconds < 0.9995) return fmt::format("{:.3g} ms", seconds * 1000);
  if (seconds < 60) return fmt::format("{:.1f} s", seconds);
  if (seconds < 100 * 3600.0) return human_seconds(seconds);
  if (seconds < 0.999 * kYear) return fmt::format("{:.1f} days", seconds / kDay);
  if (seconds < 1e4 * kYear) return fmt::format("{:.1f} years", seconds / kYear);
  return fmt::format("{:.1e} years", seconds / kYear);
}

Status named(const std::string& option, const Status& status) { return Status(Kind::invalid, fmt::format("{}: {}", option, status.sentence())); }

Status read_time(const std::string& option, const std::string& text, double& seconds) {
  if (text.empty()) return Status();
  const auto ms = parse_duration_ms(text);
  if (!ms) return named(option, ms.status());
  seconds = double(*ms) / 1000;
  return Status();
}

Status read_bytes(const std::string& option, std::string text, double& bytes) {
  if (text.empty()) return Status();
  if (text.ends_with("/s")) text.resize(text.size() - 2);
  // Fractions are welcome here: 1.5TiB.
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, std::chars_format::fixed);
  const auto unit = parse_size("1" + text.substr(size_t(end - text.data())));
  if (error != std::errc() || !unit || !(number > 0))
    return Status(Kind::invalid, fmt::format("{}: '{}' is not a size: write 500MiB, 1.5TiB or 2G", option, text));
  bytes = number * double(*unit);
  return Status();
}

Status count_history(const PlanOptions& options, Facts& facts) {
  std::ifstream file(options.history);
  std::stringstream text;
  if (!file || !(text << file.rdbuf())) return Status(Kind::not_found, fmt::format("{}: cannot be read", options.history));
  auto history = pl::parse_history(text.str());
  if (!history) return Status(Kind::invalid, fmt::format("{}: {}", options.history, history.status().sentence()));
  if (history->size() < 2 && (options.from.empty() || options.to.empty()))
    return Status(Kind::invalid, fmt::format("{} has {}: two are needed, or --from and --to", options.history, plural(history->size(), "date")));
  int64_t begin = history->empty() ? 0 : history->front().when, end = history->empty() ? 0 : history->back().when;
  for (auto [option, text, value] : {std::tuple{"--from", &options.from, &begin}, std::tuple{"--to", &options.to, &end}}) {
    if (text->empty()) continue;
    const auto date = pl::parse_date(*text);
    if (!date) return named(option, date.status());
    *value = *date;
  }
  if (end <= begin) return Status(Kind::invalid, "--to must be later than --from");
  // Time that begins and ends with an event has one interval fewer than events. The first one begins it and is not counted, the last one is.
  if (options.from.empty() && !history->empty()) history->erase(history->begin());
  if (options.to.empty()) ++end;
  const pl::Period period = options.per == "year"      ? pl::Period::year
                            : options.per == "quarter" ? pl::Period::quarter
                            : options.per == "month"   ? pl::Period::month
                                                       : pl::Period::all;
  facts.counts = pl::count(*history, begin, end, period);
  // It ends because of its last event, and nobody knows how long the next one was waited for. (One that is the whole history begins with one, too.)
  if (options.to.empty() && facts.counts.size() > 1) facts.counts.back().cut = true;
  const pl::Count whole = pl::count(*history, begin, end, pl::Period::all)[0];
  if (facts.mtbf == 0 && whole.mtbf()) {
    facts.mtbf = *whole.mtbf();
    facts.mtbf_from = options.history;
  }
  return Status();
}

Status read_mtbf(const PlanOptions& options, Facts& facts) {
  if (!options.mtbf.empty() && !options.node_mtbf.empty()) return Status(Kind::invalid, "--mtbf and --node-mtbf say the same in two ways: give one");
  HF_TRY(read_time("--mtbf", options.mtbf, facts.mtbf));
  double node = 0;
  HF_TRY(read_time("--node-mtbf", options.node_mtbf, node));
  if (node > 0 && options.nodes == 0) return Status(Kind::invalid, "--node-mtbf needs --nodes: how many nodes the job has");
  if (node > 0) facts.mtbf = node / double(options.nodes);
  if (!options.history.empty()) HF_TRY(count_history(options, facts));
  // A job on a part of the machine meets that part of its failures.
  if (options.of_nodes > 0 && facts.mtbf > 0 && node == 0) {
    if (options.nodes == 0 || options.nodes > options.of_nodes)
      return Status(Kind::invalid, "--of-nodes N needs --nodes, at most N: how many of them the job has");
    facts.mtbf *= double(options.of_nodes) / double(options.nodes);
  }
  return Status();
}

Status read_schemes(const PlanOptions& options, Facts& facts) {
  std::vector<std::string> names = options.schemes;
  if (names.empty()) names = {"mirror:1", "mirror:2", "mirror:3", "rs:4+2", "rs:8+3"};
  for (const std::string& name : names) {
    auto scheme = layout::Scheme::parse(name);
    if (!scheme) return scheme.status();
    if (options.targets > 0 && scheme->width() > options.targets) {
      if (!options.schemes.empty())
        return Status(Kind::invalid, fmt::format("{} needs {} targets, --targets says {}", name, scheme->width(), options.targets));
      continue;
    }
    if (options.local && uint64_t(scheme->width()) > options.nodes) {
      if (!options.schemes.empty())
        return Status(Kind::invalid, fmt::format("{} needs {} nodes, --nodes says {}", name, scheme->width(), options.nodes));
      continue;
    }
    facts.schemes.push_back(*scheme);
  }
  return Status();
}

// Where the checkpoints lie on the job's own nodes, what is lost with nodes are these.
Status read_local(const PlanOptions& options, Facts& facts) {
  if (!options.local) return Status();
  if (options.target_mtbf.empty() && options.targets == 0 && !options.node_mtbf.empty() && facts.checkpoint_bytes > 0)
    return read_time("--node-mtbf", options.node_mtbf, facts.node_mtbf);
  return Status(
      Kind::invalid,
      "--local needs --nodes, --node-mtbf, --checkpoint and --bandwidth (of all nodes' own disks together), and no --targets: the nodes are these");
}

Result<Facts> read_facts(const PlanOptions& options) {
  Facts facts;
  HF_TRY(read_mtbf(options, facts));
  HF_TRY(read_bytes("--checkpoint", options.checkpoint, facts.checkpoint_bytes));
  HF_TRY(read_bytes("--bandwidth", options.bandwidth, facts.bytes_per_second));
  HF_TRY(read_time("--restart", options.restart, facts.restart));
  HF_TRY(read_time("--target-mtbf", options.target_mtbf, facts.target_mtbf));
  HF_TRY(read_time("--rebuild", options.rebuild.empty() && !options.local ? "1d" : options.rebuild, facts.rebuild));
  HF_TRY(read_time("--within", options.within, facts.within));
  HF_TRY(read_local(options, facts));
  HF_TRY(read_schemes(options, facts));
  if ((facts.checkpoint_bytes > 0) != (facts.bytes_per_second > 0))
    return Status(Kind::invalid,
                  "--checkpoint and --bandwidth belong together: a size such as 1.5TiB and what is written in a second, such as 10GiB");
  if (facts.checkpoint_bytes > 0 && facts.mtbf == 0)
    return Status(Kind::invalid, "how often does the job fail? give --mtbf TIME, --node-mtbf TIME --nodes N, or --history FILE");
  if (facts.target_mtbf > 0 && facts.rebuild == 0) return Status(Kind::invalid, "--rebuild: must be more than nothing");
  if (facts.counts.empty() && !facts.has_job() && facts.target_mtbf == 0)
    return Status(Kind::invalid, "nothing to plan: give --history FILE, --mtbf with --checkpoint and --bandwidth, or --target-mtbf");
  return facts;
}

struct Worth {
  double volume = 1;  // bytes on targets for each byte of the file
  std::optional<double> checkpoint, interval, waste;
  std::optional<double> time_to_loss, loss_probability;
};

// By the model of `plan reliability`: nodes that are lost within one window take a checkpoint with them where a group loses more than the scheme bears.
// The window ends when a newer checkpoint is whole, or what was lost is made anew.
void add_losses_of_nodes(const layout::Scheme& scheme, const PlanOptions& options, const Facts& facts, Worth& worth) {
  const double window = facts.rebuild > 0 ? facts.rebuild : *worth.interval + *worth.checkpoint;
  const auto groups = layout::group_sizes(int(options.nodes), scheme.width());
  const double loss = pl::job_loss_in(groups, double(options.nodes) * window / facts.node_mtbf, scheme.m);
  if (loss > 0) worth.time_to_loss = window / loss;
  worth.loss_probability = loss < 1 ? -std::expm1(facts.within / window * std::log1p(-loss)) : 1;
}

Worth worth_of(const layout::Scheme& scheme, const PlanOptions& options, const Facts& facts) {
  Worth worth;
  worth.volume = double(scheme.width()) / scheme.k;
  if (facts.has_job()) {
    const pl::Job job = facts.job(options.local ? 1 : worth.volume);  // redundancy comes behind the program's back
    worth.checkpoint = job.checkpoint;
    worth.interval = pl::daly_interval(job);
    worth.waste = pl::waste(job, *worth.interval);
  }
  if (options.local) add_losses_of_nodes(scheme, options, facts, worth);
  if (facts.target_mtbf > 0) {
    // A file lies on all targets that there are, whatever its scheme bears.
    const int count = std::max(scheme.width(), options.targets);
    const pl::Targets targets{count, facts.target_mtbf, facts.rebuild};
    worth.time_to_loss = pl::mean_time_to_loss(targets, scheme.m);
    worth.loss_probability = pl::probability_of_loss(targets, scheme.m, facts.within);
  }
  return worth;
}

// Around the best interval, in steps of sqrt(2).
std::vector<std::pair<double, double>> waste_curve(const Facts& facts) {
  std::vector<std::pair<double, double>> curve;
  for (int step = -8; step <= 8; ++step) {
    const double interval = pl::daly_interval(facts.job()) * std::pow(2.0, step / 2.0);
    curve.emplace_back(interval, pl::waste(facts.job(), interval));
  }
  return curve;
}

void print_history(const PlanOptions& options, const Facts& facts) {
  auto mean = [](const std::optional<double>& seconds) {
    return seconds ? fmt::format("{:.1f} hours ({:.1f} days)", *seconds / 3600, *seconds / 86400) : std::string("-");
  };
  show("{}: interrupts of the machine\n", options.history);
  Table table({"period", ">failures", ">MTBF", ">interrupts", ">MTBI"});
  for (const pl::Count& count : facts.counts)
    table.add({pl::date_of(count.begin) + " - " + pl::date_of(count.end - 1) + (count.cut ? " (cut)" : ""), std::to_string(count.failures),
               mean(count.mtbf()), std::to_string(count.interrupts), mean(count.mtbi())});
  table.print();
}

void print_interval(const Facts& facts) {
  const pl::Job job = facts.job();
  const double best = pl::daly_interval(job);
  show("a checkpoint of {} at {}/s takes {}; the job fails every {} on the mean\n", human_bytes(uint64_t(facts.checkpoint_bytes)),
       human_bytes(uint64_t(facts.bytes_per_second)), human_time(job.checkpoint), human_time(job.mtbf));
  show("  work between two checkpoints: {} (Daly), {} (Young)\n", human_time(best), human_time(pl::young_interval(job)));
  show("  of the time, {:.1f} % goes into checkpoints, lost work and restarts then\n\n", 100 * pl::waste(job, best));
  const auto curve = waste_curve(facts);
  Table table({">interval", ">waste", ""});
  for (const auto& [interval, share] : curve) {
    const auto bar = std::string(size_t(std::lround(std::min(share, 1.0) * 40)), '#');
    table.add({human_time(interval), fmt::format("{:.1f} %", 100 * share), bar + (interval == best ? " <- best" : "")});
  }
  table.print();
}

void print_schemes(const PlanOptions& options, const Facts& facts) {
  show("what a scheme costs and buys\n");
  std::vector<std::string> headings{"scheme", ">tolerates", ">volume"};
  if (facts.has_job()) headings.insert(headings.end(), {">checkpoint", ">interval", ">waste"});
  if (facts.has_losses()) headings.insert(headings.end(), {">mean time to loss", ">loss within " + human_time(facts.within)});
  Table table(headings);
  for (const layout::Scheme& scheme : facts.schemes) {
    const Worth worth = worth_of(scheme, options, facts);
    std::vector<std::string> cells{scheme.name(), std::to_string(scheme.m), fmt::format("{:.2f}x", worth.volume)};
    if (worth.waste)
      cells.insert(cells.end(), {human_time(*worth.checkpoint), human_time(*worth.interval), fmt::format("{:.1f} %", 100 * *worth.waste)});
    if (worth.loss_probability)
      cells.insert(cells.end(), {worth.time_to_loss ? human_time(*worth.time_to_loss) : "never", fmt::format("{:.2g}", *worth.loss_probability)});
    table.add(cells);
  }
  table.print();
  if (options.local) show("  The bandwidth is that of all nodes' own disks together: redundancy is made in the background.\n");
  else if (facts.has_job()) show("  The bandwidth is taken to be the storage's: a scheme's volume is written at the same speed.\n");
}

nlohmann::json json_of_plan(const PlanOptions& options, const Facts& facts) {
  nlohmann::json out = nlohmann::json::object();
  auto known = [](const std::optional<double>& value) { return value ? nlohmann::json(*value) : nlohmann::json(); };
  for (const pl::Count& count : facts.counts)
    out["history"].push_back({{"begin", pl::date_of(count.begin)},
                              {"end", pl::date_of(count.end - 1)},
                              {"failures", count.failures},
                              {"interrupts", count.interrupts},
                              {"mtbf_seconds", known(count.mtbf())},
                              {"mtbi_seconds", known(count.mtbi())}});
  if (facts.mtbf > 0) out["mtbf_seconds"] = facts.mtbf;
  if (facts.has_job()) {
    const pl::Job job = facts.job();
    const double best = pl::daly_interval(job);
    out["checkpoint_seconds"] = job.checkpoint;
    out["young_seconds"] = pl::young_interval(job);
    out["daly_seconds"] = best;
    out["waste"] = pl::waste(job, best);
    for (const auto& [interval, share] : waste_curve(facts)) out["curve"].push_back({{"interval_seconds", interval}, {"waste", share}});
  }
  for (const layout::Scheme& scheme : facts.schemes) {
    const Worth worth = worth_of(scheme, options, facts);
    out["schemes"].push_back({{"scheme", scheme.name()},
                              {"tolerates", scheme.m},
                              {"volume", worth.volume},
                              {"checkpoint_seconds", known(worth.checkpoint)},
                              {"interval_seconds", known(worth.interval)},
                              {"waste", known(worth.waste)},
                              {"mean_time_to_loss_seconds", known(worth.time_to_loss)},
                              {"loss_probability", known(worth.loss_probability)}});
  }
  return out;
}

int plan(const PlanOptions& options) {
  auto facts = read_facts(options);
  if (!facts) return fail(facts.status());
  if (options.json) {
    print_json(json_of_plan(options, *facts));
    return exit_ok;
  }
  if (!facts->counts.empty()) print_history(options, *facts);
  if (facts->has_job()) {
    if (!facts->counts.empty()) show("\n");
    print_interval(*facts);
  }
  if (facts->has_job() || facts->target_mtbf > 0) {
    if (facts->has_job()) show("\n");
    print_schemes(options, *facts);
  }
  return exit_ok;
}

}  // namespace

void add_plan(CLI::App& app, int& code) {
  auto options = std::make_shared<PlanOptions>();
  CLI::App* sub = app.add_subcommand("plan", "Say how often to write a checkpoint, and what a scheme costs and buys");
  sub->add_option("--history", options->history, "Dates of interrupts, one a line; 'maintenance' behind one that was planned")->type_name("FILE");
  sub->add_option("--from", options->from, "Where the history begins, if not at its first date")->type_name("DATE");
  sub->add_option("--to", options->to, "Where it ends, if not at its last")->type_name("DATE");
  sub->add_option("--per", options->per, "Count by all (default), year, quarter or month")
      ->check(CLI::IsMember({"all", "year", "quarter", "month"}))
      ->type_name("PERIOD");
  sub->add_option("--mtbf", options->mtbf, "Mean time between failures that end the job: 30h, 5.9d")->type_name("TIME");
  sub->add_option("--node-mtbf", options->node_mtbf, "The same of one node")->type_name("TIME");
  sub->add_option("--nodes", options->nodes, "Nodes of the job")->check(CLI::PositiveNumber)->type_name("N");
  sub->add_option("--of-nodes", options->of_nodes, "Nodes of the machine whose history or --mtbf it is")->check(CLI::PositiveNumber)->type_name("N");
  sub->add_option("--checkpoint", options->checkpoint, "Size of one checkpoint")->type_name("SIZE");
  sub->add_option("--bandwidth", options->bandwidth, "What the storage writes in a second: 10GiB")->type_name("SIZE");
  sub->add_option("--restart", options->restart, "From a failure until the job computes again")->type_name("TIME");
  sub->add_option("--scheme", options->schemes, "Schemes to compare, if not the usual ones")->delimiter(',')->type_name("SCHEME,...");
  sub->add_option("--targets", options->targets, "How many targets there are")->check(CLI::Range(1, layout::max_members))->type_name("N");
  sub->add_option("--target-mtbf", options->target_mtbf, "Mean time between failures of one target: 3y")->type_name("TIME");
  sub->add_option("--rebuild", options->rebuild,
                  "From a target's loss until its repair has ended (default 1d; with --local, until the next checkpoint)")
      ->type_name("TIME");
  sub->add_flag("--local", options->local, "The checkpoints lie on the job's own nodes, as with run --local");
  sub->add_option("--within", options->within, "The time for the probability of a loss (default 1y)")->type_name("TIME");
  sub->add_flag("--json", options->json, "The same facts for a machine");
  sub->footer(
      "Example:\n  holdfast plan --mtbf 5.9d --checkpoint 1.5TiB --bandwidth 10GiB --restart 10min\n"
      "  holdfast plan --history failures.txt --per quarter\n"
      "  holdfast plan --local --nodes 1000 --node-mtbf 5y --checkpoint 1.5TiB --bandwidth 200GiB\n"
      "Intervals by Young (1974) and Daly (2006), for failures that come at random with a constant rate.");
  add_reliability(*sub, code);
  add_plan_of_replicas(*sub, code);
  sub->callback([options, sub, &code] {
    if (sub->get_subcommands().empty()) code = plan(*options);
  });
}

}  // namespace holdfast::cli
