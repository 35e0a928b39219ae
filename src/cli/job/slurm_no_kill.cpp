#include "cli/job/slurm_no_kill.hpp"

#include <unistd.h>

#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "base/config.hpp"
#include "base/process_facts.hpp"
#include "cli/job/program.hpp"

namespace holdfast::cli {

namespace {

std::vector<std::string> command_line_of(pid_t process) {
  std::vector<std::string> words;
  std::ifstream file("/proc/" + std::to_string(process) + "/cmdline", std::ios::binary);
  for (std::string one; std::getline(file, one, '\0');) words.push_back(one);
  return words;
}

// Empty where there is none.
std::vector<std::string> command_line_of_salloc() {
  for (auto process = process_facts(::getpid()); process && process->parent > 1; process = process_facts(process->parent))
    if (auto words = command_line_of(process->parent); !words.empty() && base_name(words[0]) == "salloc") return words;
  return {};
}

// Whether words of a command line, or of a script's #SBATCH line, say --no-kill.
bool say_no_kill(const std::vector<std::string>& words) {
  constexpr const char* flags = "kHQvsOX";  // of one letter, without a value
  for (const std::string& word : words) {
    if (base_name(word) == "holdfast") return false;  // what comes is the program's
    if (word.starts_with("--no-k") && !word.ends_with("=off")) return true;
    const bool are_flags = word.size() > 1 && word[0] == '-' && word.find_first_not_of(flags, 1) == std::string::npos;
    if (are_flags && word.find('k') != std::string::npos) return true;
  }
  return false;
}

bool script_says_no_kill(const std::string& script) {
  std::istringstream lines(script);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream text(line);
    std::string word;
    if (!(text >> word) || word != "#SBATCH") continue;
    std::vector<std::string> words;
    while (text >> word && !word.starts_with('#')) words.push_back(word);
    if (say_no_kill(words)) return true;
  }
  return false;
}

}  // namespace

bool is_known_to_outlive_nodes() {
  for (const char* variable : {"SALLOC_NO_KILL", "SBATCH_NO_KILL"})
    if (!environment_variable(variable).empty()) return true;
  if (const auto words = command_line_of_salloc(); !words.empty()) return say_no_kill(words);
  return script_says_no_kill(output_of({"scontrol", "write", "batch_script", environment_variable("SLURM_JOB_ID"), "-"}).value_or(""));
}

}  // namespace holdfast::cli
