// holdfast: the command. Parses the line, hands it to the subcommand, answers its exit code.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <optional>

#include "base/say.hpp"
#include "cli/command.hpp"
#include "service/helper_process.hpp"

namespace holdfast::cli {
namespace {

constexpr char description[] =
    "Holdfast keeps the files of unmodified MPI programs replicated or Reed-Solomon coded over\n"
    "several storage targets, and mends them.";

constexpr char example[] =
    "Example:\n"
    "  holdfast run --protect rs:4+2 --targets /mnt/a,/mnt/b,/mnt/c,/mnt/d,/mnt/e,/mnt/f mpirun -n 4 ./app\n"
    "  holdfast status out.dat\n"
    "  holdfast repair out.dat --replace /mnt/b=/mnt/g\n"
    "Exit status: 0 healthy or done, 1 degraded, 2 lost (run: refused), 3 any other error.\n"
    "'holdfast COMMAND --help' has the options and an example of each.";

// CLI11's sentences, in our form and with the way to the help.
int parse_failure(const CLI::App& app, const CLI::ParseError& error, const CLI::App* sub) {
  std::string name = "holdfast";
  for (const CLI::App* at = sub; at; at = at->get_subcommands().empty() ? nullptr : at->get_subcommands().front()) name += " " + at->get_name();
  if (error.get_exit_code() == 0) return app.exit(error);  // --help, --version
  say("holdfast: {}; '{} --help' shows how it goes\n", error.what(), name);
  return sub && sub->get_name() == "run" ? exit_lost : exit_error;
}

// CLI11 2.1 has no word for "and then a program with its arguments".
class Formatter : public CLI::Formatter {
 public:
  Formatter() { column_width(34); }
  std::string make_usage(const CLI::App* app, std::string name) const override {
    if (app->get_name() == "run") return "Usage: holdfast run [OPTIONS] [--] LAUNCHER [ARGUMENTS...]\n";
    return CLI::Formatter::make_usage(app, name);
  }
};

// What shells and the build ask of the whole tree; no commands of a person's.
std::optional<int> about_the_tree(const CLI::App& app, const std::vector<std::string>& arguments) {
  if (arguments.empty()) return std::nullopt;
  if (arguments[0] == "__complete") return complete(app, {arguments.begin() + 1, arguments.end()});
  if (arguments[0] == "__man_settings") return print_man_of_settings(app);
  if (arguments[0] == "__man" && arguments.size() == 2) return write_man_pages(app, arguments[1]);
  return std::nullopt;
}

std::optional<int> no_command(const CLI::App& app, const std::vector<std::string>& arguments) {
  if (arguments.empty() || arguments[0].starts_with('-')) return std::nullopt;
  for (const CLI::App* const command : app.get_subcommands([](const CLI::App*) { return true; }))
    if (command->check_name(arguments[0])) return std::nullopt;
  return fail(Status(Kind::invalid, fmt::format("'{}' is no command; 'holdfast --help' lists them", arguments[0])));
}

int run_command(std::vector<std::string> arguments) {
  int code = exit_ok;
  std::vector<std::string> program;
  CLI::App app(description, "holdfast");
  app.formatter(std::make_shared<Formatter>());
  app.set_version_flag("--version", "holdfast " HOLDFAST_VERSION);
  app.require_subcommand(1);
  app.footer(example);
  add_run(app, code, program);
  for (auto add : {add_status, add_verify, add_repair, add_export, add_drain, add_import, add_ls, add_rm, add_cat, add_merge, add_targets, add_plan,
                   add_report, add_advise, add_doctor, add_settings, add_agents, add_checkpoints, add_completion})
    add(app, code);
  if (const auto code_of_asking = about_the_tree(app, arguments)) return *code_of_asking;
  if (const auto code_of_mistake = no_command(app, arguments)) return *code_of_mistake;
  const auto split = arguments.begin() + std::ptrdiff_t(program_of_run(app, arguments));
  program.assign(split, arguments.end());
  if (!program.empty() && program[0] == "--") program.erase(program.begin());
  arguments.erase(split, arguments.end());
  std::reverse(arguments.begin(), arguments.end());  // as CLI11 wants them
  // CLI11 throws for a bad line; it ends here.
  try {
    app.parse(std::move(arguments));
  } catch (const CLI::ParseError& error) {
    const auto subs = app.get_subcommands();
    return parse_failure(app, error, subs.empty() ? nullptr : subs.front());
  }
  return code;
}

}  // namespace
}  // namespace holdfast::cli

int main(int argc, char** argv) {
  holdfast::service::hold_standard_numbers();
  const int code = holdfast::cli::run_command({argv + std::min(argc, 1), argv + argc});
  const holdfast::Status shown = holdfast::shown();
  return shown ? code : holdfast::cli::fail(shown);
}
