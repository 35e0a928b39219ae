// What files may hold that are protected one by one (checkpoint/singles.hpp), over all attempts of a job: no code of the product. What is written, and what is
// removed, has an order: the start of the job, and the number that the file had then. A version that was seen protected is found from then on, or a
// newer one, as long as its nodes are there: until so many later ones are seen as are kept, or it is removed. What is removed stays so while a node remembers it.
#pragma once
#include <compare>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "sim/checkpoints_model.hpp"

namespace holdfast::sim {

class SinglesModel {
 public:
  struct Order {
    uint64_t start = 0;  // of the job
    uint32_t number = 0;
    auto operator<=>(const Order&) const = default;
  };
  struct Removal {
    Order order;
    std::set<int> remembered;  // nodes that were told, and have lost nothing since
  };
  struct Promise {
    Order order;
    CheckpointsModel::File file;
  };
  struct File {
    std::map<uint64_t, Order> writes;  // by their numbers
    std::vector<Removal> removals;     // ascending
    std::map<Order, Promise> promised;

    std::optional<Order> last_removal() const { return removals.empty() ? std::nullopt : std::optional(removals.back().order); }
    std::optional<Order> last_write() const {
      std::optional<Order> last;
      for (const auto& [number, order] : writes)
        if (!last || *last < order) last = order;
      return last;
    }
    // Nothing of then or before is to be seen: as far as a node that is there remembers it, of that start of the job or a later one.
    std::optional<Order> kept_away(const std::set<int>& lost, uint64_t since = 0) const {
      for (auto one = removals.rbegin(); one != removals.rend(); ++one)
        for (const int node : one->remembered)
          if (one->order.start >= since && !lost.contains(node)) return one->order;
      return {};
    }
  };
  std::map<std::string, File> files;  // by path

  // What is to be found, or something newer.
  static std::optional<Order> least_of(const File& file, size_t keep, const std::set<int>& lost, const CheckpointsModel& nodes) {
    size_t later = 0;
    for (auto one = file.promised.rbegin(); one != file.promised.rend() && later < keep; ++one, ++later) {
      if (const auto removed = file.last_removal(); removed && one->first <= *removed) return {};
      if (nodes.bears(CheckpointsModel::Promise{0, {{"", one->second.file}}}, lost)) return one->first;
    }
    return {};
  }
  void forget_notes_of(int node) {
    for (auto& [path, file] : files)
      for (Removal& one : file.removals) one.remembered.erase(node);
  }
};

}  // namespace holdfast::sim
