// holdfast completion SHELL prints a script that asks `holdfast __complete WORD...` whenever the tab key is pressed. The answer is read off
// the tree of commands itself, so that no list of options can lag behind. The last WORD is the one to complete. Each line of the answer is
//
//   WORD<tab>DESCRIPTION   the whole word with its end
//   :files                 names of files belong here (behind the = of an option)
//   :directories           names of directories, behind the last , or = of the word
//   :program N             WORD number N, counted from 0, begins a command line of its own
#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "base/say.hpp"
#include "cli/command.hpp"
#include "cli/completion_scripts.hpp"
#include "cli/option_facts.hpp"

namespace holdfast::cli {

namespace {

void propose(const std::string& word, const std::string& proposal, const std::string& description) {
  if (proposal.starts_with(word)) show("{}\t{}\n", proposal, description.substr(0, description.find('\n')));
}

void propose_commands(const CLI::App& app, const std::string& word) {
  for (const CLI::App* sub : app.get_subcommands({})) propose(word, sub->get_name(), sub->get_description());
}

void propose_options(const CLI::App& app, const std::string& word) {
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) propose(word, "--" + name, option->get_description());
    for (const std::string& name : option->get_snames()) propose(word, "-" + name, option->get_description());
  }
}

// `before` is what stands before the value in the same word: "--close=".
void propose_values(const CLI::Option& option, std::string before, std::string word) {
  const std::string kind = kind_of_value(option);
  if (kind.ends_with(",...")) {
    const size_t behind = word.rfind(',') + 1;
    before += word.substr(0, behind);
    word.erase(0, behind);
  }
  const auto values = values_of(option);
  for (const std::string& value : values) propose(before + word, before + value, "");
  if (!values.empty()) return;
  if (kind.starts_with("DIR") || kind.starts_with("OLD=")) show(":directories\n");
  else if (is_positional(option) || kind.find("FILE") != std::string::npos || kind == "GLOB" || kind == "NAME|PATH") show(":files\n");
}

const CLI::Option* option_named(const CLI::App& app, const std::string& word) {
  return word.starts_with('-') ? app.get_option_no_throw(word.substr(0, word.find('='))) : nullptr;
}

// The option whose value the next word is.
const CLI::Option* waiting_option(const CLI::App& sub, const std::vector<std::string>& words) {
  const CLI::Option* option = option_named(sub, words.back());
  return option && words.back().find('=') == std::string::npos && option->get_items_expected_max() > 0 ? option : nullptr;
}

// What is written so far without an option is taken by the first arguments; the last one takes all that follow.
const CLI::Option* next_argument(const CLI::App& sub, const std::vector<std::string>& words) {
  const auto arguments = sub.get_options([](const CLI::Option* option) { return is_positional(*option); });
  size_t written = 0;
  for (size_t i = 1; i < words.size(); ++i) written += !words[i].starts_with('-') && !waiting_option(sub, {words[i - 1]});
  return arguments.empty() ? nullptr : arguments[std::min(written, arguments.size() - 1)];
}

void propose_words(const CLI::App& app, const std::vector<std::string>& words, const std::string& word) {
  if (words.empty()) {
    propose_commands(app, word);
    propose_options(app, word);
    return;
  }
  const auto subs = app.get_subcommands([&](const CLI::App* each) { return each->get_name() == words[0]; });
  if (subs.empty()) return;
  const CLI::App& sub = *subs[0];
  // "agents start", "plan reliability"; plan does something without one too.
  const auto parts = sub.get_subcommands({});
  const bool goes_on =
      words.size() > 1 && std::any_of(parts.begin(), parts.end(), [&](const CLI::App* part) { return part->get_name() == words[1]; });
  if (goes_on || sub.get_require_subcommand_min() > 0) return propose_words(sub, {words.begin() + 1, words.end()}, word);
  if (words.size() == 1) propose_commands(sub, word);
  size_t program = program_of_run(app, words);
  if (program < words.size()) {
    if (words[program] == "--") ++program;
    show(":program {}\n", program);
    return;
  }
  const bool only_arguments = std::find(words.begin(), words.end(), "--") != words.end();
  const CLI::Option* option = only_arguments ? nullptr : option_named(sub, word);
  const size_t equals = word.find('=');
  if (const CLI::Option* waiting = only_arguments ? nullptr : waiting_option(sub, words)) propose_values(*waiting, "", word);
  else if (option && equals != std::string::npos) propose_values(*option, word.substr(0, equals + 1), word.substr(equals + 1));
  else if (word.starts_with('-') && !only_arguments) propose_options(sub, word);
  else if (words[0] == "run") show(":program {}\n", program);
  else if (const CLI::Option* argument = next_argument(sub, words)) propose_values(*argument, "", word);
}

}  // namespace

int complete(const CLI::App& app, std::vector<std::string> words) {
  std::string word;
  if (!words.empty()) {
    word = std::move(words.back());
    words.pop_back();
  }
  propose_words(app, words, word);
  return exit_ok;
}

void add_completion(CLI::App& app, int& code) {
  auto shell = std::make_shared<std::string>();
  CLI::App* sub = app.add_subcommand("completion", "Print the script by which a shell completes this command");
  sub->add_option("SHELL", *shell, "bash, zsh or fish")->required()->check(CLI::IsMember({"bash", "zsh", "fish"}))->type_name("");
  sub->footer(
      "Example:\n  holdfast completion bash > ~/.local/share/bash-completion/completions/holdfast\n"
      "  source <(holdfast completion bash)\n"
      "'make install' and the Debian package put the scripts where the shells look for them.");
  sub->callback([shell, &code] {
    show("{}", *shell == "bash" ? bash_completion : *shell == "zsh" ? zsh_completion : fish_completion);
    code = exit_ok;
  });
}

}  // namespace holdfast::cli
