#include "redundant/membership/appenders.hpp"

#include <algorithm>

namespace holdfast::redundant {

bool Appenders::ask(uint64_t file, const Append& append) {
  std::deque<Append>& line = files_[file];
  if (std::find(line.begin(), line.end(), append) == line.end()) line.push_back(append);
  return line.front() == append;
}

std::optional<Appenders::Append> Appenders::over(uint64_t file, const Append& append) {
  const auto found = files_.find(file);
  if (found == files_.end() || !(found->second.front() == append)) return std::nullopt;
  found->second.pop_front();
  if (!found->second.empty()) return found->second.front();
  files_.erase(found);
  return std::nullopt;
}

std::vector<Appenders::Granted> Appenders::gone(int rank) {
  std::vector<Granted> granted;
  for (auto file = files_.begin(); file != files_.end();) {
    auto& [name, line] = *file;
    const Append before = line.front();
    std::erase_if(line, [rank](const Append& append) { return append.rank == rank; });
    if (!line.empty() && !(line.front() == before)) granted.push_back({name, line.front()});
    file = line.empty() ? files_.erase(file) : std::next(file);
  }
  return granted;
}

}  // namespace holdfast::redundant
