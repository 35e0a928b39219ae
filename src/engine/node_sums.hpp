// Units of rows that the nodes which hold the other ones rebuild together. Each agent adds its unit's part to what it gets from the next one
// (target::Target::sum), so that no node sends or gets more than the unit. Nothing of it is believed before its checksums are right.
#pragma once
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "coding/code.hpp"
#include "engine/buffers.hpp"
#include "engine/row_sources.hpp"

namespace holdfast::engine {

// A repair's ways to ask for sums, beside the lanes of its members. There are some at each agent, so that several sums are on their way at once, and
// at few agents at a time.
class SumAskers {
 public:
  static constexpr size_t most_agents = 8, askers_of_an_agent = 3;
  struct Ways {
    std::function<Result<std::shared_ptr<target::Target>>(const std::string& address)> open;
    std::function<std::shared_ptr<target::Lane>(const std::string& address)> lane;
  };
  explicit SumAskers(Ways ways) : ways_(std::move(ways)) {}
  explicit SumAskers(std::chrono::milliseconds deadline);  // by the environment's
  ~SumAskers();
  SumAskers(const SumAskers&) = delete;

  struct Asked {
    explicit Asked(uint64_t bytes) : sum(bytes) {}
    Buffer sum;
    std::shared_ptr<target::Ticket> ticket;
  };
  // Null where none is asked any more: agents have failed before.
  std::shared_ptr<Asked> ask(std::vector<target::SumTerm> terms, uint64_t bytes);
  // Whether it is there. To be asked once.
  bool wait(Asked& asked);

 private:
  struct Asker {
    std::shared_ptr<target::Lane> lane;
    std::shared_ptr<std::shared_ptr<target::Target>> target;  // opened by the first call, in the lane
  };
  struct At {
    std::vector<Asker> askers;
    size_t next = 0;
    uint64_t asked_last = 0;
  };
  At& at(const std::string& address);
  static void let_go(At& at);

  const Ways ways_;
  uint64_t asked_ = 0;
  std::map<std::string, At> by_address_;
  int failures_ = 0;
};

// What sums are of one holding of the file's lock: where units lie, and which of them may be read.
class NodeSums {
 public:
  NodeSums(SumAskers& askers, Members& members, const catalog::Located& located, const RowSources& sources);

  // Whether any member lies with an agent that adds.
  bool possible() const { return possible_; }
  // One unit's blocks, on their way: what the nodes add, and what this process reads itself of what it has at hand.
  struct Unit;
  // Of units in `but` nothing is taken. Null where it has to be rebuilt as ever.
  std::shared_ptr<Unit> begin(const layout::RowRecord& record, uint32_t first_block, uint32_t blocks, int unit, uint64_t but);
  // True: `into` has the unit's blocks, and they verify.
  bool finish(const layout::RowRecord& record, Unit& unit, ByteSpan into);

 private:
  std::string address_of(int member) const;
  std::tuple<bool, bool, int> rank_of(uint64_t row, int unit) const;  // which of them is taken first

  SumAskers& askers_;
  Members& members_;
  const catalog::Located& located_;
  const RowSources& sources_;
  const std::shared_ptr<const coding::Code> code_;
  bool possible_ = false;
};

}  // namespace holdfast::engine
