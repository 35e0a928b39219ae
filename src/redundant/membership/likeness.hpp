// Whether the replicas of a rank run the same: the program, Holdfast, the libraries, the processor. Pure.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace holdfast::redundant {

// What a process says of itself when it joins: lines that begin with the mark, of words with a tab between them.
struct About {
  static constexpr char mark = '=';
  std::string program, content;  // its path, and a sum or an id of what is in it
  std::string holdfast;          // the version
  std::string processor;
  std::map<std::string, std::string> libraries;  // ids by name

  void take(std::string_view line);
};
std::string line_of_program(std::string_view path, std::string_view content);
std::string line_of_holdfast(std::string_view version);
std::string line_of_processor(std::string_view name);
std::string line_of_library(std::string_view name, std::string_view id);

class Likeness {
 public:
  struct Found {
    std::string refusal;  // the end of a sentence that begins with the rank and its team; empty: it is the same
    std::string warning;  // each kind once in a job
  };
  Found joined(int team, int rank, const About& about);
  void becomes_another(int rank) { first_.erase(rank); }

 private:
  std::optional<std::string> said_of_libraries(int team, const About& about, int first, const About& its);
  std::optional<std::string> said_of_processors(int team, const About& about, int first, const About& its);

  std::map<int, std::pair<int, About>> first_;  // by rank: the team that came first
  bool told_of_libraries_ = false, told_of_processors_ = false;
};

}  // namespace holdfast::redundant
