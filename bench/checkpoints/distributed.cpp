#include "distributed.hpp"

#include <arpa/inet.h>
#include <isa-l/erasure_code.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <mutex>
#include <thread>

#include <fmt/format.h>

#include "coding/code.hpp"
#include "target/address.hpp"

namespace holdfast::bench {

namespace {

using Block = std::vector<std::byte>;
using Clock = std::chrono::steady_clock;

constexpr uint64_t lag = 2;           // blocks between a sum's steps on neighbours, so that nobody waits for one on its way
constexpr uint64_t slots = 8;         // of sums that lie with the next node and have not been taken
constexpr size_t most_in_line = 8;    // of sums that wait here for their turn on the link
constexpr const char* mail = "mail";  // the object with these slots

double seconds_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

Result<std::shared_ptr<target::Object>> open_object(const std::string& address, const char* name, target::OpenMode mode) {
  auto target = target::open(address);
  if (!target) return target.status();
  return (*target)->open(name, mode);
}

Status write_block(target::Object& object, uint64_t offset, const Block& block) {
  const iovec one{const_cast<std::byte*>(block.data()), block.size()};
  return object.write(offset, {&one, 1});
}

// What lies beyond the end reads as zeros.
Status read_block(target::Object& object, uint64_t offset, Block& block) {
  const iovec one{block.data(), block.size()};
  const auto got = object.read(offset, {&one, 1});
  if (!got) return got.status();
  std::memset(block.data() + *got, 0, block.size() - *got);
  return {};
}

// Column `rank` of the redundancy's rows, as the product's own code has it.
std::vector<uint8_t> coefficients(int group, int rank) {
  const auto code = coding::Code::make(group, group);
  Block data(size_t(group), std::byte(0)), redundancy(size_t(group), std::byte(0));
  data[size_t(rank)] = std::byte(1);
  std::vector<const std::byte*> from;
  std::vector<std::byte*> into;
  for (size_t i = 0; i < size_t(group); ++i) from.push_back(&data[i]), into.push_back(&redundancy[i]);
  code->encode(from.data(), into.data(), 1);
  std::vector<uint8_t> all;
  for (const std::byte one : redundancy) all.push_back(uint8_t(one));
  return all;
}

class Multiplier {
 public:
  explicit Multiplier(uint8_t by) { ec_init_tables(1, 1, &by, tables_); }
  void add(const Block& block, Block& sum) {
    auto* data = bytes_of(block);
    auto* into = bytes_of(sum);
    ec_encode_data_update(int(block.size()), 1, 1, 0, tables_, data, &into);
  }

 private:
  static unsigned char* bytes_of(const Block& block) { return reinterpret_cast<unsigned char*>(const_cast<std::byte*>(block.data())); }
  unsigned char tables_[32];
};

// Hands sums on to the next node, in their order, by a thread of its own.
class Sender {
 public:
  Sender(std::shared_ptr<target::Object> into, int link) : into_(std::move(into)), link_(link), thread_([this] { run(); }) {}
  ~Sender() {
    if (thread_.joinable()) (void)finish();
  }
  void push(Block sum) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return line_.size() < most_in_line; });
    line_.push_back(std::move(sum));
    changed_.notify_all();
  }
  // Once all is taken by the next node.
  Status finish() {
    {
      const std::lock_guard lock(mutex_);
      is_over_ = true;
      changed_.notify_all();
    }
    thread_.join();
    return status_;
  }

 private:
  void run() {
    for (uint64_t count = 0;; ++count) {
      Block sum;
      {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return is_over_ || !line_.empty(); });
        if (line_.empty()) break;
        sum = std::move(line_.front());
        line_.pop_front();
        changed_.notify_all();
      }
      if (status_.ok()) status_ = hand_on(count, sum);
    }
    while (status_.ok() && untaken_ > 0) status_ = hear();
  }
  Status hand_on(uint64_t count, const Block& sum) {
    while (untaken_ == slots) HF_TRY(hear());
    HF_TRY(write_block(*into_, count % slots * sum.size(), sum));
    const char note = '!';
    if (send(link_, &note, 1, MSG_NOSIGNAL) != 1) return Status(Kind::io, "the next node has gone");
    ++untaken_;
    return {};
  }
  Status hear() {
    char notes[slots];
    const ssize_t got = recv(link_, notes, sizeof notes, 0);
    if (got <= 0) return Status(Kind::io, "the next node has gone");
    untaken_ -= uint64_t(got);
    return {};
  }

  const std::shared_ptr<target::Object> into_;
  const int link_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Block> line_;
  bool is_over_ = false;
  uint64_t untaken_ = 0;
  Status status_;
  std::thread thread_;
};

// Takes the sums of the node before, in their order.
class Receiver {
 public:
  Receiver(std::shared_ptr<target::Object> from, int link) : from_(std::move(from)), link_(link) {}
  Status take(Block& sum) {
    char note;
    if (recv(link_, &note, 1, 0) != 1) return Status(Kind::io, "the node before has gone");
    HF_TRY(read_block(*from_, count_++ % slots * sum.size(), sum));
    return send(link_, &note, 1, MSG_NOSIGNAL) == 1 ? Status() : Status(Kind::io, "the node before has gone");
  }

 private:
  const std::shared_ptr<target::Object> from_;
  const int link_;
  uint64_t count_ = 0;
};

int nodelay(int link) {
  const int yes = 1;
  setsockopt(link, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  return link;
}

// One node's part. The sum for the parity of node e begins on node e + 1, and its last step is on e.
class Coder {
 public:
  Coder(const Place& place, std::shared_ptr<target::Object> source, std::shared_ptr<target::Object> parity, std::shared_ptr<target::Object> own_mail,
        std::shared_ptr<target::Object> next_mail, int left, int right)
      : place_(place),
        source_(std::move(source)),
        parity_(std::move(parity)),
        receiver_(std::move(own_mail), left),
        sender_(std::move(next_mail), right) {
    for (const uint8_t by : coefficients(place.group, place.rank)) multipliers_.emplace_back(place.is_wrong ? by ^ 1 : by);
  }

  Result<Times> run(uint64_t blocks) {
    const auto begin = Clock::now();
    const uint64_t steps = uint64_t(place_.group);
    for (uint64_t tick = 0; tick < blocks + (steps - 1) * lag; ++tick)
      for (uint64_t step = 0; step < steps; ++step)
        if (const uint64_t behind = step * lag; tick >= behind && tick - behind < blocks) HF_TRY(go(tick - behind, int(step)));
    const auto from = Clock::now();
    HF_TRY(sender_.finish());
    times_.wait += seconds_since(from);
    HF_TRY(parity_->sync());
    times_.all = seconds_since(begin);
    return times_;
  }

 private:
  Status go(uint64_t block, int step) {
    const bool is_first = step == 0, is_last = step == place_.group - 1;
    if (is_first) HF_TRY(read(block));
    Block sum(place_.unit_bytes);
    auto from = Clock::now();
    if (!is_first) HF_TRY(receiver_.take(sum));
    times_.wait += seconds_since(from);
    from = Clock::now();
    const int of = (place_.rank + place_.group - step - 1) % place_.group;
    multipliers_[size_t(of)].add(held_.at(size_t(block - first_held_)), sum);
    times_.code += seconds_since(from);
    if (!is_last) {
      from = Clock::now();
      sender_.push(std::move(sum));
      times_.wait += seconds_since(from);
      return {};
    }
    held_.pop_front(), ++first_held_;
    return write_block(*parity_, block * place_.unit_bytes, sum);
  }
  Status read(uint64_t block) {
    const auto from = Clock::now();
    held_.emplace_back(place_.unit_bytes);
    HF_TRY(read_block(*source_, block * place_.unit_bytes, held_.back()));
    times_.read += seconds_since(from);
    return {};
  }

  const Place place_;
  const std::shared_ptr<target::Object> source_, parity_;
  Receiver receiver_;
  Sender sender_;
  std::vector<Multiplier> multipliers_;
  std::deque<Block> held_;  // that later steps of this node want
  uint64_t first_held_ = 0;
  Times times_;
};

}  // namespace

Result<Distributed> Distributed::on(const Place& place) {
  Distributed made;
  made.place_ = place;
  made.listener_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int yes = 1;
  setsockopt(made.listener_, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  sockaddr_in address{};
  address.sin_family = AF_INET, address.sin_port = htons(uint16_t(place.port));
  if (bind(made.listener_, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 || listen(made.listener_, 1) != 0)
    return Status::from_errno(errno, "a port to listen on");
  return made;
}

Distributed::Distributed(Distributed&& other) noexcept
    : place_(std::move(other.place_)),
      listener_(std::exchange(other.listener_, -1)),
      left_(std::exchange(other.left_, -1)),
      right_(std::exchange(other.right_, -1)) {}

Distributed::~Distributed() {
  for (const int link : {listener_, left_, right_})
    if (link >= 0) close(link);
}

Status Distributed::join() {
  sockaddr_in address{};
  address.sin_family = AF_INET, address.sin_port = htons(uint16_t(place_.right_port));
  if (inet_pton(AF_INET, place_.right_host.c_str(), &address.sin_addr) != 1) return Status(Kind::invalid, place_.right_host + " is no address");
  right_ = nodelay(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (connect(right_, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) return Status::from_errno(errno, place_.right_host);
  left_ = nodelay(accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC));
  return left_ >= 0 ? Status() : Status::from_errno(errno, "the node before");
}

Result<Times> Distributed::code() {
  using target::OpenMode;
  auto source = open_object(place_.own, source_name, OpenMode::read);
  if (!source) return source.status();
  auto parity = open_object(place_.own, parity_name, OpenMode::create), own_mail = open_object(place_.own, mail, OpenMode::create);
  auto next_mail = open_object(place_.right, mail, OpenMode::create);
  for (const auto* one : {&parity, &own_mail, &next_mail})
    if (!*one) return one->status();
  const auto bytes = (*source)->size();
  if (!bytes) return bytes.status();
  HF_TRY((*parity)->truncate(0));
  Coder coder(place_, *source, *parity, *own_mail, *next_mail, left_, right_);
  return coder.run((*bytes + place_.unit_bytes - 1) / place_.unit_bytes);
}

namespace {

// The block of every unit: the nodes' data, then their parity.
Result<std::vector<Block>> blocks_at(const std::vector<std::shared_ptr<target::Object>>& units, uint64_t offset, uint64_t bytes) {
  std::vector<Block> all;
  for (const auto& unit : units) {
    all.emplace_back(bytes);
    if (Status status = read_block(*unit, offset, all.back()); !status) return status;
  }
  return all;
}

Status check_without(const coding::Code& code, const std::vector<Block>& units, unsigned lost_nodes, uint64_t block) {
  const int group = code.k();
  std::vector<int> survivors, lost;
  std::vector<const std::byte*> from;
  for (int unit = 0; unit < 2 * group; ++unit) {
    if (lost_nodes >> (unit % group) & 1) lost.push_back(unit);
    else survivors.push_back(unit), from.push_back(units[size_t(unit)].data());
  }
  std::vector<Block> made(lost.size(), Block(units[0].size()));
  std::vector<std::byte*> into;
  for (Block& one : made) into.push_back(one.data());
  HF_TRY(code.reconstruct(survivors, from.data(), lost, into.data(), units[0].size()));
  for (size_t i = 0; i < lost.size(); ++i)
    if (made[i] != units[size_t(lost[i])])
      return Status(Kind::corrupt, fmt::format("block {} of node {}'s {} is made anew otherwise than it was", block, lost[i] % group,
                                               lost[i] < group ? "data" : "parity"));
  return {};
}

}  // namespace

Status check_parity(const std::vector<std::string>& directories, uint64_t unit_bytes) {
  const int group = int(directories.size());
  const auto code = coding::Code::make(group, group);
  std::vector<std::shared_ptr<target::Object>> units;
  for (const char* name : {source_name, parity_name})
    for (const std::string& directory : directories) {
      auto object = open_object(directory, name, target::OpenMode::read);
      if (!object) return object.status();
      units.push_back(*object);
    }
  const auto bytes = units[0]->size();
  if (!bytes) return bytes.status();
  if (*bytes == 0) return Status(Kind::invalid, "nothing was coded");
  for (uint64_t at = 0; at < *bytes; at += unit_bytes) {
    const auto blocks = blocks_at(units, at, unit_bytes);
    if (!blocks) return blocks.status();
    for (unsigned lost = 1; lost < 1u << group; ++lost)
      if (__builtin_popcount(lost) <= group / 2) HF_TRY(check_without(*code, *blocks, lost, at / unit_bytes));
  }
  return {};
}

}  // namespace holdfast::bench
