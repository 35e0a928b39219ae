// holdfast settings [KEY…]: each setting, its value in force here, and where that came from. All of it is read off the records.
#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "base/say.hpp"
#include "base/settings/origins.hpp"
#include "base/settings/record.hpp"
#include "cli/command.hpp"
#include "cli/option_facts.hpp"
#include "cli/output.hpp"

namespace holdfast::cli {

namespace {

struct ShownOptions {
  std::vector<std::string> keys;
  bool json = false, markdown = false;
  SettingsOptions settings;
};

// All that is known of what is in force here.
struct Here {
  Settings settings;
  Origins origins;
  Status sound;

  std::string from(const Record& record) const {
    if (is_scheme(record) && origins.of("protect") < origins.of("replication_factor")) return from(*find_record("replication_factor"));
    const Source source = origins.of(record.key);
    return source == Source::file ? origins.file : source == Source::environment ? record.variable() : "default";
  }
  // The scheme has two keys: protect shows what the other one asks for, too.
  bool is_scheme(const Record& record) const { return record.key == "protect" && settings.protect; }
  std::string value(const Record& record) const { return is_scheme(record) ? *settings.protect : record.shown(settings); }
  std::string text(const Record& record) const { return is_scheme(record) ? *settings.protect : record.text(settings); }
};

// "--close HOW", nothing where no command has it.
std::string option_text(const CLI::App& app, const Record& record) {
  const CLI::Option* option = option_of_setting(app, record.key);
  if (!option) return "";
  return option->get_items_expected_max() > 0 ? fmt::format("{} {}", record.option_name(), record.value) : record.option_name();
}

void print_for_people(const Here& here) {
  Table table({"SETTING", "FROM", "VALUE"});
  for (const Area* area : areas()) {
    table.add({area->title}, {Colour::dim});
    for (const Record& record : area->records) {
      const bool given = here.origins.of(record.key) != Source::defaults;
      table.add({fmt::format("  {}", record.key), here.from(record), here.value(record)},
                {given ? Colour::good : Colour::none, Colour::none, Colour::none});
    }
  }
  table.print("");
}

void print_one(const CLI::App& app, const Here& here, const Record& record) {
  const auto line = [](const char* name, const std::string& text) {
    if (!text.empty()) show("  {:<10}{}\n", name, text);
  };
  show("{}\n", record.key);
  line("does", record.help);
  line("", record.more);
  line("value", here.value(record));
  line("from", here.from(record));
  line("allowed", record.allowed());
  line("default", record.shown(Settings()));
  line("option", option_text(app, record));
  line("variable", record.variable());
  line("hint", record.hint_name());
}

void print_for_machines(const CLI::App& app, const Here& here, const std::vector<const Record*>& wanted) {
  nlohmann::json all = nlohmann::json::array();
  for (const Record* record : wanted)
    all.push_back({{"key", record->key},
                   {"value", here.text(*record)},
                   {"from", here.from(*record)},
                   {"default", record->text(Settings())},
                   {"allowed", record->allowed()},
                   {"option", option_text(app, *record)},
                   {"variable", record->variable()},
                   {"hint", record->hint_name()},
                   {"help", record->help},
                   {"more", record->more}});
  nlohmann::json out = {{"file", here.origins.file}, {"settings", std::move(all)}};
  if (!here.sound) out["contradiction"] = here.sound.sentence();
  print_json(out);
}

// docs/settings.md, which a test compares.
void print_markdown(const CLI::App& app) {
  show(
      "# Settings\n\n"
      "`holdfast settings --markdown` writes this page from the records in `src/base/settings/`. `holdfast settings` shows the values in force\n"
      "where it is called, and where each came from; `holdfast settings KEY` shows all about one.\n\n"
      "The highest source wins: hints of the open (`MPI_Info`), the options of the command, variables, `holdfast.toml`, the defaults. `holdfast "
      "run`\n"
      "hands its options on as variables. The file is `./holdfast.toml`, or the one that `--config` or `HOLDFAST_CONFIG` names; there lists are\n"
      "lists: `targets = [\"/mnt/a\", \"/mnt/b\"]`. Unknown hints are ignored. Hints about the layout that have no prefix never fail a call: they\n"
      "are followed as far as possible, with one remark. Any other value that is not allowed is refused with one sentence.\n");
  const auto code = [](const std::string& text) { return text.empty() ? "" : fmt::format("`{}`", text); };
  for (const Area* area : areas()) {
    show("\n## {}\n\n| key | option | variable | hint | allowed | default | what it does |\n| --- | --- | --- | --- | --- | --- | --- |\n",
         area->title);
    for (const Record& record : area->records)
      show("| `{}` | {} | {} | {} | {} | {} | {}.{}{} |\n", record.key, code(option_text(app, record)), code(record.variable()),
           code(record.hint_name()), record.allowed(), code(record.shown(Settings())), record.help, *record.more ? " " : "", record.more);
  }
}

int print_settings(const CLI::App& app, const ShownOptions& options) {
  if (options.markdown) {
    print_markdown(app);
    return exit_ok;
  }
  std::vector<const Record*> wanted;
  for (const std::string& key : options.keys) {
    wanted.push_back(find_record(key));
    if (!wanted.back()) return fail(Status(Kind::not_found, fmt::format("there is no setting '{}'; 'holdfast settings' lists all", key)));
  }
  auto settings = options.settings.load();
  if (!settings) return fail(settings.status());
  auto origins = origins_of_settings(options.settings.config());
  if (!origins) return fail(origins.status());
  const Here here{*settings, std::move(*origins), settings->check()};
  if (options.json) {
    if (wanted.empty()) for_each_record([&](const Record& record) { wanted.push_back(&record); });
    print_for_machines(app, here, wanted);
  } else if (wanted.empty()) {
    print_for_people(here);
  } else {
    for (const Record* record : wanted) print_one(app, here, *record);
  }
  return here.sound ? exit_ok : fail(here.sound);
}

}  // namespace

void add_settings(CLI::App& app, int& code) {
  auto options = std::make_shared<ShownOptions>();
  CLI::App* sub = app.add_subcommand("settings", "Show each setting, its value here and where that came from");
  sub->add_option("KEY", options->keys, "Settings to show all about")->type_name("");
  sub->add_flag("--json", options->json, "The same facts for a machine");
  sub->add_flag("--markdown", options->markdown, "The table of all settings, as in docs/settings.md");
  options->settings.add_config(*sub);
  sub->footer(
      "Example:\n  holdfast settings\n  holdfast settings close deadline\n"
      "Exit status: 0 done, 3 where a setting has a value that is not allowed, or two contradict each other.");
  sub->callback([options, &app, &code] { code = print_settings(app, *options); });
}

}  // namespace holdfast::cli
