// The simulated world: memory targets behind a gate that counts every call on storage, fails members and kills the
// job at the n-th call; the user's path in memory; ranks that take turns.
#pragma once
#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "base/turns.hpp"
#include "catalog/located.hpp"
#include "engine/maintenance.hpp"
#include "engine/protected_file.hpp"
#include "engine/waiting.hpp"
#include "exchange/exchange.hpp"
#include "sim/schedule.hpp"
#include "target/memory.hpp"

namespace holdfast::sim {

constexpr int64_t most_calls = 400;  // of what is killed at each of its calls in turn

// What stands between the job and its storage. One for the whole world, shared by all ranks.
class Gate {
 public:
  bool moves = true;  // whether the targets can give an object another name; agents' cannot
  int lockless = -1;  // the member whose file system gives no locks
  bool far = false;   // whether calls that belong together are made as one
  std::atomic<int64_t> calls{0};
  std::atomic<int64_t> die_at{-1};        // from this call on the job is dead: nothing it does reaches storage
  std::function<Status(int member)> way;  // from the running process to who serves a member; not asked by who is where its disk is
  std::function<void()> when_busy;        // the running process finds a lock held
  Status way_to(int member) const { return way ? way(member) : Status(); }
  bool dead() const { return die_at >= 0 && calls >= die_at; }

  void fail(int member, Kind kind) {
    std::lock_guard guard(mutex_);
    failing_[member] = kind;
  }
  void heal(int member) {
    std::lock_guard guard(mutex_);
    failing_.erase(member);
    later_.erase(member);
    std::erase_if(failing_there_, [&](const auto& entry) { return entry.first.first == member; });
  }
  bool failing(int member) {
    std::lock_guard guard(mutex_);
    return failing_.contains(member);
  }
  // For one rank only, as when a mount goes on one node.
  void fail_on_rank(int member, int rank, Kind kind) {
    std::lock_guard guard(mutex_);
    failing_there_[{member, rank}] = kind;
  }
  // How many halves of what is asked lie in memory: most often all, sometimes a part or nothing.
  int in_memory(int member, int disk) {
    const uint64_t call = cached_calls_++;
    std::lock_guard guard(mutex_);
    if (dead() || failing_.contains(member) || disks_[member] != disk) return 0;
    const uint64_t chance = (call + 1) * 0x9E3779B97F4A7C15ull >> 59;
    return chance < 4 ? 0 : chance < 6 ? 1 : 2;
  }
  // How a call of the running process fails there, without counting it.
  Status state_of(int member, int disk) {
    if (dead() || Schedule::dead()) return Status(Kind::io, "the job is dead");
    std::lock_guard guard(mutex_);
    if (disks_[member] != disk) return Status(Kind::io, "the disk was taken out");
    if (auto it = failing_.find(member); it != failing_.end()) return Status(it->second, "injected failure");
    const auto there = failing_there_.find({member, Schedule::current_rank()});
    return there == failing_there_.end() ? Status() : Status(there->second, "injected failure on one rank");
  }
  // From the n-th call of this member on it fails (n counted from now).
  void fail_later(int member, int64_t n, Kind kind) {
    std::lock_guard guard(mutex_);
    later_[member] = {n, kind};
  }
  // Another disk is in the member's place: whoever has the old one open gets errors.
  void swap(int member) {
    std::lock_guard guard(mutex_);
    ++disks_[member];
  }
  int disk(int member) {
    std::lock_guard guard(mutex_);
    return disks_[member];
  }
  Status admit_on_the_way(int member, int disk) {
    HF_TRY(way_to(member));
    return admit(member, disk);
  }
  Status admit(int member, int disk) {
    Schedule::yield();
    const int64_t call = ++calls;
    if ((die_at >= 0 && call >= die_at) || !Schedule::count_call()) return Status(Kind::io, "the job is dead");
    std::lock_guard guard(mutex_);
    if (auto it = later_.find(member); it != later_.end() && --it->second.first <= 0) {
      failing_[member] = it->second.second;
      later_.erase(it);
    }
    if (disks_[member] != disk) return Status(Kind::io, "the disk was taken out");
    const auto failing = failing_.find(member);
    if (failing != failing_.end()) return Status(failing->second, "injected failure");
    const auto there = failing_there_.find({member, Schedule::current_rank()});
    return there == failing_there_.end() ? Status() : Status(there->second, "injected failure on one rank");
  }

 private:
  std::mutex mutex_;
  std::atomic<uint64_t> cached_calls_{0};
  std::map<int, Kind> failing_;
  std::map<int, int> disks_;                           // by member: how often it was swapped
  std::map<std::pair<int, int>, Kind> failing_there_;  // by member and rank
  std::map<int, std::pair<int64_t, Kind>> later_;
};

// What time it is, so that a run replays whatever else the machine does: a microsecond passes at each look at the clock, and now and then
// as much as on a machine that had other things to do. Each world begins anew.
struct SimulatedClock {
  static constexpr uint64_t begin = 1'000'000'000, pause_ns = 150'000'000;
  std::atomic<uint64_t> now{begin}, looks{0};
  uint64_t look() {
    const bool after_a_pause = (++looks * 0x9E3779B97F4A7C15ull >> 59) == 0;
    return now += after_a_pause ? pause_ns : 1000;
  }
  void begin_anew() { now = begin, looks = 0; }
};
inline SimulatedClock simulated_clock;
inline const auto tells_the_time = engine::clock_ns = [] { return simulated_clock.look(); };
// In a schedule no time passes while a lock is busy: others go on.
inline const auto waits_in_turns = engine::wait_while_busy = [](std::chrono::microseconds) { Schedule::yield(true); };
inline const auto waits_for_threads = let_a_thread_on = [] { return Schedule::let_threads_on(); };

// A lock that goes with the process that took it, be it that the process dies.
class MortalLock final : public target::Lock {
 public:
  explicit MortalLock(std::unique_ptr<target::Lock> lock) : lock_(std::make_shared<std::unique_ptr<target::Lock>>(std::move(lock))) {
    Schedule::at_death([weak = std::weak_ptr(lock_)] {
      if (auto held = weak.lock()) held->reset();
    });
  }

 private:
  std::shared_ptr<std::unique_ptr<target::Lock>> lock_;
};

// What a call for a lock gives the running process. Whoever finds it busy asks again: others must get on.
inline Result<std::unique_ptr<target::Lock>> mortal(Result<std::unique_ptr<target::Lock>> lock) {
  if (lock.status().kind() == Kind::busy) Schedule::yield(true);
  if (!lock.ok()) return lock;
  return std::unique_ptr<target::Lock>(std::make_unique<MortalLock>(std::move(*lock)));
}

class GatedObject final : public target::Object {
 public:
  GatedObject(std::shared_ptr<target::Object> inner, std::shared_ptr<Gate> gate, int member, int disk)
      : inner_(std::move(inner)), gate_(std::move(gate)), member_(member), disk_(disk) {}
  Result<size_t> read(uint64_t offset, std::span<const iovec> into) override {
    if (Status s = admit(); !s.ok()) return s;
    return inner_->read(offset, into);
  }
  size_t read_cached(uint64_t offset, std::span<const iovec> into) override {
    const int part = gate_->way_to(member_).ok() ? gate_->in_memory(member_, disk_) : 0;
    if (part == 0) return 0;
    auto got = inner_->read(offset, into);
    return got.ok() ? *got * size_t(part) / 2 : 0;
  }
  Result<std::vector<uint64_t>> checksums(const target::CheckedBlocks& blocks) override {
    if (Status s = admit(); !s.ok()) return s;
    return inner_->checksums(blocks);
  }
  Status write(uint64_t offset, std::span<const iovec> from) override {
    HF_TRY(admit());
    return inner_->write(offset, from);
  }
  bool map(uint64_t offset, uint64_t bytes) override { return admit().ok() && inner_->map(offset, bytes); }
  Status sync() override {
    HF_TRY(admit());
    return inner_->sync();
  }
  Status write_back() override {
    HF_TRY(admit());
    return inner_->write_back();
  }
  Status truncate(uint64_t size) override {
    HF_TRY(admit());
    return inner_->truncate(size);
  }
  Status grow(uint64_t size) override {
    HF_TRY(admit());
    return inner_->grow(size);
  }
  Result<uint64_t> size() override { return inner_->size(); }
  Status still_there() override { return inner_->still_there(); }
  const std::shared_ptr<target::Object>& inner() const { return inner_; }

 private:
  Status admit() { return gate_->admit_on_the_way(member_, disk_); }
  std::shared_ptr<target::Object> inner_;
  std::shared_ptr<Gate> gate_;
  int member_, disk_;
};

class GatedTarget : public target::Target {
 public:
  GatedTarget(std::shared_ptr<target::Target> inner, std::shared_ptr<Gate> gate, int member, int disk = 0)
      : inner_(std::move(inner)), gate_(std::move(gate)), member_(member), disk_(disk) {}
  std::string describe() const override { return inner_->describe(); }
  bool caches_by_node() const override { return inner_->caches_by_node(); }
  std::string address_for_agents() const override { return inner_->address_for_agents(); }
  Status sum(std::span<const target::SumTerm> terms, ByteSpan into) override {
    HF_TRY(admit());
    return inner_->sum(terms, into);
  }
  Result<std::shared_ptr<target::Object>> open(const std::string& name, target::OpenMode mode, target::Pages pages = target::Pages::own) override {
    if (Status s = admit(); !s.ok()) return s;
    auto object = inner_->open(name, mode, pages);
    if (!object.ok()) return object;
    return std::shared_ptr<target::Object>(std::make_shared<GatedObject>(*object, gate_, member_, disk_));
  }
  Result<target::Stripes> make_striped(const std::string& name, const target::StripeWish& wish) override {
    HF_TRY(admit());
    return inner_->make_striped(name, wish);
  }
  Result<target::Stripes> stripes(const std::string& name) override { return inner_->stripes(name); }
  Status put(const std::string& name, ByteView content, bool durable) override {
    HF_TRY(admit());
    return inner_->put(name, content, durable);
  }
  bool moves_objects() const override { return gate_->moves && inner_->moves_objects(); }
  bool is_far() const override { return gate_->far || inner_->is_far(); }
  Status move(const std::string& from, const std::string& to) override {
    HF_TRY(admit());
    return inner_->move(from, to);
  }
  Status link(const std::string& from, const std::string& to) override {
    HF_TRY(admit());
    return inner_->link(from, to);
  }
  Result<Bytes> get(const std::string& name, uint64_t max_bytes) override {
    if (Status s = admit(); !s.ok()) return s;
    return inner_->get(name, max_bytes);
  }
  Status make_directory(const std::string& name) override {
    HF_TRY(admit());
    return inner_->make_directory(name);
  }
  Status remove(const std::string& name) override {
    HF_TRY(admit());
    return inner_->remove(name);
  }
  Status remove_directory(const std::string& name) override {
    HF_TRY(admit());
    return inner_->remove_directory(name);
  }
  Status set_aside(const std::string& name) override {
    HF_TRY(admit());
    return inner_->set_aside(name);
  }
  Result<std::vector<std::string>> list(const std::string& directory) override {
    if (Status s = admit(); !s.ok()) return s;
    return inner_->list(directory);
  }
  Result<target::Space> space() override { return inner_->space(); }
  Status check_identity() override {
    HF_TRY(gate_->way_to(member_));
    if (Status s = gate_->state_of(member_, disk_); !s.ok() && s.kind() != Kind::no_space) return s;
    return inner_->check_identity();
  }
  Result<std::unique_ptr<target::Lock>> try_lock(const std::string& name, target::Hold hold) override {
    Schedule::yield();
    if (Status s = gate_->way_to(member_); !s.ok()) return s;
    if (Status s = gate_->state_of(member_, disk_); !s.ok()) return s;
    if (gate_->lockless == member_) return Status(Kind::unsupported, "there are no locks", ENOLCK);
    return mortal(inner_->try_lock(name, hold));
  }

 protected:
  Status admit() { return gate_->admit_on_the_way(member_, disk_); }
  std::shared_ptr<target::Target> inner_;
  std::shared_ptr<Gate> gate_;
  int member_, disk_;
};

// The user's path and sidecar, in memory.
class MemoryPath final : public catalog::PathKeeper {
 public:
  struct State {
    std::mutex mutex;
    std::optional<layout::Manifest> manifest;
    bool locked = false;
    bool gone = false;                        // the path's own directory was lost
    std::set<int> hidden_from;                // processes that cannot reach it
    std::optional<layout::Manifest> durable;  // what a power failure leaves at least
  };
  explicit MemoryPath(std::shared_ptr<State> state, std::shared_ptr<Gate> gate) : state_(std::move(state)), gate_(std::move(gate)) {}
  Result<layout::Manifest> sidecar() override {
    Schedule::yield();
    std::lock_guard guard(state_->mutex);
    if (out_of_reach() || !state_->manifest) return Status(Kind::not_found, "no sidecar");
    return *state_->manifest;
  }
  Status publish(layout::Manifest& manifest, bool durable) override {
    Schedule::yield();
    std::lock_guard guard(state_->mutex);
    if (gate_->dead() || Schedule::dead() || out_of_reach()) return Status(Kind::io, "no sidecar");
    state_->manifest = manifest;
    if (durable) state_->durable = manifest;
    return Status();
  }
  Result<std::unique_ptr<target::Lock>> try_lock(bool) override {
    struct Held final : target::Lock {
      explicit Held(std::shared_ptr<State> state) : state(std::move(state)) {}
      ~Held() override {
        std::lock_guard guard(state->mutex);
        state->locked = false;
      }
      std::shared_ptr<State> state;
    };
    Schedule::yield();
    if (gate_->dead() || Schedule::dead() || out_of_reach()) return Status(Kind::io, "no sidecar");
    std::unique_lock guard(state_->mutex);
    const bool busy = std::exchange(state_->locked, true);
    guard.unlock();
    if (busy) return mortal(Status(Kind::busy, "locked"));
    return mortal(std::unique_ptr<target::Lock>(std::make_unique<Held>(state_)));
  }

 private:
  bool out_of_reach() const { return state_->gone || state_->hidden_from.contains(Schedule::current_rank()); }
  std::shared_ptr<State> state_;
  std::shared_ptr<Gate> gate_;
};

struct World {
  explicit World(const std::string& scheme, layout::Placement placement = layout::Placement::interleaved, int members = 0,
                 uint64_t unit_bytes = 4096) {
    simulated_clock.begin_anew();
    auto& g = identity.geometry;
    g.scheme = *layout::Scheme::parse(scheme);
    g.placement = placement;
    g.members = members ? members : g.scheme.width();
    g.unit_bytes = unit_bytes;
    g.block_bytes = layout::block_bytes_for(unit_bytes);
    identity.pool = g.is_wide();
    identity.file_id = layout::random_id();
    identity.set_id = layout::random_id();
    identity.path = "/data/out.dat";
    identity.directory = "out.dat-00000000";
    for (int member = 0; member < g.members; ++member) {
      directories.push_back(std::make_shared<target::MemoryDirectory>());
      identity.members.push_back({layout::random_id(), "/t" + std::to_string(member), false, ""});
      (void)target::make_memory_target(directories[member], "t")->make_directory(identity.directory);
    }
  }

  catalog::Located locate() {
    catalog::Located located;
    located.manifest = identity;
    located.path_keeper = std::make_shared<MemoryPath>(path, gate);
    for (int member = 0; member < identity.geometry.members; ++member) {
      catalog::Member entry;
      entry.index = member;
      entry.uuid = identity.members[member].uuid;
      entry.path = identity.members[member].path;
      if (gone.contains(member)) {
        entry.lost = Status(Kind::not_found, "gone");
      } else {
        auto storage = target::make_memory_target(directories[member], entry.path);
        entry.target = std::make_shared<GatedTarget>(std::move(storage), gate, member, gate->disk(member));
        entry.lane = target::make_inline_lane();
      }
      located.members.push_back(std::move(entry));
    }
    return located;
  }

  Result<std::unique_ptr<engine::ProtectedFile>> open(exchange::Exchange& ranks, bool fresh = false, bool write = true) {
    return engine::ProtectedFile::open(locate(), {true, write, fresh}, settings, ranks);
  }

  // An empty disk in the member's place.
  void replace(int member) {
    directories[member] = std::make_shared<target::MemoryDirectory>();
    gone.erase(member);
    gate->heal(member);
  }

  // The processes are gone; storage is as they left it, or (with a seed) as a power failure left it.
  void after_crash(std::optional<uint64_t> power_seed = {}) {
    gate = std::make_shared<Gate>();
    for (auto& directory : directories) {
      directory->release_locks();
      if (power_seed) directory->power_loss((*power_seed)++);
    }
    path->locked = false;
    if (power_seed && (*power_seed)++ % 2 && path->durable) path->manifest = path->durable;
  }

  layout::Manifest identity;
  std::vector<std::shared_ptr<target::MemoryDirectory>> directories;
  std::shared_ptr<Gate> gate = std::make_shared<Gate>();
  std::shared_ptr<MemoryPath::State> path = std::make_shared<MemoryPath::State>();
  std::set<int> gone;
  Settings settings;
};

struct Setting {
  const char* scheme;
  layout::Placement placement;
  int members;
};
inline std::string name_of(const Setting& s) {
  return std::string(s.scheme) + " " + layout::placement_name(s.placement) + " on " + std::to_string(s.members);
}
// For parameterised tests.
inline std::string identifier_of(std::string name) {
  for (char& c : name)
    if (!isalnum(c)) c = '_';
  return name;
}
inline std::string identifier_of(const Setting& s) { return identifier_of(name_of(s)); }

// A plain file.
struct Model {
  Bytes bytes;
  void write(uint64_t offset, ByteView data) {
    if (bytes.size() < offset + data.size()) bytes.resize(offset + data.size());
    std::copy(data.begin(), data.end(), bytes.begin() + long(offset));
  }
};

// What a variable says.
inline uint64_t number_from(const char* name, uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text ? std::strtoull(text, nullptr, 10) : otherwise;
}
// Seeds begin here: 1, or what SIM_SEED says, to search elsewhere or to replay a failure.
inline uint64_t first_seed() { return number_from("SIM_SEED", 1); }

inline Bytes random_bytes(std::mt19937_64& random, size_t count) {
  Bytes bytes(count);
  for (std::byte& byte : bytes) byte = std::byte(random() | 1);
  return bytes;
}

// Runs `body(rank, exchange)` as so many processes, which take turns by the seed. Returns what tells one order from another.
inline uint64_t on_ranks(int count, uint64_t seed, const std::function<void(int, exchange::Exchange&)>& body) {
  Schedule schedule(seed);
  Schedule::Group group(count);
  for (int rank = 0; rank < count; ++rank) {
    const int process = schedule.add([&, rank] {
      GroupExchange ranks(schedule, group, rank);
      body(rank, ranks);
    });
    schedule.join(group, rank, process);
  }
  schedule.run();
  return schedule.trace();
}

}  // namespace holdfast::sim
