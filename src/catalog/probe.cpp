#include "catalog/probe.hpp"

#include <pthread.h>

#include <condition_variable>
#include <map>
#include <mutex>

#include <fmt/format.h>

#include "base/node_path.hpp"
#include "base/text_bytes.hpp"
#include "catalog/environment.hpp"
#include "catalog/user_files.hpp"
#include "layout/sealed_text.hpp"
#include "target/address.hpp"
#include "target/lane_lock.hpp"

namespace holdfast::catalog {

namespace {

// Never destroyed: lanes may still be hung when the process ends.
struct LaneRegistry {
  std::mutex mutex;
  std::map<std::pair<std::string, int64_t>, std::shared_ptr<target::Lane>> lanes;
};

LaneRegistry& registry() {
  static LaneRegistry* one = [] {
    auto* made = new LaneRegistry;
    // A fork while another thread looks for a lane must not leave the child a locked registry.
    pthread_atfork([] { registry().mutex.lock(); }, [] { registry().mutex.unlock(); }, [] { registry().mutex.unlock(); });
    return made;
  }();
  return *one;
}

constexpr size_t idle_lanes_kept = 64;

bool looks_empty(const std::vector<std::string>& names) {
  for (const std::string& name : names)
    if (name != "lost+found" && name.front() != '.') return false;
  return true;
}

void find_pool_marker(Probe& probe, ByteView text) {
  auto pool = decode_pool_marker(text);
  if (!pool) return;
  probe.pool = std::move(*pool);
  probe.marker_status = Status(Kind::invalid, "it is a directory of a pool (--local) and no target of a set; give another with --targets");
}

// The only copy: what can be told of it is worth some milliseconds. `text` becomes what was written.
Result<Marker> decode_mended(Probe& probe, Bytes& text) {
  if (auto mended = layout::without_flipped_bit(chars_of(text))) {
    const ByteView bytes = bytes_of_text(*mended);
    text.assign(bytes.begin(), bytes.end());
    probe.mended_marker = std::move(*mended);
  }
  return decode_marker(text);
}

// False where there is none.
bool find_marker(Probe& probe) {
  auto text = probe.target->get(marker_name, max_marker_bytes);
  probe.has_marker = text || text.status().kind() != Kind::not_found;
  if (text) {
    auto marker = decode_marker(*text);
    if (marker.status().kind() == Kind::corrupt) marker = decode_mended(probe, *text);
    if (marker) probe.marker = std::move(*marker);
    else probe.marker_status = marker.status();
    if (marker.status().kind() == Kind::version) find_pool_marker(probe, *text);
  } else {
    probe.marker_status = text.status();
  }
  return probe.has_marker;
}

void read_marker(Probe& probe) {
  if (find_marker(probe)) return;
  auto names = probe.target->list("");
  probe.empty = names && looks_empty(*names);
  if (!probe.empty) (void)find_marker(probe);  // perhaps what it holds is a marker that has come since
}

void read_manifest(Probe& probe, const std::string& name) {
  auto text = probe.target->get(name, layout::max_manifest_bytes);
  if (!text) {
    probe.manifest_status = text.status();
    return;
  }
  auto manifest = layout::decode(*text);
  if (manifest) probe.manifest = std::move(*manifest);
  else probe.manifest_status = manifest.status();
}

// False: there is no directory there.
bool look_at_place(Probe& probe) {
  auto state = look(probe.path, true);
  if (!state) probe.status = state.status();
  else if (!state->directory()) probe.status = Status(Kind::invalid, probe.path + " is not a directory; give a directory as target", ENOTDIR);
  if (!probe.status.ok()) return false;
  probe.device = state->device;
  probe.inode = state->inode;
  return true;
}

void look_into(Probe& probe, const LookFor& what, uint64_t deadline_ms) {
  const bool by_agent = names_a_node(probe.path);
  if (!by_agent && !look_at_place(probe)) return;
  target::DirectoryOptions options;
  options.may_be_renamed = !what.marker;
  if (what.mode) options.mode = *what.mode;
  if (what.marker) options.read_first = marker_name;
  options.agent_patience_ms = deadline_ms / 4 * 3;  // the lane's deadline is for all that follows as well
  auto target = environment().open_target(probe.path, options);
  if (!target) {
    probe.status = target.status();
    return;
  }
  probe.target = std::move(*target);
  if (what.marker) read_marker(probe);
  if (!what.manifest_name.empty()) read_manifest(probe, what.manifest_name);
}

// Where an agent has not answered in time a firewall may be in between.
Status with_ways(const Status& status, const std::string& path) {
  const std::string ways = target::ways_to_agent(path);
  return ways.empty() ? status : Status(status.kind(), fmt::format("{} (it is asked {})", status.sentence(), ways), status.sys_errno());
}

}  // namespace

void watch_forks() {
  (void)registry();
  target::watch_forks();
}

void end_idle_lanes() { target::end_idle_companions(); }

std::shared_ptr<target::Lane> lane_of_process(const std::string& directory, std::chrono::milliseconds deadline) {
  LaneRegistry& all = registry();
  std::lock_guard lock(all.mutex);
  auto& lane = all.lanes[{directory, deadline.count()}];
  if (lane) {
    if (lane->set_aside()) (void)lane->readmit();  // for a new file, where nothing of before is outstanding
    return lane;
  }
  // Lanes that nobody uses go when there are many; one that was set aside stays, or each open would wait for it anew.
  if (all.lanes.size() > idle_lanes_kept)
    std::erase_if(all.lanes, [](const auto& entry) { return entry.second && entry.second.use_count() == 1 && !entry.second->set_aside(); });
  auto& fresh = all.lanes[{directory, deadline.count()}];
  fresh = target::make_companion_lane(directory, deadline);
  return fresh;
}

namespace {

// Companions that look at the same time. A pool may have thousands of nodes: a process for each of them would hold up the machine. Those that take
// long only wait. They are not counted any more, and hold up no others.
class Lookers {
 public:
  // Ends with the last copy of it.
  using Turn = std::shared_ptr<const void>;
  Turn next() {
    auto one = std::make_shared<Looker>(counted_);
    std::unique_lock lock(counted_->mutex);
    if (!counted_->ended.wait_for(lock, patience_, [&] { return counted_->count < most_at_once; }))
      counted_->count = 0, ++counted_->period, patience_ /= 2;  // of many that keep silent together no longer than of a few
    ++counted_->count;
    one->period = counted_->period;
    return one;
  }

 private:
  static constexpr size_t most_at_once = 32;
  struct Counted {
    std::mutex mutex;
    std::condition_variable ended;
    size_t count = 0;
    uint64_t period = 1;  // goes on when those that are counted are given up
  };
  struct Looker {
    explicit Looker(std::shared_ptr<Counted> counted) : counted_by(std::move(counted)) {}
    ~Looker() {
      std::lock_guard lock(counted_by->mutex);
      if (period == counted_by->period) --counted_by->count;
      counted_by->ended.notify_one();
    }
    const std::shared_ptr<Counted> counted_by;
    uint64_t period = 0;
  };
  std::chrono::microseconds patience_{250000};
  const std::shared_ptr<Counted> counted_ = std::make_shared<Counted>();
};

}  // namespace

std::vector<Probe> probe_directories(const std::vector<std::string>& directories, const LookFor& what, uint64_t deadline_ms) {
  struct Pending {
    std::shared_ptr<Probe> probe;  // the lane's own until its call has ended
    std::shared_ptr<target::Lane> lane;
    std::shared_ptr<target::Ticket> ticket;
  };
  std::vector<Pending> pending;
  Lookers lookers;
  for (const std::string& directory : directories) {
    Pending one;
    one.probe = std::make_shared<Probe>();
    one.probe->path = directory;
    one.lane = environment().lane_for(directory, std::chrono::milliseconds(deadline_ms));
    one.ticket = one.lane->submit([probe = one.probe, what, deadline_ms, turn = lookers.next(), lane = std::weak_ptr(one.lane)] {
      look_into(*probe, what, deadline_ms);
      if (const auto own = lane.lock(); own && !probe->reachable()) own->rest();
      return Status();
    });
    pending.push_back(std::move(one));
  }
  std::vector<Probe> probes;
  for (size_t i = 0; i < pending.size(); ++i) {
    Status status = pending[i].ticket->wait();
    Probe probe;
    if (status.ok()) probe = std::move(*pending[i].probe);
    probe.path = directories[i];
    probe.lane = pending[i].lane;
    if (!status.ok()) probe.status = with_ways(status, directories[i]);
    probes.push_back(std::move(probe));
  }
  return probes;
}

const std::string& Probe::uuid() const {
  static const std::string* const none = new std::string;
  if (pool) return pool->uuid;
  return marker ? marker->uuid() : *none;
}

Result<std::unique_ptr<target::Lock>> lock_directory(const Probe& probe) {
  const auto give_up = environment().now() + std::chrono::seconds(10);
  while (true) {
    auto lock = target::lock_in_lane(probe.lane, probe.target, set_lock_name);
    if (lock.ok() || lock.status().kind() != Kind::busy || environment().now() > give_up) return lock;
    environment().wait(std::chrono::milliseconds(20));
  }
}

// Under the lock of whoever writes markers. What stands there by now may be another one.
void mend_marker(const Probe& probe) {
  if (probe.mended_marker.empty() || !probe.reachable()) return;
  const auto lock = lock_directory(probe);
  if (!lock) return;
  (void)probe.lane->run([target = probe.target, text = probe.mended_marker]() -> Status {
    const auto now = target->get(marker_name, max_marker_bytes);
    if (!now || layout::without_flipped_bit(chars_of(*now)) != text) return {};
    return target->put(marker_name, bytes_of_text(text), true);
  });
}

bool are_one_directory(const Probe& one, const Probe& other) {
  if (!one.reachable() || !other.reachable()) return false;
  if (!names_a_node(one.path) && !names_a_node(other.path)) return one.inode == other.inode && one.device == other.device;
  const auto id = one.target->directory_id();
  return id && id == other.target->directory_id();
}

const Marker* newest_marker(const std::vector<Probe>& probes, const std::string& set_id) {
  const Marker* newest = nullptr;
  for (const Probe& probe : probes)
    if (probe.marker && (set_id.empty() || probe.marker->set_id == set_id) && (!newest || probe.marker->epoch > newest->epoch))
      newest = &*probe.marker;
  return newest;
}

std::string why_not_member(const Probe& found, const std::string& set_id) {
  if (!found.reachable()) return found.status.sentence();
  if (!found.has_marker && found.empty) return found.path + " is empty and has no marker: is a mount missing there?";
  if (!found.has_marker) return found.path + " has no target marker";
  if (found.pool)
    return found.path +
           " has another identity than the directory that was there: it was wiped and is in use anew, or another one stands in its place";
  if (!found.marker) return fmt::format("the marker of {} cannot be used: {}", found.path, found.marker_status.sentence());
  if (found.marker->set_id != set_id) return fmt::format("{} belongs to another target set ({})", found.path, found.marker->set_id);
  return fmt::format("{} is another target of the set than the one expected there", found.path);
}

}  // namespace holdfast::catalog
