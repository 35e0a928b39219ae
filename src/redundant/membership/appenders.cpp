#include "redundant/membership/appenders.hpp"

#include <algorithm>

namespace holdfast::redundant {

bool Appenders::ask(uint64_t file, const Turn& turn) {
  std::deque<Turn>& line = files_[file];
  if (std::find(line.begin(), line.end(), turn) == line.end()) line.push_back(turn);
  return line.front() == turn;
}

std::optional<Appenders::Turn> Appenders::over(uint64_t file, const Turn& turn) {
  const auto found = files_.find(file);
  if (found == files_.end() || !(found->second.front() == turn)) return std::nullopt;
  found->second.pop_front();
  if (!found->second.empty()) return found->second.front();
  files_.erase(found);
  return std::nullopt;
}

std::vector<Appenders::Granted> Appenders::gone(int rank) {
  std::vector<Granted> granted;
  for (auto file = files_.begin(); file != files_.end();) {
    auto& [name, line] = *file;
    const Turn before = line.front();
    std::erase_if(line, [rank](const Turn& turn) { return turn.rank == rank; });
    if (!line.empty() && !(line.front() == before)) granted.push_back({name, line.front()});
    file = line.empty() ? files_.erase(file) : std::next(file);
  }
  return granted;
}

}  // namespace holdfast::redundant
