// holdfast plan reliability: how probable it is that nodes which are lost at once take data with them that lies on nodes' own disks.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>

#include "base/say.hpp"
#include "cli/command.hpp"
#include "cli/output.hpp"
#include "cli/plan/curves.hpp"
#include "cli/plan/reliability.hpp"
#include "layout/geometry.hpp"
#include "layout/groups.hpp"
#include "planning/reliability.hpp"

namespace holdfast::cli {

namespace {

namespace pl = holdfast::planning;

struct ReliabilityOptions {
  int nodes = 0, failures = 10, units_per_node = 1;
  std::vector<std::string> schemes;
  std::string node_mtbf, window = "1h", svg;
  bool check = false, json = false;
};

struct SchemeReliability {
  layout::Scheme scheme;
  pl::Spread spread;
  std::vector<int> groups;
  double stored = 0, sent = 0;  // bytes for each byte of the program; sent: the writer's node keeps a part itself
  double chunk = 0, job = 0;
  std::optional<double> within;
  std::optional<pl::Trial> trial;
};

// How many of its units each node of a group has. One entry for every way in which the product's own placement lays a row on such a group.
using Ways = std::set<std::vector<int>>;
Ways ways_of(const layout::Scheme& scheme, int units_per_node, int group_nodes) {
  layout::Geometry geometry;
  geometry.scheme = scheme;
  geometry.members = group_nodes * units_per_node;
  const uint64_t width = uint64_t(scheme.width()), members = uint64_t(geometry.members);
  const uint64_t rows = std::lcm(width, members) / width * members;  // then the places come again
  Ways ways;
  for (uint64_t row = 0; row < rows; ++row) {
    std::vector<int> units(size_t(group_nodes), 0);
    // With several units on a node, neighbours are on one.
    for (int unit = 0; unit < scheme.width(); ++unit) ++units[size_t(layout::place(geometry, row, unit).member / units_per_node)];
    ways.insert(std::move(units));
  }
  return ways;
}

// Whether nodes that are lost take a row with them.
pl::Loses loses_by_placement(const layout::Scheme& scheme, int units_per_node) {
  auto known = std::make_shared<std::map<int, Ways>>();
  return [=](int group_nodes, const std::vector<bool>& lost) {
    auto [ways, fresh] = known->try_emplace(group_nodes);
    if (fresh) ways->second = ways_of(scheme, units_per_node, group_nodes);
    return std::any_of(ways->second.begin(), ways->second.end(),
                       [&](const std::vector<int>& units) { return std::inner_product(units.begin(), units.end(), lost.begin(), 0) > scheme.m; });
  };
}

// Failures at which the model says neither never nor always, so that a trial can tell.
int telling_failures(const SchemeReliability& worth, int nodes) {
  int failures = worth.spread.bears + 1;
  while (failures < nodes && pl::job_loss(worth.groups, failures, worth.spread.bears) < 0.3) ++failures;
  return failures;
}

Result<SchemeReliability> reliability_of(const std::string& name, const ReliabilityOptions& options, double mean_failures) {
  const auto scheme = layout::Scheme::parse(name);
  if (!scheme) return scheme.status();
  const int units = options.units_per_node;
  SchemeReliability worth{*scheme, {(scheme->width() + units - 1) / units, scheme->m / units}, {}, 0, 0, 0, 0, {}, {}};
  worth.groups = layout::group_sizes(options.nodes, worth.spread.nodes);
  if (worth.groups.empty()) return Status(Kind::invalid, fmt::format("{} needs {} nodes, --nodes says {}", name, worth.spread.nodes, options.nodes));
  worth.stored = double(scheme->width()) / scheme->k;
  worth.sent = double(std::max(scheme->width() - units, 0)) / scheme->k;
  worth.chunk = pl::chunk_loss(options.nodes, options.failures, worth.spread);
  worth.job = pl::job_loss(worth.groups, options.failures, worth.spread.bears);
  if (mean_failures > 0) worth.within = pl::job_loss_in(worth.groups, mean_failures, worth.spread.bears);
  constexpr long trials = 20000;
  if (options.check)
    worth.trial =
        pl::try_out(worth.groups, telling_failures(worth, options.nodes), worth.spread.bears, loses_by_placement(*scheme, units), trials, 1);
  return worth;
}

// Of the whole job, at each number of failures.
std::vector<Curve> curves_of(const std::vector<SchemeReliability>& all, int most) {
  std::vector<Curve> curves;
  for (const SchemeReliability& worth : all) {
    Curve& curve = curves.emplace_back(Curve{worth.scheme.name(), {}});
    for (int failures = 1; failures <= most; ++failures) {
      const double loss = pl::job_loss(worth.groups, failures, worth.spread.bears);
      if (loss > 0) curve.points.emplace_back(failures, loss);
    }
  }
  return curves;
}

int most_failures(const ReliabilityOptions& options) { return std::min(options.nodes, std::max(100, 2 * options.failures)); }

Status draw(const std::vector<SchemeReliability>& all, const ReliabilityOptions& options) {
  std::ofstream file(options.svg);
  const Axes axes{fmt::format("Data of a job on {} nodes is lost", options.nodes), "nodes that fail at once", "probability", 1e-20};
  if (!file || !(file << svg_of(curves_of(all, most_failures(options)), axes)) || !file.flush())
    return Status(Kind::io, fmt::format("--svg: {} cannot be written", options.svg));
  return {};
}

bool agrees(const SchemeReliability& worth) { return !worth.trial || std::abs(worth.trial->z()) <= pl::most_z; }

nlohmann::json json_of(const std::vector<SchemeReliability>& all, const ReliabilityOptions& options, double mean_failures) {
  nlohmann::json out{{"nodes", options.nodes}, {"failures", options.failures}};
  if (mean_failures > 0) out["mean_failures_in_window"] = mean_failures;
  for (const SchemeReliability& worth : all) {
    nlohmann::json one{{"scheme", worth.scheme.name()},   {"nodes_of_a_row", worth.spread.nodes},
                       {"tolerates", worth.spread.bears}, {"groups", worth.groups.size()},
                       {"stored", worth.stored},          {"sent", worth.sent},
                       {"chunk_loss", worth.chunk},       {"job_loss", worth.job}};
    if (worth.within) one["job_loss_in_window"] = *worth.within;
    if (worth.trial)
      one["check"] = {{"trials", worth.trial->trials}, {"losses", worth.trial->losses}, {"expected", worth.trial->expected}, {"z", worth.trial->z()}};
    out["schemes"].push_back(one);
  }
  return out;
}

void print(const std::vector<SchemeReliability>& all, const ReliabilityOptions& options, double mean_failures) {
  show("{} nodes, of which {} fail at once\n", options.nodes, options.failures);
  std::vector<std::string> headings{"scheme", ">nodes of a row", ">tolerates", ">stored", ">sent", ">a chunk is lost", ">the job loses data"};
  if (mean_failures > 0) headings.push_back(">within " + options.window);
  if (options.check) headings.emplace_back(">trial");
  Table table(headings);
  for (const SchemeReliability& worth : all) {
    std::vector<std::string> cells{worth.scheme.name(),
                                   std::to_string(worth.spread.nodes),
                                   std::to_string(worth.spread.bears),
                                   fmt::format("{:.2f}x", worth.stored),
                                   fmt::format("{:.2f}x", worth.sent),
                                   fmt::format("{:.2e}", worth.chunk),
                                   fmt::format("{:.2e}", worth.job)};
    if (worth.within) cells.push_back(fmt::format("{:.2e}", *worth.within));
    if (worth.trial) cells.push_back(fmt::format("z = {:+.2f}", worth.trial->z()));
    table.add(cells, {Colour::none, Colour::none, Colour::none, Colour::none, Colour::none, Colour::none, Colour::none, Colour::none});
  }
  table.print();
  if (options.check)
    show("  trial: {} times nodes at random on the placement of real files, against the formula; beyond {} one of them is wrong\n",
         all.front().trial->trials, pl::most_z);
}

int reliability(const ReliabilityOptions& options) {
  double mean_failures = 0;
  if (!options.node_mtbf.empty()) {
    const auto mtbf = parse_duration_ms(options.node_mtbf), window = parse_duration_ms(options.window);
    if (!mtbf) return fail(Status(Kind::invalid, "--node-mtbf: " + mtbf.status().sentence()));
    if (!window) return fail(Status(Kind::invalid, "--window: " + window.status().sentence()));
    if (*mtbf == 0 || *window == 0) return fail(Status(Kind::invalid, "--node-mtbf and --window must be more than nothing"));
    mean_failures = double(options.nodes) * double(*window) / double(*mtbf);
  }
  if (options.failures > options.nodes)
    return fail(Status(Kind::invalid, fmt::format("--failures {} are more than --nodes {}", options.failures, options.nodes)));
  std::vector<std::string> names = options.schemes;
  if (names.empty()) names = {"mirror:2", "mirror:3", "mirror:4", "rs:4+4", "rs:8+8"};
  std::vector<SchemeReliability> all;
  for (const std::string& name : names) {
    auto worth = reliability_of(name, options, mean_failures);
    if (worth) all.push_back(std::move(*worth));
    else if (!options.schemes.empty()) return fail(worth.status());
  }
  if (all.empty())
    return fail(Status(Kind::invalid, fmt::format("{} are too few nodes for any of the usual schemes; name some with --schemes", options.nodes)));
  if (!options.svg.empty())
    if (const Status drawn = draw(all, options); !drawn) return fail(drawn);
  if (options.json) print_json(json_of(all, options, mean_failures));
  else print(all, options, mean_failures);
  return std::all_of(all.begin(), all.end(), agrees) ? exit_ok : fail(Status(Kind::internal, "the formula and the placement do not agree"));
}

}  // namespace

void add_reliability(CLI::App& plan, int& code) {
  auto options = std::make_shared<ReliabilityOptions>();
  CLI::App* sub = plan.add_subcommand("reliability", "Say how probable a loss of data is that lies on the nodes' own disks");
  sub->add_option("--nodes", options->nodes, "Nodes of the job")->required()->check(CLI::Range(1, 1000000))->type_name("N");
  sub->add_option("--schemes", options->schemes, "Schemes to compare, if not the usual ones")->delimiter(',')->type_name("SCHEME,...");
  sub->add_option("--failures", options->failures, "Nodes that fail at once")->check(CLI::PositiveNumber)->capture_default_str()->type_name("N");
  sub->add_option("--node-mtbf", options->node_mtbf, "Mean time between failures of one node: 5y")->type_name("TIME");
  sub->add_option("--window", options->window, "With --node-mtbf: how long until data is protected again after a failure")
      ->capture_default_str()
      ->type_name("TIME");
  sub->add_option("--units-per-node", options->units_per_node, "Units of a row that lie on one node")
      ->check(CLI::Range(1, 32))
      ->capture_default_str()
      ->type_name("N");
  sub->add_option("--svg", options->svg, "A plot over the number of failures")->type_name("FILE");
  sub->add_flag("--check", options->check, "Try the formula on the placement of real files, with nodes at random");
  sub->add_flag("--json", options->json, "The same facts for a machine");
  sub->footer("Example:\n  holdfast plan reliability --nodes 1000 --schemes mirror:4,rs:4+4,rs:8+8 --svg loss.svg");
  sub->callback([options, &code] { code = reliability(*options); });
}

}  // namespace holdfast::cli
