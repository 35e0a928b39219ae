#include "target/agent.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>

#include <fmt/format.h>

#include "base/room.hpp"
#include "base/vectors.hpp"
#include "target/agent_meter.hpp"
#include "target/agent_together.hpp"

namespace holdfast::target {

namespace {

// What all that hangs on one connection shares.
class Wire {
 public:
  Wire(std::shared_ptr<AgentChannel> channel, std::string directory, std::string label, uint32_t mode, ConnectAgain again)
      : line_(new Line(std::move(channel), 0)), directory_(std::move(directory)), label_(std::move(label)), mode_(mode), again_(std::move(again)) {}
  Wire(const Wire&) = delete;
  ~Wire() {
    channel()->leave();
    delete line_.load();
  }

  struct Ask {
    AgentOp op;
    std::string name = {};
    uint32_t handle = 0;
    uint16_t flags = 0;
    uint64_t offset = 0, length = 0;
  };
  // The answer, or why there is none.
  Result<AgentAnswer> ask(const Ask& what, std::span<const iovec> bulk = {}, std::span<const iovec> into = {}) {
    AgentWorkMeter meter;
    AgentWork work;
    if (meter.measures()) work.add(what.op, what.flags, total_bytes(bulk));
    auto answer = exchange(what, bulk, into);
    meter.add(work, answer.ok(), answer.ok() ? answer->bulk_bytes : 0);
    return answer;
  }
  Status tell(const Ask& what, std::span<const iovec> bulk = {}) {
    const auto answer = ask(what, bulk);
    return answer.ok() ? Status() : answer.status();
  }
  // One answer each, up to the first that failed.
  Result<std::vector<AgentTogether::Reply>> ask_together(const AgentTogether& all) {
    Room room(most_free_bytes);
    const iovec into{room.data(), room.size()};
    AgentWorkMeter meter;
    const auto answer = exchange({.op = AgentOp::several}, all.bytes(), {&into, 1});
    auto parts = answer.ok() ? all.answers(room.first(answer->bulk_bytes)) : std::nullopt;
    meter.add(all.work(), parts && parts->back().status().ok(), 0);
    if (!answer.ok()) return answer.status();
    if (!parts) return senseless();
    return std::move(*parts);
  }
  // Why the last one failed, if it did.
  Status told(const AgentTogether::Reply& reply) const {
    Status status = reply.status();
    return status.ok() ? status : of_agent(status);
  }
  // Descriptors that the agent lacks are not those that this process lacks.
  Status of_agent(const Status& status) const {
    const int reason = status.sys_errno() == EMFILE ? ENFILE : status.sys_errno();
    return Status(status.kind(), fmt::format("{}: {}", label_, status.sentence()), reason);
  }
  // What a `get` among several has brought, or that there is none. Nothing after another failure: a larger object is asked for in pieces, and what
  // failed may be otherwise by then.
  std::optional<Result<Bytes>> got(AgentTogether::Reply& reply) const {
    Status status = told(reply);
    if (status.ok()) return std::move(reply.bytes);
    if (status.kind() == Kind::not_found) return status;
    return std::nullopt;
  }
  void post_close(uint32_t handle) {
    AgentRequest request;
    request.op = uint16_t(AgentOp::close), request.handle = handle;
    channel()->post(request, "");
  }
  // The handle that the object goes by, if it can be opened.
  uint32_t post_open(const std::string& name, uint16_t flags) {
    AgentRequest request;
    request.op = uint16_t(AgentOp::open), request.flags = flags | 512, request.handle = channel()->draw_handle();
    channel()->post(request, name);
    return request.handle;
  }
  bool broken() const {
    const auto now = channel();
    return now->inherited() || now->broken();  // in this order: the mutex of an inherited one may be held for ever
  }
  const std::string& label() const { return label_; }
  // Which of the connections that this process and those that it was forked from have had: handles are of one.
  uint64_t generation() const { return line_.load()->generation; }
  // With `read_first` the small object of that name as it is now, or why there is none; without it the first answer alone.
  Result<std::vector<AgentTogether::Reply>> attach(const std::string& read_first = "") {
    AgentTogether all;
    AgentRequest attach, get;
    attach.op = uint16_t(AgentOp::attach), attach.flags = uint16_t(mode_);
    get.op = uint16_t(AgentOp::get), get.length = most_got_bytes;
    if (directory_.size() > most_name_bytes) return Status(Kind::invalid, "a name is too long", ENAMETOOLONG);
    all.add(attach, directory_);
    if (!read_first.empty()) all.add(get, read_first);
    auto parts = ask_together(all);
    if (parts.ok()) HF_TRY(told((*parts)[0]));
    return parts;
  }
  // Where the connection is the parent's: another one, attached as that was.
  Status go_on_after_fork() {
    if (!channel()->inherited() || !again_) return {};
    auto fresh = again_();
    if (!fresh.ok()) return fresh.status();
    line_ = new Line(std::move(*fresh), generation() + 1);  // the old one stays: another thread may be using it
    return attach().status();
  }
  Status senseless() const { return Status(Kind::io, label_ + ": the agent's answer makes no sense", EPROTO); }

 private:
  struct Line {
    Line(std::shared_ptr<AgentChannel> to, uint64_t number) : channel(std::move(to)), generation(number) { channel->enter(); }
    const std::shared_ptr<AgentChannel> channel;
    const uint64_t generation;
  };
  Result<AgentAnswer> exchange(const Ask& what, std::span<const iovec> bulk, std::span<const iovec> into) {
    if (what.name.size() > most_name_bytes) return Status(Kind::invalid, "a name is too long", ENAMETOOLONG);
    AgentRequest request;
    request.op = uint16_t(what.op), request.flags = what.flags, request.handle = what.handle;
    request.offset = what.offset, request.length = what.length;
    AgentAnswer answer;
    std::string sentence;
    if (Status status = channel()->ask(request, what.name, bulk, answer, sentence, into); !status.ok())
      return Status(status.kind(), fmt::format("{}: {}", label_, status.sentence()), status.sys_errno());
    if (Status status = status_of(answer, std::move(sentence)); !status.ok()) return of_agent(status);
    return answer;
  }
  std::shared_ptr<AgentChannel> channel() const { return line_.load()->channel; }
  std::atomic<const Line*> line_;  // no mutex: another thread may hold it when the process forks, and the child would wait for ever
  const std::string directory_, label_;
  const uint32_t mode_;
  const ConnectAgain again_;
};

// The next vectors of at most so many bytes together.
std::vector<iovec> take(std::span<const iovec>& rest, size_t& done, size_t most) {
  std::vector<iovec> taken;
  while (!rest.empty() && most > 0) {
    const size_t bytes = std::min(rest[0].iov_len - done, most);
    if (bytes) taken.push_back({static_cast<std::byte*>(rest[0].iov_base) + done, bytes});
    done += bytes, most -= bytes;
    if (done == rest[0].iov_len) rest = rest.subspan(1), done = 0;
  }
  return taken;
}

class AgentObject final : public Object {
 public:
  AgentObject(std::shared_ptr<Wire> wire, std::string name, uint16_t flags, uint32_t handle)
      : wire_(std::move(wire)), name_(std::move(name)), flags_(flags), handle_(handle), generation_(wire_->generation()) {}
  ~AgentObject() override {
    if (!wire_->broken() && generation_ == wire_->generation()) wire_->post_close(handle_);
  }
  Result<size_t> read(uint64_t offset, std::span<const iovec> into) override {
    size_t read = 0, done = 0;
    for (std::span<const iovec> rest = into; !rest.empty();) {
      const std::vector<iovec> piece = take(rest, done, most_bulk_bytes);
      const uint64_t wanted = total_bytes(piece);
      if (wanted == 0) break;
      const auto answer = ask(AgentOp::read, offset + read, wanted, {}, piece);
      if (!answer.ok()) return answer.status();
      read += answer->bulk_bytes;
      if (answer->bulk_bytes < wanted) break;
    }
    return read;
  }
  Result<std::vector<uint64_t>> checksums(const CheckedBlocks& blocks) override {
    const uint64_t bytes = uint64_t(blocks.count) * blocks.block_bytes;
    if (bytes > most_bulk_bytes) return Object::checksums(blocks);
    AskedChecksums asked{blocks.key, blocks.row, blocks.unit, blocks.first, blocks.block_bytes};
    std::vector<uint64_t> sums(blocks.count);
    const iovec bulk{&asked, sizeof asked}, into{sums.data(), sums.size() * sizeof sums[0]};
    const auto answer = ask(AgentOp::checksums, blocks.offset, bytes, {&bulk, 1}, {&into, 1});
    if (!answer.ok()) return answer.status();
    if (answer->bulk_bytes != into.iov_len) return wire_->senseless();
    return sums;
  }
  Status write(uint64_t offset, std::span<const iovec> from) override {
    size_t done = 0;
    for (std::span<const iovec> rest = from; !rest.empty();) {
      const std::vector<iovec> piece = take(rest, done, most_bulk_bytes);
      HF_TRY(ask(AgentOp::write, offset, 0, piece).status());
      offset += total_bytes(piece);
    }
    return {};
  }
  Status sync() override { return ask(AgentOp::sync).status(); }
  Status write_back() override { return ask(AgentOp::write_back).status(); }
  Status truncate(uint64_t size) override { return ask(AgentOp::truncate, size).status(); }
  Status grow(uint64_t size) override { return ask(AgentOp::grow, size).status(); }
  Result<uint64_t> size() override {
    const auto answer = ask(AgentOp::size);
    if (!answer.ok()) return answer.status();
    return answer->value;
  }
  Status still_there() override { return ask(AgentOp::still_there).status(); }
  Result<uint32_t> handle() {
    HF_TRY(open_after_fork());
    return handle_.load();
  }

 private:
  Result<AgentAnswer> ask(AgentOp op, uint64_t offset = 0, uint64_t length = 0, std::span<const iovec> bulk = {}, std::span<const iovec> into = {}) {
    HF_TRY(open_after_fork());
    return wire_->ask({.op = op, .handle = handle_, .offset = offset, .length = length}, bulk, into);
  }
  // The parent's handle means nothing on the child's connection.
  Status open_after_fork() {
    HF_TRY(wire_->go_on_after_fork());
    if (generation_ == wire_->generation()) return {};
    std::lock_guard lock(mutex_);
    if (generation_ == wire_->generation()) return {};
    const bool created = (flags_ & 255) == uint16_t(OpenMode::create);
    const uint16_t flags = created ? uint16_t((flags_ & ~255) | uint16_t(OpenMode::write)) : flags_;
    const auto answer = wire_->ask({.op = AgentOp::open, .name = name_, .flags = flags});
    if (!answer.ok()) return answer.status();
    handle_ = uint32_t(answer->value), generation_ = wire_->generation();
    return {};
  }

  const std::shared_ptr<Wire> wire_;
  const std::string name_;
  const uint16_t flags_;
  std::mutex mutex_;
  std::atomic<uint32_t> handle_;
  std::atomic<uint64_t> generation_;
};

// Handles that the agent knows on this connection, as it reads them.
Result<std::vector<uint32_t>> handles_of(std::span<const std::shared_ptr<Object>> objects, std::vector<uint32_t> handles = {}) {
  for (const auto& object : objects) {
    const auto handle = static_cast<AgentObject&>(*object).handle();
    if (!handle.ok()) return handle.status();
    handles.push_back(*handle);
  }
  return handles;
}

class AgentLock final : public Lock {
 public:
  AgentLock(std::shared_ptr<Wire> wire, uint32_t handle) : wire_(std::move(wire)), handle_(handle), generation_(wire_->generation()) {}
  ~AgentLock() override {
    if (!wire_->broken() && generation_ == wire_->generation()) wire_->post_close(handle_);
  }

 private:
  const std::shared_ptr<Wire> wire_;
  const uint32_t handle_;
  const uint64_t generation_;
};

class AgentTarget final : public Target {
 public:
  AgentTarget(std::shared_ptr<Wire> wire, DirectoryId id, std::string read_first, std::unique_ptr<Result<Bytes>> first)
      : wire_(std::move(wire)), id_(std::move(id)), read_first_(std::move(read_first)), first_(first.release()) {}
  ~AgentTarget() override { delete first_.load(); }
  std::string describe() const override { return wire_->label(); }
  std::optional<DirectoryId> directory_id() const override { return id_; }
  bool is_far() const override { return true; }
  std::string address_for_agents() const override { return wire_->label(); }
  Status sum(std::span<const SumTerm> terms, ByteSpan into) override {
    Bytes encoded = encode_terms(terms);
    if (terms.size() > most_terms || encoded.size() > most_bulk_bytes || into.size() > most_bulk_bytes) return Target::sum(terms, into);
    const iovec bulk{encoded.data(), encoded.size()}, room{into.data(), into.size()};
    const auto answer = ask({.op = AgentOp::sum, .length = into.size()}, {&bulk, 1}, {&room, 1});
    if (!answer.ok()) return answer.status();
    return answer->bulk_bytes == into.size() ? Status() : wire_->senseless();
  }

  Result<std::shared_ptr<Object>> open(const std::string& name, OpenMode mode, Pages pages) override {
    const uint16_t flags = uint16_t(uint16_t(mode) | (pages == Pages::shared ? 256 : 0));
    const auto answer = ask({.op = AgentOp::open, .name = name, .flags = flags});
    if (!answer.ok()) return answer.status();
    return std::shared_ptr<Object>(std::make_shared<AgentObject>(wire_, name, flags, uint32_t(answer->value)));
  }
  Result<std::shared_ptr<Object>> open_to_write(const std::string& name, Pages pages) override {
    HF_TRY(wire_->go_on_after_fork());
    if (name.size() > most_name_bytes) return open(name, OpenMode::create, pages);
    const uint16_t flags = uint16_t(uint16_t(OpenMode::create) | (pages == Pages::shared ? 256 : 0));
    return std::shared_ptr<Object>(std::make_shared<AgentObject>(wire_, name, flags, wire_->post_open(name, flags)));
  }
  Result<Stripes> make_striped(const std::string& name, const StripeWish& wish) override {
    return ask_stripes(
        {.op = AgentOp::make_striped, .name = name, .flags = uint16_t(wish.start + 1), .offset = wish.unit_bytes, .length = uint64_t(wish.count)});
  }
  Result<Stripes> stripes(const std::string& name) override { return ask_stripes({.op = AgentOp::stripes, .name = name}); }
  Status put(const std::string& name, ByteView content, bool durable) override {
    uint32_t ticket = 0;
    const uint64_t all = content.size();
    for (; content.size() > most_bulk_bytes; content = content.subspan(most_bulk_bytes)) {
      const iovec piece{const_cast<std::byte*>(content.data()), most_bulk_bytes};
      const auto answer = ask({.op = AgentOp::append, .name = name, .handle = ticket, .length = ticket ? 0 : all}, {&piece, 1});
      if (!answer.ok()) return answer.status();
      ticket = uint32_t(answer->value);
    }
    const iovec last{const_cast<std::byte*>(content.data()), content.size()};
    return tell({.op = AgentOp::put, .name = name, .handle = ticket, .flags = durable}, {&last, 1});
  }
  Status link(const std::string& from, const std::string& to) override {
    const iovec name{const_cast<char*>(to.data()), to.size()};
    return tell({.op = AgentOp::link, .name = from}, {&name, 1});
  }
  // In pieces of one content: the agent keeps what it read for the first one.
  Result<Bytes> get(const std::string& name, uint64_t max_bytes) override {
    if (!read_first_.empty() && name == read_first_)
      if (const std::unique_ptr<Result<Bytes>> first{first_.exchange(nullptr)}; first && (!first->ok() || (*first)->size() <= max_bytes))
        return std::move(*first);
    Bytes content;
    uint32_t ticket = 0;
    for (uint64_t all = 1; content.size() < all;) {
      Room piece(most_bulk_bytes);
      const iovec into{piece.data(), piece.size()};
      const auto answer = ask({.op = AgentOp::get, .name = name, .handle = ticket, .offset = content.size(), .length = max_bytes}, {}, {&into, 1});
      if (!answer.ok()) return answer.status();
      all = answer->value, ticket = uint32_t(answer->other);
      if (all == 0) return content;
      if (answer->bulk_bytes == 0 || all > max_bytes || content.size() + answer->bulk_bytes > all) return wire_->senseless();
      const ByteView got = piece.first(answer->bulk_bytes);
      content.insert(content.end(), got.begin(), got.end());
    }
    return content;
  }
  Status make_directory(const std::string& name) override { return tell({.op = AgentOp::make_directory, .name = name}); }
  Status remove(const std::string& name) override { return tell({.op = AgentOp::remove, .name = name}); }
  Status remove_directory(const std::string& name) override { return tell({.op = AgentOp::remove_directory, .name = name}); }
  Status set_aside(const std::string& name) override { return tell({.op = AgentOp::set_aside, .name = name}); }
  Result<std::vector<std::string>> list(const std::string& directory) override { return ask_names(AgentOp::list, directory); }
  Result<Space> space() override {
    const auto answer = ask({.op = AgentOp::space});
    if (!answer.ok()) return answer.status();
    return Space{answer->value, answer->other};
  }
  Status check_identity() override { return tell({.op = AgentOp::identity}); }
  Status write_together(std::span<const ObjectWrite> writes) override {
    HF_TRY(wire_->go_on_after_fork());
    AgentTogether all;
    HF_TRY(add_writes(all, writes));
    if (all.count() < 2 || !all.fits()) return Target::write_together(writes);
    const auto parts = wire_->ask_together(all);
    return parts.ok() ? wire_->told(parts->back()) : parts.status();
  }
  Status settle(Objects written, Objects left, bool durable) override { return write_and_settle({}, written, left, durable); }
  Status write_and_settle(std::span<const ObjectWrite> writes, Objects written, Objects left, bool durable) override {
    HF_TRY(wire_->go_on_after_fork());
    AgentTogether all;
    if (written.size() + left.size() > most_bulk_bytes / sizeof(uint32_t)) {
      HF_TRY(write_together(writes));
      return Target::settle(written, left, durable);
    }
    HF_TRY(add_writes(all, writes));
    auto handles = handles_of(written);
    if (handles.ok()) handles = handles_of(left, std::move(*handles));
    if (!handles.ok()) return handles.status();
    const iovec bulk{handles->data(), handles->size() * sizeof(uint32_t)};
    const Wire::Ask settle{.op = AgentOp::settle, .flags = durable, .length = written.size()};
    if (writes.empty()) return tell(settle, {&bulk, 1});
    AgentRequest request;
    request.op = uint16_t(settle.op), request.flags = settle.flags, request.length = settle.length;
    all.add(request, "", {&bulk, 1});
    if (!all.fits()) return Target::write_and_settle(writes, written, left, durable);
    const auto parts = wire_->ask_together(all);
    return parts.ok() ? wire_->told(parts->back()) : parts.status();
  }
  Result<std::unique_ptr<Lock>> try_lock(const std::string& name, Hold hold) override {
    const auto answer = ask({.op = AgentOp::lock, .name = name, .flags = uint16_t(hold)});
    if (!answer.ok()) return answer.status();
    return std::unique_ptr<Lock>(std::make_unique<AgentLock>(wire_, uint32_t(answer->value)));
  }
  Result<Locked> try_lock_with(const LockWish& wish) override {
    HF_TRY(wire_->go_on_after_fork());
    if (std::max({wish.name.size(), wish.directory.size(), wish.object.size()}) > most_name_bytes) return Target::try_lock_with(wish);
    AgentTogether all;
    AgentRequest make, lock, get;
    make.op = uint16_t(AgentOp::make_directory), lock.op = uint16_t(AgentOp::lock), get.op = uint16_t(AgentOp::get);
    lock.flags = uint16_t(wish.hold), get.length = std::min<uint64_t>(wish.max_bytes, most_got_bytes);
    if (!wish.directory.empty()) all.add(make, wish.directory);
    const size_t before = all.count();
    all.add(lock, wish.name);
    if (!wish.object.empty()) all.add(get, wish.object);
    auto parts = wire_->ask_together(all);
    if (!parts.ok()) return parts.status();
    if (parts->size() <= before + 1) HF_TRY(wire_->told(parts->back()));
    Locked locked{std::make_unique<AgentLock>(wire_, uint32_t((*parts)[before].answer.value)), {}};
    if (parts->size() > before + 1) locked.object = wire_->got(parts->back());
    return locked;
  }
  // A page at a time, which the agent reads where they lie.
  Status get_each(const EachWish& wish, const TellOfEach& tell) override {
    const iovec object{const_cast<char*>(wish.object.data()), wish.object.size()};
    uint64_t told = 0;
    uint32_t ticket = 0;
    for (;;) {
      Room room(most_page_bytes);
      const iovec into{room.data(), room.size()};
      const auto answer =
          ask({.op = AgentOp::each, .name = wish.directory, .handle = ticket, .offset = told, .length = wish.max_bytes}, {&object, 1}, {&into, 1});
      if (!answer.ok()) return answer.status();
      auto page = decode_small(room.first(answer->bulk_bytes));
      if (!page || (page->empty() && answer->value > told)) return wire_->senseless();
      for (SmallObject& one : *page) tell(one.name, one.is_large ? get(path_of_each(wish, one.name), wish.max_bytes) : std::move(one.content));
      told += page->size(), ticket = uint32_t(answer->other);
      if (told >= answer->value) return Status();
    }
  }
  Result<std::vector<std::string>> break_locks(const std::string& directory) override { return ask_names(AgentOp::break_locks, directory); }

 private:
  static Status add_writes(AgentTogether& all, std::span<const ObjectWrite> writes) {
    for (const ObjectWrite& one : writes) {
      const auto handle = static_cast<AgentObject&>(*one.object).handle();
      if (!handle.ok()) return handle.status();
      AgentRequest write;
      write.op = uint16_t(AgentOp::write), write.handle = *handle, write.offset = one.offset;
      all.add(write, "", one.from);
    }
    return {};
  }
  Result<AgentAnswer> ask(const Wire::Ask& what, std::span<const iovec> bulk = {}, std::span<const iovec> into = {}) {
    HF_TRY(wire_->go_on_after_fork());
    return wire_->ask(what, bulk, into);
  }
  Status tell(const Wire::Ask& what, std::span<const iovec> bulk = {}) { return ask(what, bulk).status(); }
  Result<Stripes> ask_stripes(const Wire::Ask& what) {
    Room room(64 << 10);
    const iovec into{room.data(), room.size()};
    const auto answer = ask(what, {}, {&into, 1});
    if (!answer.ok()) return answer.status();
    auto stripes = decode_stripes(room.first(answer->bulk_bytes));
    if (!stripes) return wire_->senseless();
    return *stripes;
  }
  // A page at a time; who adds or removes names meanwhile may be seen or not, as in any directory.
  Result<std::vector<std::string>> ask_names(AgentOp op, const std::string& directory) {
    std::vector<std::string> names;
    uint32_t ticket = 0;
    for (;;) {
      Room room(most_bulk_bytes);
      const iovec into{room.data(), room.size()};
      const auto answer = ask({.op = op, .name = directory, .handle = ticket, .offset = names.size()}, {}, {&into, 1});
      if (!answer.ok()) return answer.status();
      auto page = decode_names(room.first(answer->bulk_bytes));
      if (!page || (page->empty() && answer->value > names.size())) return wire_->senseless();
      names.insert(names.end(), page->begin(), page->end());
      ticket = uint32_t(answer->other);
      if (names.size() >= answer->value) return names;
    }
  }

  const std::shared_ptr<Wire> wire_;
  const DirectoryId id_;
  const std::string read_first_;
  std::atomic<Result<Bytes>*> first_;  // what came with the attachment, for the first who asks; no mutex, as above
};

}  // namespace

Result<std::shared_ptr<Target>> attach_to_agent(std::shared_ptr<AgentChannel> channel, const std::string& directory, const std::string& label,
                                                uint32_t mode, ConnectAgain again, const std::string& read_first) {
  auto wire = std::make_shared<Wire>(std::move(channel), directory, label, mode, std::move(again));
  auto parts = wire->attach(read_first);
  if (!parts.ok()) return parts.status();
  const AgentTogether::Reply& attached = (*parts)[0];
  DirectoryId id{std::string(reinterpret_cast<const char*>(attached.bytes.data()), attached.bytes.size()), attached.answer.value,
                 attached.answer.other};
  std::unique_ptr<Result<Bytes>> first;
  if (parts->size() > 1)
    if (auto read = wire->got((*parts)[1])) first = std::make_unique<Result<Bytes>>(std::move(*read));
  return std::shared_ptr<Target>(std::make_shared<AgentTarget>(std::move(wire), std::move(id), read_first, std::move(first)));
}

}  // namespace holdfast::target
