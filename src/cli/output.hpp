// What a person sees: aligned tables, sizes, colours and a progress bar where there is a terminal.
#pragma once
#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "engine/maintenance.hpp"

namespace holdfast::cli {

std::string human_bytes(uint64_t bytes);                      // "512 B", "1.5 MiB"
std::string human_seconds(double seconds);                    // "3 s", "2 min 05 s"
std::string plural(uint64_t count, const std::string& noun);  // "1 unit", "2 units"

enum class Colour : uint8_t { none, good, warn, bad, dim };
// Bare text where standard output is no terminal or NO_COLOR is set.
std::string coloured(const std::string& text, Colour colour);
Colour colour_of_state(const std::string& state);  // of a member: ok, lost, stale, damaged
Colour colour_of(engine::Health health);

class Table {
 public:
  // A column whose heading begins with '>' is aligned to the right.
  explicit Table(std::vector<std::string> headings);
  void add(std::vector<std::string> cells, std::vector<Colour> colours = {});
  void print(const std::string& indent = "  ") const;

 private:
  struct Row {
    std::vector<std::string> cells;
    std::vector<Colour> colours;
  };
  std::vector<bool> right_;
  std::vector<Row> rows_;
};

// One line on standard error, redrawn a few times a second, gone when the work is done; nothing where there
// is no terminal.
class ProgressBar {
 public:
  explicit ProgressBar(std::string label);
  ~ProgressBar();
  // False once the user has asked to stop.
  bool update(uint64_t done_bytes, uint64_t total_bytes);
  engine::Progress callback();

 private:
  using Clock = std::chrono::steady_clock;
  std::string label_;
  bool terminal_;
  bool drawn_ = false;
  Clock::time_point start_, last_;
};

// A time in nanoseconds since 1970 as strftime(3) writes it, local time.
std::string local_time(uint64_t ns, const char* format);

}  // namespace holdfast::cli
