// How a file's status is told, by status, verify and repair alike.
#pragma once
#include <nlohmann/json.hpp>
#include <string>

#include "engine/maintenance.hpp"

namespace holdfast::cli {

// Heading, health, table of members, and what to do about it.
void print_status(const engine::FileStatus& status, bool advise = true);
std::string layout_line(const layout::Manifest& manifest);  // "rs:4+2 interleaved over 6 targets, unit 1.0 MiB, 4.0 MiB"
// What a verification means: 3 where too much is out of reach to tell, 2 where something is lost.
int code_of(const engine::VerifyReport& report);
// A row that is out of reach may be whole.
uint64_t damages_in(const engine::VerifyReport& report);
nlohmann::json json_of_failure(const std::string& path, const Status& status);

// What a command finds of the files that it was given, one after another: for people as it comes, for machines all of it at the end.
class FileReports {
 public:
  explicit FileReports(bool json) : json_(json) {}
  bool json() const { return json_; }
  // Says why on stderr, whatever is asked for.
  void failed(const std::string& path, const Status& status);
  // `print` shows it to people.
  template <class Print>
  void found(int code, nlohmann::json facts, Print&& print) {
    add(code, std::move(facts));
    if (!json_) print();
  }
  // Prints what is for machines. Returns the worst exit code.
  int end() const;

 private:
  void add(int code, nlohmann::json facts);

  const bool json_;
  int code_ = 0;
  nlohmann::json files_ = nlohmann::json::array();
};

}  // namespace holdfast::cli
