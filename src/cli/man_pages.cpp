// holdfast __man DIRECTORY: a manual page of each command, holdfast-COMMAND.1, of the same tree that its --help comes from. The build calls it.
#include <fmt/format.h>

#include <cerrno>
#include <fstream>
#include <sstream>

#include "base/say.hpp"
#include "base/settings/record.hpp"
#include "cli/command.hpp"
#include "cli/option_facts.hpp"

namespace holdfast::cli {

namespace {

// Text that troff shows as it is, at a line's beginning too.
std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '-' || c == '\\') out += '\\';
    out += c == '\\' ? 'e' : c;
  }
  return out.starts_with('.') || out.starts_with('\'') ? "\\&" + out : out;
}

// "-f, --force", "--close HOW"
std::string names_and_kind(const CLI::Option& option) {
  std::vector<std::string> names;
  for (const std::string& name : option.get_snames()) names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) names.push_back("--" + name);
  std::string text = is_positional(option) ? "" : fmt::format("\\fB{}\\fR", escaped(fmt::format("{}", fmt::join(names, ", "))));
  const bool takes_value = is_positional(option) || option.get_items_expected_max() > 0;
  if (takes_value) text += fmt::format("{}\\fI{}\\fR", text.empty() ? "" : " ", escaped(kind_of_value(option)));
  return text;
}

std::string setting_sentences(const std::string& key) {
  const Record* record = find_record(key);
  if (!record) return "";
  std::string text = *record->more ? fmt::format(".br\n{}\n", escaped(record->more)) : "";
  text += fmt::format(".br\nKey {}, variable {}", escaped(key), record->variable());
  if (record->hint != Hint::none) text += ", hint " + escaped(record->hint_name());
  if (const std::string allowed = record->allowed(); !allowed.empty()) text += "; allowed is " + escaped(allowed);
  return text + ".\n";
}

std::string section(const CLI::App& sub, const char* title, const std::function<bool(const CLI::Option*)>& belongs) {
  std::string text;
  for (const CLI::Option* option : sub.get_options(belongs))
    text += fmt::format(".TP\n{}\n{}\n{}", names_and_kind(*option), escaped(option->get_description()), setting_sentences(setting_of(*option)));
  return text.empty() ? "" : fmt::format(".SH {}\n{}", title, text);
}

// The help's last lines: "Example:" and indented lines, "Exit status: ...", and sentences.
std::string footer(const std::string& text) {
  constexpr char exit_status[] = "Exit status: ";
  std::string out, notes, status;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line == "Example:") out += ".SH EXAMPLES\n";
    else if (line.starts_with("  ")) out += fmt::format(".PP\n.nf\n{}\n.fi\n", escaped(line.substr(2)));
    else if (line.starts_with(exit_status)) status = line.substr(sizeof exit_status - 1);
    else if (!status.empty()) status += "\n" + line;
    else notes += escaped(line) + "\n";
  }
  if (!notes.empty()) out = ".SH NOTES\n" + notes + out;
  if (!status.empty()) out = fmt::format(".SH EXIT STATUS\n{}\n", escaped(status)) + out;
  return out;
}

std::string usage(const CLI::App& app, const CLI::App& sub) {
  std::string line = std::static_pointer_cast<CLI::Formatter>(app.get_formatter())->make_usage(&sub, "holdfast " + sub.get_name());
  line.erase(0, line.find(' ') + 1);  // "Usage: "
  return escaped(line.substr(0, line.find('\n')));
}

std::string page(const CLI::App& app, const CLI::App& sub) {
  const std::string name = "holdfast-" + sub.get_name();
  std::string title = name;
  for (char& c : title) c = char(std::toupper(c));
  std::string text = fmt::format(".TH {} 1 \"\" \"holdfast {}\" \"Holdfast\"\n", escaped(title), HOLDFAST_VERSION);
  text += fmt::format(".SH NAME\n{} \\- {}\n", escaped(name), escaped(sub.get_description()));
  text += fmt::format(".SH SYNOPSIS\n{}\n", usage(app, sub));
  text += section(sub, "ARGUMENTS", [](const CLI::Option* option) { return is_positional(*option); });
  text += section(sub, "OPTIONS", [](const CLI::Option* option) { return !is_positional(*option) && setting_of(*option).empty(); });
  const std::string settings = section(sub, "SETTINGS", [](const CLI::Option* option) { return !setting_of(*option).empty(); });
  if (!settings.empty())
    text += settings + ".PP\nA hint of an MPI_Info comes first, then the command line, the environment, and the key in holdfast.toml.\n";
  for (const CLI::App* part : sub.get_subcommands({}))
    text += section(*part, ("COMMAND " + part->get_name()).c_str(), [](const CLI::Option*) { return true; });
  text += footer(sub.get_footer());
  return text + ".SH SEE ALSO\n.BR holdfast (1)\n";
}

std::string facts_of(const Record& record) {
  std::string text = "Variable " + record.variable();
  if (record.hint != Hint::none) text += ", hint " + record.hint_name();
  if (const std::string allowed = record.allowed(); !allowed.empty()) text += "; allowed is " + allowed;
  if (const std::string fallback = record.shown(Settings()); !fallback.empty()) text += "; the default is " + fallback;
  return text + ".";
}

}  // namespace

// The part of holdfast(1) about settings.
int print_man_of_settings(const CLI::App& app) {
  for (const Area* area : areas()) {
    show(".SS {}\n", area->title);
    for (const Record& record : area->records) {
      const CLI::Option* option = option_of_setting(app, record.key);
      show(".TP\n.B {}\n", escaped(std::string(record.key)));
      if (option) show("{}\n.br\n", names_and_kind(*option));
      show("{}.\n", escaped(record.help));
      if (*record.more) show("{}\n", escaped(record.more));
      show(".br\n{}\n", escaped(facts_of(record)));
    }
  }
  return exit_ok;
}

int write_man_pages(const CLI::App& app, const std::string& directory) {
  for (const CLI::App* sub : app.get_subcommands({})) {
    const std::string path = fmt::format("{}/holdfast-{}.1", directory, sub->get_name());
    std::ofstream file(path, std::ios::trunc);
    file << page(app, *sub) << std::flush;
    if (!file) return fail(Status::from_errno(errno, path + " cannot be written"));
  }
  return exit_ok;
}

}  // namespace holdfast::cli
