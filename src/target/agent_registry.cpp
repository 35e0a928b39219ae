#include "target/agent_registry.hpp"

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstring>
#include <list>
#include <map>
#include <mutex>
#include <set>
#include <sstream>

#include <fmt/format.h>

#include "base/config.hpp"
#include "base/node_path.hpp"
#include "base/raw_syscalls.hpp"
#include "base/shell_word.hpp"
#include "base/text_bytes.hpp"
#include "target/agent_again.hpp"
#include "target/agent_link.hpp"
#include "target/agent_near.hpp"
#include "target/companion.hpp"
#include "target/directory_held.hpp"

namespace holdfast::target {

namespace {

constexpr const char* first_line = "holdfast-agent 1";
constexpr const char* suffix = ".agent";
constexpr const char* secret_name = "secret";
constexpr uint64_t most_note_bytes = 64 << 10;
constexpr uint64_t connect_ms = 5000;
constexpr size_t key_digits = 16;

template <size_t n>
std::string hex(const std::array<std::byte, n>& bytes) {
  std::string text;
  for (const std::byte byte : bytes) text += fmt::format("{:02x}", unsigned(byte));
  return text;
}

template <size_t n>
bool unhex(std::string_view text, std::array<std::byte, n>& into) {
  if (text.size() != 2 * n) return false;
  for (size_t i = 0; i < n; ++i) {
    unsigned byte = 0;
    const char* from = text.data() + 2 * i;
    if (std::from_chars(from, from + 2, byte, 16).ptr != from + 2) return false;
    into[i] = std::byte(byte);
  }
  return true;
}

std::string text_of(const Bytes& bytes) { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }

// Nobody else may read there: who knows the secret has the user's data.
Status check_private(const std::string& directory) {
  struct stat state;
  if (raw::fstatat(AT_FDCWD, directory.c_str(), &state, 0) != 0) return Status::from_errno(errno, directory);
  if (state.st_uid == geteuid() && (state.st_mode & 077) == 0) return {};
  return Status(Kind::access, fmt::format("{} holds the secret of node agents and must be yours alone; run: chmod 700 {}", directory, directory),
                EACCES);
}

void make_directories(const std::string& path) {
  for (size_t slash = path.find('/', 1); slash != std::string::npos; slash = path.find('/', slash + 1))
    (void)raw::mkdirat(AT_FDCWD, path.substr(0, slash).c_str(), 0755);
  (void)raw::mkdirat(AT_FDCWD, path.c_str(), 0700);
}

// The process's connections. Never destroyed: lanes may still be hung when the process ends.
struct Channels {
  std::mutex mutex;
  std::map<std::string, std::weak_ptr<SessionChannel>> by_key;
  std::list<std::pair<std::string, std::shared_ptr<SessionChannel>>> kept;  // also while no file is open there; used longest ago first
  std::map<std::string, LostSessions> lost;                                 // by key
  pid_t process = 0;                                                        // whose those are
  std::set<std::string> unreached;                                          // addresses
};
Channels& channels();
void close_in_child() {
  for (auto& [key, channel] : channels().by_key)
    if (const auto parents = channel.lock()) parents->close_in_child();
  channels().mutex.unlock();
}
Channels& channels() {
  static Channels* one = [] {
    auto* made = new Channels;
    pthread_atfork([] { channels().mutex.lock(); }, [] { channels().mutex.unlock(); }, close_in_child);
    return made;
  }();
  return *one;
}

// Until it answers: who asked may wait less long than this process.
void count_as_unreached(const std::string& label) {
  std::lock_guard lock(channels().mutex);
  channels().unreached.insert(label);
}

std::string key_of(const std::string& label, uint32_t mode) { return fmt::format("{} {:o}", label, mode); }

// The next file there is opened without the waits of a connection and a greeting. Few of a program's descriptors go for it.
size_t most_kept() {
  constexpr long most = 64, share = 16;
  return size_t(std::clamp(sysconf(_SC_OPEN_MAX) / share, 1L, most));
}

// Under the mutex.
void keep(const std::string& key, const std::shared_ptr<SessionChannel>& channel) {
  auto& kept = channels().kept;
  kept.remove_if([&](const auto& one) { return one.first == key; });
  kept.emplace_back(key, channel);
  while (kept.size() > most_kept()) kept.pop_front();
}

// Under the mutex. The next session at that agent takes its place.
void note_lost(const std::string& key, const SessionId& id) {
  Channels& all = channels();
  if (all.process != process_id()) all.lost.clear(), all.process = process_id();  // those are the parent's
  all.lost[key].note(id);
}

// Under the mutex.
void let_go(const std::string& key, const std::shared_ptr<SessionChannel>& channel) {
  Channels& all = channels();
  all.kept.remove_if([&](const auto& one) { return one.second == channel; });
  if (all.by_key[key].lock() == channel) all.by_key.erase(key);
  if (!channel->inherited()) note_lost(key, channel->id());
}

// Nothing is waited for under the mutex.
struct Known {
  std::shared_ptr<SessionChannel> channel;
  bool was_idle = false;  // nobody has heard of the agent since the last file there was closed
};
Known known_channel(const std::string& key) {
  Known known;
  {
    std::lock_guard lock(channels().mutex);
    known.channel = channels().by_key[key].lock();
    constexpr long kept_and_here = 2;
    known.was_idle = known.channel && known.channel.use_count() <= kept_and_here;
    if (known.was_idle && (known.channel->inherited() || known.channel->has_ended())) let_go(key, std::exchange(known.channel, nullptr));
  }
  if (!known.channel || known.channel->inherited() || known.channel->broken()) return {};
  std::lock_guard lock(channels().mutex);
  keep(key, known.channel);  // as the latest
  return known;
}

}  // namespace

std::string encode(const AgentNote& note) {
  std::string text = fmt::format("{}\nnode {}\nhost {}\nid {}\nprocess {}\n", first_line, note.node, note.host, hex(note.id), note.process);
  if (note.left_dead) text += "left-dead 1\n";
  for (const std::string& directory : note.directories) text += fmt::format("directory {}\n", directory);
  std::istringstream lines(note.endpoints);
  for (std::string line; std::getline(lines, line);) text += fmt::format("at {}\n", line);
  return text;
}

Result<AgentNote> decode_agent_note(const std::string& text) {
  AgentNote note;
  std::istringstream lines(text);
  std::string line;
  const Status damaged(Kind::corrupt, "the note of an agent is damaged; start the agent again");
  if (!std::getline(lines, line) || line != first_line) return damaged;
  while (std::getline(lines, line)) {
    const size_t space = line.find(' ');
    const std::string key = line.substr(0, space), value = space == std::string::npos ? "" : line.substr(space + 1);
    if (key == "node") note.node = value;
    else if (key == "host") note.host = value;
    else if (key == "id" && !unhex(value, note.id)) return damaged;
    else if (key == "process") std::from_chars(value.data(), value.data() + value.size(), note.process);
    else if (key == "left-dead") note.left_dead = value == "1";
    else if (key == "directory") note.directories.push_back(value);
    else if (key == "at") note.endpoints += value + "\n";
  }
  if (note.node.empty() || note.endpoints.empty()) return damaged;
  return note;
}

Result<std::shared_ptr<Target>> open_registry(const std::string& directory) {
  HF_TRY(check_private(directory));
  DirectoryOptions options;
  options.mode = 0600;
  options.may_be_renamed = true;
  return open_directory(directory, options);
}

Result<transport::Secret> read_secret(const std::string& directory) {
  auto registry = open_registry(directory);
  if (!registry.ok()) return registry.status();
  auto text = (*registry)->get(secret_name, 256);
  if (!text.ok()) return text.status();
  transport::Secret secret;
  std::string hexadecimal = text_of(*text);
  if (hexadecimal.ends_with('\n')) hexadecimal.pop_back();
  if (!unhex(hexadecimal, secret))
    return Status(Kind::corrupt, fmt::format("{}/{} is damaged; remove it and start the agents again", directory, secret_name));
  return secret;
}

// Two who make one at once agree on the one that is there in the end. It is read after it was written under the lock.
Result<transport::Secret> make_secret(const std::string& directory) {
  make_directories(directory);
  auto registry = open_registry(directory);
  if (!registry.ok()) return registry.status();
  auto lock = (*registry)->try_lock("lock");
  for (int tries = 0; !lock.ok() && lock.status().kind() == Kind::busy && tries < 500; ++tries) {
    usleep(10000);
    lock = (*registry)->try_lock("lock");
  }
  if (!lock.ok()) return lock.status();
  auto there = read_secret(directory);
  if (there.ok() || there.status().kind() != Kind::not_found) return there;
  transport::Secret secret;
  if (!transport::draw(secret)) return Status(Kind::io, "the kernel gives no random numbers");
  HF_TRY((*registry)->put(secret_name, bytes_of_text(hex(secret) + "\n"), true));
  return secret;
}

std::string agent_key(const std::string& node, const std::string& directory) {
  uint64_t number = 14695981039346656037u;  // FNV-1a
  for (const char byte : fmt::format("{}\n{}", agent_protocol_version, plain_path(directory))) number = (number ^ uint8_t(byte)) * 1099511628211u;
  return fmt::format("{}.{:0{}x}", node, number, key_digits);
}

std::vector<std::string> agent_keys(const std::string& node, const std::vector<std::string>& directories) {
  std::set<std::string> keys;
  for (const std::string& directory : directories) keys.insert(agent_key(node, directory));
  return {keys.begin(), keys.end()};
}

// Agents of before had files named by the node alone.
std::string node_of_key(const std::string& key) {
  const size_t dot = key.rfind('.');
  const bool has_digits =
      dot != std::string::npos && key.size() - dot - 1 == key_digits && key.find_first_not_of("0123456789abcdef", dot + 1) == std::string::npos;
  return has_digits ? key.substr(0, dot) : key;
}

Status write_note(const std::string& directory, const AgentNote& note) {
  auto registry = open_registry(directory);
  if (!registry.ok()) return registry.status();
  for (const std::string& key : agent_keys(note.node, note.directories)) HF_TRY((*registry)->put(key + suffix, bytes_of_text(encode(note)), false));
  return {};
}

void remove_note(const std::string& directory, const AgentNote& note) {
  auto registry = open_registry(directory);
  for (const std::string& key : note.keys.empty() ? agent_keys(note.node, note.directories) : note.keys)
    if (const auto now = read_note(directory, key); registry.ok() && now.ok() && now->id == note.id) (void)(*registry)->remove(key + suffix);
}

std::string lock_of_agent(const std::string& key) { return "lock." + key; }

Status forget_agent(const std::string& directory, const AgentNote& note) {
  auto registry = open_registry(directory);
  if (!registry.ok()) return registry.status();
  const auto gone = (*registry)->try_lock(lock_of_agent(note.keys.front()));
  if (!gone.ok() && gone.status().kind() == Kind::busy)
    return Status(Kind::busy,
                  "the agent of node " + note.node + " does not answer, but its process lives: " + std::to_string(note.process) + " on " + note.host +
                      "; end that one there, or try again",
                  EBUSY);
  if (!gone.ok()) return gone.status();
  // Another one may have come up since.
  if (const auto now = read_note(directory, note.keys.front()); !now.ok() || now->id != note.id) return {};
  for (const std::string& key : note.keys) forget_again(directory, key);
  remove_note(directory, note);
  return {};
}

Result<AgentNote> read_note(const std::string& directory, const std::string& node, const std::string& served) {
  return read_note(directory, agent_key(node, served));
}

Result<AgentNote> read_note(const std::string& directory, const std::string& key) {
  auto registry = open_registry(directory);
  if (!registry.ok()) return registry.status();
  auto text = (*registry)->get(key + suffix, most_note_bytes);
  if (!text.ok()) return text.status();
  auto note = decode_agent_note(text_of(*text));
  if (note.ok()) note->keys = {key};
  return note;
}

std::vector<KnownAgent> known_agents(const std::string& directory) {
  std::vector<KnownAgent> all;
  for (const std::string& key : keys_noted(directory, suffix)) {
    auto note = read_note(directory, key);
    if (note.status().kind() == Kind::not_found) continue;  // it has ended meanwhile
    const auto same =
        std::find_if(all.begin(), all.end(), [&](const KnownAgent& one) { return note.ok() && one.state.ok() && one.note.id == note->id; });
    if (same != all.end()) same->note.keys.push_back(key);
    else if (note.ok()) all.push_back({std::move(*note), {}});
    else all.push_back({AgentNote{node_of_key(key), "", {}, 0, {}, "", false, {key}}, note.status()});
  }
  std::stable_sort(all.begin(), all.end(), [](const KnownAgent& a, const KnownAgent& b) { return a.note.node < b.note.node; });
  return all;
}

std::vector<std::string> keys_noted(const std::string& directory, const std::string& suffix) {
  std::vector<std::string> keys;
  auto registry = open_registry(directory);
  if (!registry.ok()) return keys;
  auto names = (*registry)->list("");
  if (!names.ok()) return keys;
  for (const std::string& name : *names)
    if (name.ends_with(suffix)) keys.push_back(name.substr(0, name.size() - suffix.size()));
  std::sort(keys.begin(), keys.end());
  return keys;
}

transport::Agreement agent_agreement(const transport::Secret& secret, const transport::Identity& id) {
  return {transport::Protocol::agent, agent_protocol_version, secret, id};
}

namespace {

Result<std::shared_ptr<SessionChannel>> connect_anew(const std::string& node, const std::string& path, const std::string& label,
                                                     std::vector<SessionId> instead) {
  const std::string directory = agents_directory();
  const auto secret = read_secret(directory);
  const auto note = read_note(directory, node, path);
  if (!note.ok() || !secret.ok()) {
    const Status& why = secret.ok() ? note.status() : secret.status();
    if (why.kind() != Kind::not_found) return why;
    return Status(Kind::lost,
                  fmt::format("{}: no agent of node {} is known; run there: holdfast agents start --node {} {}", label, node, node, shell_word(path)),
                  EIO);
  }
  auto channel = begin_session(line_to(note->endpoints, agent_agreement(*secret, note->id), connect_ms), std::move(instead));
  if (channel.ok()) return channel;
  return Status(Kind::lost, fmt::format("{}: the agent of node {} on {} cannot be reached: {}", label, node, note->host, channel.status().sentence()),
                EIO);
}

// Sessions of this process that are lost.
std::vector<SessionId> lost_sessions(const std::string& key) {
  Channels& all = channels();
  std::lock_guard lock(all.mutex);
  if (all.process != process_id()) all.lost.clear(), all.process = process_id();  // those are the parent's
  return all.lost[key].all();
}

}  // namespace

std::vector<std::string> unreached_addresses() {
  std::lock_guard lock(channels().mutex);
  return {channels().unreached.begin(), channels().unreached.end()};
}

Result<std::shared_ptr<AgentChannel>> connect_to_agent(const std::string& node, const std::string& path, const std::string& label, uint32_t mode) {
  const std::string key = key_of(label, mode);
  if (auto known = known_channel(key); known.channel) return std::shared_ptr<AgentChannel>(std::move(known.channel));
  count_as_unreached(label);
  auto channel = connect_anew(node, path, label, lost_sessions(key));
  if (!channel.ok()) return channel.status();
  (*channel)->when_broken([label, key, id = (*channel)->id()] {
    std::lock_guard lock(channels().mutex);
    channels().unreached.insert(label);
    note_lost(key, id);
  });
  std::lock_guard lock(channels().mutex);
  channels().unreached.erase(label);
  channels().by_key[key] = *channel;
  keep(key, *channel);
  return std::shared_ptr<AgentChannel>(std::move(*channel));
}

namespace {

Result<raw::Fd> directory_of(const std::string& node, const std::string& path, bool& answered) {
  answered = false;
  const std::string directory = agents_directory();
  const auto secret = read_secret(directory);
  const auto note = read_note(directory, node, path);
  if (!note.ok() || !secret.ok()) return note.ok() ? secret.status() : note.status();
  return ask_for_directory(*note, *secret, path, answered);
}

// For who holds the directory. Empty where nobody can be asked: an agent that was killed takes nothing from those who have its directory.
Result<raw::Fd> directory_there_now(const std::string& node, const std::string& path) {
  bool answered = false;
  auto opened = directory_of(node, path, answered);
  if (!opened.ok() && !answered) return raw::Fd();
  return opened;
}

// The directory itself, where its node is this one.
std::shared_ptr<Target> open_near(const std::string& node, const std::string& path, const std::string& label, uint32_t mode) {
  bool answered = false;
  count_as_unreached(label);
  auto opened = directory_of(node, path, answered);
  if (!opened.ok()) return nullptr;
  DirectoryOptions options;
  options.mode = mode;
  {
    std::lock_guard lock(channels().mutex);
    channels().unreached.erase(label);
  }
  return hold_directory(std::move(*opened), path, label, options, [node, path] { return directory_there_now(node, path); });
}

}  // namespace

namespace {

Result<std::shared_ptr<Target>> open_now(const std::string& node, const std::string& path, const std::string& label, uint32_t mode,
                                         const std::string& read_first) {
  const std::string key = key_of(label, mode);
  const auto connect = [node, path, label, mode] { return connect_to_agent(node, path, label, mode); };
  if (auto known = known_channel(key); known.channel) {
    auto attached = attach_to_agent(known.channel, path, label, mode, connect, read_first);
    if (attached.ok() || !known.was_idle) return attached;
    // What has become of the agent, or of the directory that it had opened for that connection, is not this file's matter.
    std::lock_guard lock(channels().mutex);
    let_go(key, known.channel);
  } else if (auto near = open_near(node, path, label, mode)) {
    return near;
  }
  auto channel = connect();
  if (!channel.ok()) return channel.status();
  return attach_to_agent(std::move(*channel), path, label, mode, connect, read_first);
}

}  // namespace

Result<std::shared_ptr<Target>> open_beside_by_agent(const std::string& node, const std::string& path, const std::string& label, uint32_t mode) {
  auto channel = connect_anew(node, path, label, {});
  if (!channel.ok()) return channel.status();
  return attach_to_agent(std::move(*channel), path, label, mode);
}

Result<std::shared_ptr<Target>> open_by_agent(const std::string& node, const std::string& path, const std::string& label, uint32_t mode,
                                              const DirectoryOptions& options) {
  const auto give_up = std::chrono::steady_clock::now() + std::chrono::milliseconds(options.agent_patience_ms);
  auto opened = open_now(node, path, label, mode, options.read_first);
  if (opened.ok() || opened.status().kind() != Kind::lost) return opened;
  if (!start_again(node, path) && !comes_up_again(node, path, give_up)) return opened;
  return open_now(node, path, label, mode, options.read_first);
}

}  // namespace holdfast::target
