#include "target/agent_again.hpp"

#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <sstream>

#include <fmt/format.h>

#include "base/config.hpp"
#include "base/host_name.hpp"
#include "base/raw_syscalls.hpp"
#include "base/text_bytes.hpp"
#include "target/agent_link.hpp"
#include "target/agent_registry.hpp"

namespace holdfast::target {

namespace {

constexpr const char* again_line = "holdfast-again 1";
constexpr const char* again_suffix = ".again";
constexpr const char* missed_suffix = ".missed";
constexpr uint64_t most_again_bytes = 1 << 20;
constexpr int between_us = 20000, tries_for_turn = 500, tries_for_answer = 15;

std::atomic<StartAgent> starter{nullptr};

std::string space_of(const char* kind) {
  char to[64] = "";
  (void)raw::readlinkat(AT_FDCWD, fmt::format("/proc/self/ns/{}", kind).c_str(), to, sizeof to - 1);
  return to;
}

// Who would start it again at once may be at it.
bool comes_back(const std::string& registry, const std::string& key) {
  for (int i = 0; i < tries_for_answer; ++i) {
    if (agent_answers(registry, key)) return true;
    usleep(between_us);
  }
  return false;
}

std::unique_ptr<Lock> wait_for_turn(Target& registry, const std::string& key) {
  for (int i = 0; i < tries_for_turn; ++i) {
    auto turn = registry.try_lock("start." + key);
    if (turn.ok()) return std::move(*turn);
    if (turn.status().kind() != Kind::busy) return nullptr;
    usleep(between_us);
  }
  return nullptr;
}

// The agent is gone.
Status start_now(const std::string& registry, const std::string& key, StartAgent start) {
  auto note = read_note(registry, key);
  auto again = read_again(registry, key);
  if (!again.ok()) return again.status();
  if (note.ok() && note->left_dead) return Status(Kind::lost, "it was killed again and again");
  if (!may_start(*again, uint64_t(time(nullptr)))) {
    if (note.ok()) note->left_dead = true, (void)write_note(registry, *note);
    return Status(Kind::lost, "it was started again and again");
  }
  HF_TRY(write_again(registry, key, *again));
  return start(again->orders);
}

}  // namespace

bool agent_answers(const std::string& registry, const std::string& key) {
  const auto secret = read_secret(registry);
  const auto note = read_note(registry, key);
  return secret.ok() && note.ok() && begin_session(line_to(note->endpoints, agent_agreement(*secret, note->id), starter_answers_ms)).ok();
}

std::string encode(const AgentAgain& again) {
  std::string text = fmt::format("{}\nplace {}\n", again_line, again.place);
  for (const uint64_t when : again.started) text += fmt::format("started {}\n", when);
  return text + "\n" + again.orders;
}

std::optional<AgentAgain> decode_agent_again(const std::string& text) {
  AgentAgain again;
  std::istringstream lines(text);
  std::string line;
  if (!std::getline(lines, line) || line != again_line) return std::nullopt;
  while (std::getline(lines, line) && !line.empty()) {
    const size_t space = line.find(' ');
    const std::string key = line.substr(0, space), value = space == std::string::npos ? "" : line.substr(space + 1);
    if (key == "place") again.place = value;
    else if (key == "started") std::from_chars(value.data(), value.data() + value.size(), again.started.emplace_back(0));
  }
  if (!lines || again.place.empty()) return std::nullopt;
  again.orders = text.substr(size_t(lines.tellg()));
  return again;
}

Status write_again(const std::string& registry, const std::string& key, const AgentAgain& again) {
  auto opened = open_registry(registry);
  if (!opened.ok()) return opened.status();
  const std::string text = encode(again);
  return (*opened)->put(key + again_suffix, bytes_of_text(text), false);
}

Result<AgentAgain> read_again(const std::string& registry, const std::string& key) {
  auto opened = open_registry(registry);
  if (!opened.ok()) return opened.status();
  const auto bytes = (*opened)->get(key + again_suffix, most_again_bytes);
  if (!bytes.ok()) return bytes.status();
  auto again = decode_agent_again({reinterpret_cast<const char*>(bytes->data()), bytes->size()});
  if (!again) return Status(Kind::corrupt, "how the agent is started again is damaged");
  return std::move(*again);
}

void forget_again(const std::string& registry, const std::string& key) {
  auto opened = open_registry(registry);
  if (!opened.ok()) return;
  const auto turn = wait_for_turn(**opened, key);  // who is about to start it has done so, and has written its file again
  (void)(*opened)->remove(key + again_suffix);
  (void)(*opened)->remove(key + missed_suffix);
}

std::vector<std::string> keys_to_start_again(const std::string& registry) { return keys_noted(registry, again_suffix); }

std::string this_place() { return fmt::format("{} {} {}", host_name(), space_of("mnt"), space_of("net")); }

bool may_start(AgentAgain& again, uint64_t now_s) {
  constexpr size_t most = 3;
  constexpr uint64_t within_s = 60;
  std::erase_if(again.started, [&](uint64_t when) { return when > now_s || now_s - when >= within_s; });
  if (again.started.size() >= most) return false;
  again.started.push_back(now_s);
  return true;
}

void set_agent_starter(StartAgent start) { starter = start; }

bool start_again(const std::string& node, const std::string& path) {
  const StartAgent start = starter;
  if (!start) return false;
  const std::string registry = agents_directory(), key = agent_key(node, path);
  const auto again = read_again(registry, key);
  if (!again.ok() || again->place != this_place()) return false;
  auto opened = open_registry(registry);
  if (!opened.ok()) return false;
  const auto turn = wait_for_turn(**opened, key);
  if (!turn) return false;
  if (comes_back(registry, key)) return true;
  if (!(*opened)->try_lock(lock_of_agent(key)).ok()) return false;  // it lives, and does not answer
  const Status started = start_now(registry, key, start);
  return (started.ok() || started.kind() == Kind::busy) && agent_answers(registry, key);
}

namespace {

// By whom it was missed already, in this job or another one: that start of it does not come back.
bool was_missed(Target& registry, const std::string& key, const transport::Identity& id) {
  const auto missed = registry.get(key + missed_suffix, id.size());
  return missed.ok() && std::equal(missed->begin(), missed->end(), id.begin(), id.end());
}

}  // namespace

bool comes_up_again(const std::string& node, const std::string& path, std::chrono::steady_clock::time_point give_up) {
  if (job_of_this_process().empty() || std::chrono::steady_clock::now() >= give_up) return false;
  const std::string registry = agents_directory(), key = agent_key(node, path);
  const auto killed = read_note(registry, key);
  auto opened = open_registry(registry);
  if (!killed.ok() || !opened.ok() || !read_again(registry, key).ok() || was_missed(**opened, key, killed->id)) return false;
  transport::Identity asked{};
  do {
    const auto note = read_note(registry, key);
    if (!note.ok() || note->left_dead) return false;  // it was stopped meanwhile, or is killed again and again
    if (note->id != asked && agent_answers(registry, key)) return true;
    asked = note->id;
    usleep(between_us);
  } while (std::chrono::steady_clock::now() < give_up);
  (void)(*opened)->put(key + missed_suffix, killed->id, false);
  return false;
}

}  // namespace holdfast::target
