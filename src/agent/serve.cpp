#include "agent/serve.hpp"

#include <malloc.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <chrono>
#include <cstring>
#include <memory>
#include <sstream>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "agent/clients.hpp"
#include "agent/peer.hpp"
#include "base/host_name.hpp"
#include "base/quiet_thread.hpp"
#include "service/helper_process.hpp"
#include "target/agent_again.hpp"
#include "target/agent_registry.hpp"
#include "target/directory_held.hpp"
#include "transport/server.hpp"

namespace holdfast::agent {

namespace {

class Agent {
 public:
  explicit Agent(const Orders& orders) : orders_(orders), ended_(eventfd(0, EFD_CLOEXEC)), idle_(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC)) {}

  Status begin() {
    auto served = std::make_shared<Served>();
    for (const std::string& directory : orders_.directories) {
      HF_TRY(target::open_directory(directory).status());
      (*served)[directory] = [directory](uint32_t mode) {
        target::DirectoryOptions options;
        options.mode = mode;
        return target::open_directory(directory, options);
      };
    }
    auto secret = target::make_secret(orders_.registry);
    if (!secret.ok()) return secret.status();
    HF_TRY(be_the_only_one());
    target::AgentNote& note = note_;
    note = {orders_.node, host_name(), {}, int(getpid()), orders_.directories, {}};
    if (!transport::draw(note.id)) return Status(Kind::io, "the kernel gives no random numbers");
    uint64_t incarnation = 0;
    std::memcpy(&incarnation, note.id.data(), sizeof incarnation);
    served_ = std::make_unique<Clients>(
        std::move(served), incarnation, [this](const target::AgentRequest& request) { return aside(request); },
        [this](const std::string& directory) { return open_for_node(directory); }, [this] { (void)eventfd_write(ended_.get(), 1); }, Limits(),
        peers_of(orders_.registry));
    served_->when_resting = [this] { arm_if_unused(); };
    note.endpoints = server_.listen(orders_.reach, target::agent_agreement(*secret, note.id));
    if (note.endpoints.empty()) return Status(Kind::io, "this node has no address to listen on");
    if (const std::string why = server_.unheard(); !why.empty()) return Status(Kind::io, "no address of this node can be listened on: " + why);
    if (orders_.restart) HF_TRY(tell_how_to_start_again());
    return target::write_note(orders_.registry, note);
  }

  void run() {
    server_.watch(ended_.get(), [this] {
      for (const std::string& key : keys_of(orders_)) target::forget_again(orders_.registry, key);
      return false;
    });
    server_.watch(idle_.get(), [this] { return still_needed(); });
    server_.welcome = [this](raw::Fd& socket, ByteView early) {
      if (early.empty()) take_over(socket);
      return nullptr;
    };
    arm();
    server_.run();
    target::remove_note(orders_.registry, note_);
  }

 private:
  Status tell_how_to_start_again() const {
    for (const std::string& key : keys_of(orders_)) {
      auto again = target::read_again(orders_.registry, key);
      auto started = again.ok() ? std::move(again->started) : std::vector<uint64_t>();
      HF_TRY(target::write_again(orders_.registry, key, {target::this_place(), encode(orders_), std::move(started)}));
    }
    return {};
  }
  // For as long as this process lives, by the directories, in the same order as any other one.
  Status be_the_only_one() {
    target::DirectoryOptions options;
    options.mode = 0600;
    auto registry = target::open_directory(orders_.registry, options);
    if (!registry.ok()) return registry.status();
    for (const std::string& key : keys_of(orders_)) HF_TRY(lock_for_life(**registry, key));
    return {};
  }
  // The one before may be on its way out. One that answers has its note, which goes before it does: it stays.
  Status lock_for_life(target::Target& registry, const std::string& key) {
    using std::chrono::steady_clock;
    constexpr int between_us = 20000, asked_each = 10;
    const auto give_up = steady_clock::now() + std::chrono::seconds(5);
    // One that hangs costs the time of an answer, and that is part of the wait.
    const auto ask_no_more = give_up - std::chrono::milliseconds(target::starter_answers_ms);
    for (int tries = 0; steady_clock::now() < give_up; ++tries) {
      auto lock = registry.try_lock(target::lock_of_agent(key));
      if (lock.ok()) return only_.push_back(std::move(*lock)), Status();
      if (lock.status().kind() != Kind::busy) return lock.status();
      if (tries % asked_each == 1 && steady_clock::now() < ask_no_more && target::agent_answers(orders_.registry, key))
        return Status(Kind::exists, runs_already(orders_), EEXIST);
      usleep(between_us);
    }
    return Status(Kind::busy, hangs(orders_), EBUSY);
  }
  // A thread for each client: a disk that hangs holds up those alone who asked for it, a client that stalls nobody but itself.
  void take_over(raw::Fd& socket) {
    auto shared = std::make_shared<raw::Fd>(std::move(socket));
    ++clients_;
    if (!start_quiet_thread([this, shared] { served_->serve(std::move(*shared)), leave(); })) leave();
  }
  void leave() {
    --clients_;
    arm_if_unused();
  }
  bool is_used() const { return clients_ > served_->resting(); }
  void arm_if_unused() {
    if (!is_used()) arm();
  }
  // After a while without clients that use it, it is asked whether the agent is still needed.
  void arm() {
    if (orders_.linger_s == 0) return;
    itimerspec time{};
    time.it_value.tv_sec = time_t(orders_.linger_s);
    timerfd_settime(idle_.get(), 0, &time, nullptr);
  }
  bool still_needed() {
    eventfd_t times = 0;
    (void)eventfd_read(idle_.get(), &times);  // a timer's descriptor is read in the same way
    return is_used();
  }

  // One that stands for another node is asked as one.
  Result<raw::Fd> open_for_node(const std::string& directory) const {
    const auto& served = orders_.directories;
    if (orders_.reach == transport::Reach::node || std::find(served.begin(), served.end(), directory) == served.end())
      return Status(Kind::access, "the agent hands that directory to nobody", EACCES);
    return target::open_to_hold(directory);
  }
  // What is asked of the agent itself.
  std::optional<Session::Reply> aside(const target::AgentRequest& request) {
    const bool about = request.op == uint16_t(target::AgentOp::about);
    if (!about && request.op != uint16_t(target::AgentOp::end)) return std::nullopt;
    Session::Reply reply;
    if (!about) return reply;
    const std::string text = fmt::format("clients {}\nrequests {}\nrefused {}\nlinger {}\n", clients_ - 1, served_->requests(),
                                         server_.refused() + served_->senseless(), orders_.linger_s);
    const auto* from = reinterpret_cast<const std::byte*>(text.data());
    reply.bulk.assign(from, from + text.size());
    reply.answer.bulk_bytes = uint32_t(text.size());
    return reply;
  }

  const Orders orders_;
  const raw::Fd ended_, idle_;
  std::vector<std::unique_ptr<target::Lock>> only_;
  std::unique_ptr<Clients> served_;
  target::AgentNote note_;
  transport::Server server_;
  std::atomic<int> clients_{0};
};

void say(const raw::Fd& control, const std::string& text) { (void)!send(control.get(), text.data(), text.size(), MSG_NOSIGNAL); }

// What is put or listed goes back to the system when it has been, whichever thread it was; buffers of requests are used again.
void give_memory_back() {
  mallopt(M_MMAP_THRESHOLD, 2 * int(target::most_bulk_bytes));
  mallopt(M_TRIM_THRESHOLD, 8 * int(target::most_bulk_bytes));
  mallopt(M_ARENA_MAX, 4);
}

}  // namespace

std::string encode(const Orders& orders) {
  std::string text = fmt::format("node {}\nregistry {}\nreach {}\nlinger {}\nrestart {}\n", orders.node, orders.registry, int(orders.reach),
                                 orders.linger_s, int(orders.restart));
  for (const std::string& directory : orders.directories) text += fmt::format("directory {}\n", directory);
  return text;
}

Result<Orders> decode_orders(const std::string& text) {
  Orders orders;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const size_t space = line.find(' ');
    const std::string key = line.substr(0, space), value = space == std::string::npos ? "" : line.substr(space + 1);
    int reach = 0;
    if (key == "node") orders.node = value;
    else if (key == "registry") orders.registry = value;
    else if (key == "directory") orders.directories.push_back(value);
    else if (key == "restart") orders.restart = value == "1";
    else if (key == "linger") std::from_chars(value.data(), value.data() + value.size(), orders.linger_s);
    else if (key == "reach" && std::from_chars(value.data(), value.data() + value.size(), reach).ec == std::errc() && reach >= 0 && reach <= 2)
      orders.reach = transport::Reach(reach);
  }
  if (orders.node.empty() || orders.registry.empty() || orders.directories.empty())
    return Status(Kind::invalid, "an agent needs a node, a registry and a directory");
  return orders;
}

std::string runs_already(const Orders& orders) {
  return fmt::format("another agent of node {} serves {}", orders.node, fmt::join(orders.directories, " or "));
}

std::string hangs(const Orders& orders) { return runs_already(orders) + " and does not answer"; }

std::vector<std::string> keys_of(const Orders& orders) { return target::agent_keys(orders.node, orders.directories); }

bool serve_agent(const Orders& orders, int control, const std::function<void()>& spoke) {
  raw::Fd starter(control);
  service::use_all_descriptors();
  give_memory_back();
  umask(0);                         // clients say which permissions their objects get
  auto* agent = new Agent(orders);  // never destroyed: a client's thread may be in a call that does not end
  const Status begun = agent->begin();
  say(starter, begun.ok() ? std::string(target::agent_serves) + "\n" : begun.sentence() + "\n");
  starter.reset();
  if (spoke) spoke();
  if (begun.ok()) agent->run();
  return begun.ok();
}

}  // namespace holdfast::agent
