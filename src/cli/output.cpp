#include "cli/output.hpp"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <ctime>

#include "base/config.hpp"
#include "base/plural.hpp"
#include "base/say.hpp"
#include "cli/command.hpp"

namespace holdfast::cli {

std::string human_bytes(uint64_t bytes) {
  if (bytes < 1024) return fmt::format("{} B", bytes);
  double value = double(bytes);
  const char* unit = "";
  for (const char* next : {"KiB", "MiB", "GiB", "TiB", "PiB"}) {
    if (value < 1023.95) break;
    value /= 1024;
    unit = next;
  }
  return fmt::format("{:.1f} {}", value, unit);
}

std::string human_seconds(double seconds) {
  const auto whole = uint64_t(std::max(0.0, seconds) + 0.5);
  if (whole < 60) return fmt::format("{} s", whole);
  if (whole < 3600) return fmt::format("{} min {:02} s", whole / 60, whole % 60);
  return fmt::format("{} h {:02} min", whole / 3600, whole / 60 % 60);
}

std::string plural(uint64_t count, const std::string& noun) { return fmt::format("{} {}", count, noun_for(count, noun)); }

std::string coloured(const std::string& text, Colour colour) {
  static const bool wanted = ::isatty(STDOUT_FILENO) && environment_variable("NO_COLOR").empty() && environment_variable("TERM") != "dumb";
  if (!wanted || colour == Colour::none) return text;
  static const char* const codes[] = {"0", "32", "33", "1;31", "2"};
  return fmt::format("\033[{}m{}\033[0m", codes[int(colour)], text);
}

Colour colour_of_state(const std::string& state) {
  if (state == "ok") return Colour::good;
  return state == "lost" ? Colour::bad : Colour::warn;
}

Colour colour_of(engine::Health health) {
  if (health == engine::Health::healthy) return Colour::good;
  return health == engine::Health::lost ? Colour::bad : Colour::warn;
}

Table::Table(std::vector<std::string> headings) {
  std::vector<Colour> colours(headings.size(), Colour::dim);
  for (std::string& heading : headings) {
    right_.push_back(heading.starts_with('>'));
    if (right_.back()) heading.erase(0, 1);
  }
  add(std::move(headings), std::move(colours));
}

void Table::add(std::vector<std::string> cells, std::vector<Colour> colours) {
  colours.resize(cells.size(), Colour::none);
  rows_.push_back({std::move(cells), std::move(colours)});
}

namespace {
// Columns on a terminal: one per UTF-8 code point, which is what paths need.
size_t width_of(const std::string& text) {
  return size_t(std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}
}  // namespace

void Table::print(const std::string& indent) const {
  std::vector<size_t> widths(right_.size(), 0);
  for (const Row& row : rows_)
    for (size_t i = 0; i < row.cells.size(); ++i) widths[i] = std::max(widths[i], width_of(row.cells[i]));
  for (const Row& row : rows_) {
    std::string line = indent;
    size_t last = row.cells.size();
    while (last && row.cells[last - 1].empty()) --last;
    for (size_t i = 0; i < last; ++i) {
      const std::string pad(widths[i] - width_of(row.cells[i]), ' ');
      const std::string cell = coloured(row.cells[i], row.colours[i]);
      line += right_[i] ? pad + cell : (i + 1 == last ? cell : cell + pad);
      if (i + 1 < last) line += "  ";
    }
    show("{}\n", line);
  }
}

ProgressBar::ProgressBar(std::string label) : label_(std::move(label)), terminal_(::isatty(STDERR_FILENO)), start_(Clock::now()), last_(start_) {
  catch_interrupts();
}

ProgressBar::~ProgressBar() {
  if (drawn_) say("\r\033[K");
}

bool ProgressBar::update(uint64_t done, uint64_t total) {
  using namespace std::chrono_literals;
  const auto now = Clock::now();
  if (!terminal_ || now - last_ < 100ms || total == 0) return !interrupted();
  last_ = now;
  drawn_ = true;
  const double part = std::min(1.0, double(done) / double(total));
  const double seconds = std::chrono::duration<double>(now - start_).count();
  const double rate = double(done) / std::max(seconds, 1e-3);
  constexpr int cells = 24;
  std::string bar;
  for (int i = 0; i < cells; ++i) bar += i < int(part * cells) ? "█" : "░";
  const std::string left = done ? human_seconds(double(total - std::min(done, total)) / rate) : "?";
  std::string label = label_;
  winsize window = {};
  const size_t columns = ::ioctl(STDERR_FILENO, TIOCGWINSZ, &window) == 0 && window.ws_col ? window.ws_col : 80;
  const std::string facts =
      fmt::format("{:3.0f} %  {} of {}  {}/s  {} left", part * 100, human_bytes(done), human_bytes(total), human_bytes(uint64_t(rate)), left);
  const size_t room = columns > facts.size() + cells + 5 ? columns - facts.size() - cells - 5 : 0;
  if (label.size() > room) label = room > 3 ? "..." + label.substr(label.size() - (room - 3)) : "";
  say("\r\033[K{} {} {}", label, bar, facts);
  std::fflush(stderr);
  return !interrupted();
}

engine::Progress ProgressBar::callback() {
  return [this](uint64_t done, uint64_t total) { return update(done, total); };
}

std::string local_time(uint64_t ns, const char* format) {
  const time_t seconds = time_t(ns / 1'000'000'000u);
  tm parts{};
  ::localtime_r(&seconds, &parts);
  char text[32];
  return std::string(text, std::strftime(text, sizeof text, format, &parts));
}

}  // namespace holdfast::cli
