#include "agent/session.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "base/node_path.hpp"
#include "coding/checksum.hpp"

namespace holdfast::agent {

using target::AgentOp;
using target::most_bulk_bytes;

namespace {
constexpr size_t most_tickets = 64;                          // of a kind: the oldest were given up
constexpr size_t most_handles = 65536;                       // of one client
constexpr size_t most_put_bytes = 256 << 20;                 // small objects: manifests, markers
constexpr size_t most_begun_bytes = 32 << 20;                // of several that are begun at once
constexpr uint64_t unannounced_bytes = 2 * most_bulk_bytes;  // of a put whose size is not told
Status no_ticket() { return Status(Kind::stale, "that piece is of nothing that was begun", ESTALE); }
size_t bytes_of(const Bytes& bytes) { return bytes.capacity(); }
size_t bytes_of(const std::vector<std::string>& names) {
  size_t bytes = names.capacity() * sizeof names[0];
  for (const std::string& name : names) bytes += name.capacity();
  return bytes;
}
uint64_t free_of(uint64_t bytes) { return bytes > target::most_free_bytes ? bytes : 0; }
template <class What>
size_t bytes_of(const std::map<uint32_t, What>& begun) {
  size_t bytes = 0;
  for (const auto& [ticket, what] : begun) bytes += bytes_of(what);
  return bytes;
}
// The oldest are given up, but for one: whoever does one thing at a time has all that it may take.
template <class What>
void keep_little(std::map<uint32_t, What>& begun) {
  while (begun.size() > 1 && bytes_of(begun) > most_begun_bytes) begun.erase(begun.begin());
}
template <class What>
void add(std::map<uint32_t, What>& begun, uint32_t ticket, What what) {
  if (begun.size() >= most_tickets) begun.erase(begun.begin());
  begun.emplace(ticket, std::move(what));
  if constexpr (std::is_same_v<What, Bytes> || std::is_same_v<What, std::vector<std::string>>) keep_little(begun);
}
}  // namespace

struct Session::Answered {
  Answered() = default;
  Answered(Status what) : status(std::move(what)) {}
  Answered(uint64_t first, uint64_t second = 0, Bytes bytes = {}) : value(first), other(second), bulk(std::move(bytes)) {}
  Status status;
  uint64_t value = 0, other = 0;
  Bytes bulk;
  bool only_once = false;
  std::shared_ptr<Sum> sum;
};

Session::Memory Session::memory_for(const Request& request) {
  Memory memory{free_of(request.bulk_bytes)};
  const auto op = AgentOp(request.op);
  if (op == AgentOp::read || op == AgentOp::get || op == AgentOp::checksums)
    memory.moving += free_of(std::min<uint64_t>(request.length, most_bulk_bytes));
  if (op == AgentOp::list || op == AgentOp::break_locks) memory.moving += most_bulk_bytes;
  if (op == AgentOp::each) memory.moving += 2 * target::most_page_bytes;  // and an object that is read for it
  if (op == AgentOp::append && request.handle == 0)
    memory.begun = free_of(request.length ? std::min<uint64_t>(request.length, most_put_bytes) : unannounced_bytes);
  return memory;
}

uint64_t Session::begun_bytes() const { return bytes_of(unput_) + bytes_of(listed_); }

void Session::forget_begun() { unput_.clear(), got_.clear(), listed_.clear(); }

Session::Reply Session::answer(const Request& request, const std::string& name, ByteView bulk) {
  if (request.number != given_by_) got_.erase(std::exchange(given_ticket_, 0));
  Reply reply = reply_of(carry_out(request, name, bulk));
  reply.answer.number = request.number;
  return reply;
}

Session::Reply Session::reply_of(Answered done) {
  Reply reply = reply_of(done.status);
  reply.bulk = std::move(done.bulk), reply.only_once = done.only_once, reply.sum = std::move(done.sum);
  reply.answer.value = done.value, reply.answer.other = done.other;
  reply.answer.bulk_bytes = uint32_t(reply.sum ? reply.sum->bytes() : reply.bulk.size());
  return reply;
}

void Session::Reply::make_sum() {
  if (!sum) return;
  Bytes all(sum->bytes());
  const Status made = std::exchange(sum, nullptr)->next(all);
  const uint32_t number = answer.number;
  if (!made.ok()) *this = reply_of(made);
  else bulk = std::move(all);
  answer.number = number;
}

Session::Reply Session::reply_of(const Status& status) {
  Reply reply;
  reply.sentence = status.sentence().substr(0, target::most_name_bytes);
  reply.answer.kind = uint16_t(status.kind()), reply.answer.sys_errno = status.sys_errno();
  reply.answer.sentence_bytes = uint32_t(reply.sentence.size());
  return reply;
}

void Session::end() {
  objects_.clear(), locks_.clear();
  forget_begun();
  target_ = nullptr;
  idle_peer_ = std::make_shared<IdlePeer>();
}

Session::Answered Session::carry_out(const Request& request, const std::string& name, ByteView bulk) {
  const auto op = AgentOp(request.op);
  if (op == AgentOp::nothing) return Answered();
  if (op == AgentOp::several) return several(request, bulk);
  if (op == AgentOp::attach) return attach(request, name);
  if (!target_) return Status(Kind::invalid, "the connection is attached to no directory", EPROTO);
  switch (op) {
    case AgentOp::read:
    case AgentOp::write:
    case AgentOp::sync:
    case AgentOp::write_back:
    case AgentOp::truncate:
    case AgentOp::grow:
    case AgentOp::size:
    case AgentOp::checksums:
    case AgentOp::still_there: return on_object(request, bulk);
    case AgentOp::close: return close(request.handle);
    default: return on_target(request, name, bulk);
  }
}

namespace {

struct OneOfSeveral {
  target::AgentRequest request;
  std::string name;
  ByteView bulk;
};

// Nothing where they are not what several requests may be.
std::optional<std::vector<OneOfSeveral>> parts_of(uint32_t number, ByteView bulk) {
  std::vector<OneOfSeveral> parts;
  int gets = 0;
  while (!bulk.empty()) {
    OneOfSeveral one;
    if (bulk.size() < sizeof one.request || parts.size() == target::most_together) return std::nullopt;
    std::memcpy(&one.request, bulk.data(), sizeof one.request);
    bulk = bulk.subspan(sizeof one.request);
    if (!sensible(one.request) || !may_be_of_several(one.request) || bulk.size() < one.request.name_bytes + size_t(one.request.bulk_bytes))
      return std::nullopt;
    if (AgentOp(one.request.op) == AgentOp::get && ++gets > 1) return std::nullopt;
    one.request.number = number;
    one.name.assign(reinterpret_cast<const char*>(bulk.data()), one.request.name_bytes);
    one.bulk = bulk.subspan(one.request.name_bytes, one.request.bulk_bytes);
    bulk = bulk.subspan(one.request.name_bytes + size_t(one.request.bulk_bytes));
    parts.push_back(std::move(one));
  }
  return parts;
}

}  // namespace

// Looked at whole before anything of it is carried out.
Session::Answered Session::several(const Request& request, ByteView bulk) {
  const auto parts = parts_of(request.number, bulk);
  if (!parts) return Status(Kind::invalid, "those are no requests that can be made together", EPROTO);
  Bytes answers;
  for (const OneOfSeveral& one : *parts) {
    const Reply reply = reply_of(carry_out(one.request, one.name, one.bulk));
    for (const ByteView part :
         {ByteView(std::as_bytes(std::span(&reply.answer, 1))), ByteView(std::as_bytes(std::span(reply.sentence))), ByteView(reply.bulk)})
      answers.insert(answers.end(), part.begin(), part.end());
    if (reply.answer.kind != uint16_t(Kind::ok)) break;
  }
  return Answered(0, 0, std::move(answers));
}

Session::Answered Session::attach(const Request& request, const std::string& name) {
  auto found = served_->find(name);
  if (found == served_->end()) found = served_->find(plain_path(name));
  if (found == served_->end()) return Status(Kind::access, fmt::format("the agent does not serve {}; start it with that directory", name), EACCES);
  if (target_ && (attached_ != name || attached_flags_ != request.flags))
    return Status(Kind::invalid, "the connection is attached to another directory", EPROTO);
  if (!target_) {
    auto target = found->second(request.flags & 07777);
    if (!target.ok()) return target.status();
    target_ = std::move(*target), attached_ = name, attached_flags_ = request.flags, directory_ = found->first;
  }
  HF_TRY(target_->check_identity());
  const auto id = target_->directory_id();
  if (!id) return Answered();
  const auto* machine = reinterpret_cast<const std::byte*>(id->machine.data());
  return Answered(id->device, id->inode, Bytes(machine, machine + id->machine.size()));
}

Session::Answered Session::on_object(const Request& request, ByteView bulk) {
  const auto found = objects_.find(request.handle);
  if (found == objects_.end()) return no_handle(request.handle);
  target::Object& object = *found->second;
  switch (AgentOp(request.op)) {
    case AgentOp::read: return read(object, request);
    case AgentOp::checksums: return checksums(object, request, bulk);
    case AgentOp::write: {
      const iovec from{const_cast<std::byte*>(bulk.data()), bulk.size()};
      return object.write(request.offset, {&from, 1});
    }
    case AgentOp::sync: return object.sync();
    case AgentOp::write_back: return object.write_back();
    case AgentOp::truncate: return object.truncate(request.offset);
    case AgentOp::grow: return object.grow(request.offset);
    case AgentOp::still_there: return object.still_there();
    default: break;
  }
  const auto size = object.size();
  return size.ok() ? Answered(*size) : Answered(size.status());
}

Session::Answered Session::read(target::Object& object, const Request& request) {
  Bytes bytes(std::min<uint64_t>(request.length, most_bulk_bytes));
  const iovec into{bytes.data(), bytes.size()};
  const auto got = object.read(request.offset, {&into, 1});
  if (!got.ok()) return got.status();
  bytes.resize(*got);
  return Answered(*got, 0, std::move(bytes));
}

// What the object does not have counts as zeros, as for whoever reads it.
Session::Answered Session::checksums(target::Object& object, const Request& request, ByteView bulk) {
  target::AskedChecksums asked;
  if (bulk.size() != sizeof asked) return Status(Kind::invalid, "that asks for no checksums", EINVAL);
  std::memcpy(&asked, bulk.data(), sizeof asked);
  if (asked.block_bytes == 0 || request.length > most_bulk_bytes || request.length % asked.block_bytes != 0 ||
      request.length / asked.block_bytes > most_bulk_bytes / sizeof(uint64_t))
    return Status(Kind::invalid, "those are no blocks", EINVAL);
  Bytes bytes(request.length);
  const iovec into{bytes.data(), bytes.size()};
  const auto got = object.read(request.offset, {&into, 1});
  if (!got.ok()) return got.status();
  std::fill(bytes.begin() + std::ptrdiff_t(*got), bytes.end(), std::byte{0});
  std::vector<uint64_t> sums;
  for (uint64_t at = 0; at < bytes.size(); at += asked.block_bytes)
    sums.push_back(coding::block_checksum(asked.key, asked.row, asked.unit, asked.first + uint32_t(sums.size()),
                                          ByteView(bytes).subspan(at, asked.block_bytes)));
  const ByteView all = std::as_bytes(std::span(sums));
  return Answered(sums.size(), 0, Bytes(all.begin(), all.end()));
}

Session::Answered Session::sum(const Request& request, ByteView bulk) {
  const auto terms = target::decode_terms(bulk);
  if (!terms || request.length == 0 || request.length > most_bulk_bytes) return Status(Kind::invalid, "that is no sum", EINVAL);
  auto own = target_->open(terms->front().object, target::OpenMode::read);
  if (!own.ok()) return own.status();
  auto begun = Sum::begin(std::move(*own), *terms, request.length, open_peer_, idle_peer_);
  if (!begun.ok()) return begun.status();
  Answered answered(request.length);
  answered.sum = std::move(*begun);
  return answered;
}

Session::Answered Session::on_target(const Request& request, const std::string& name, ByteView bulk) {
  switch (AgentOp(request.op)) {
    case AgentOp::open: return open(request, name);
    case AgentOp::put:
    case AgentOp::append: return put(request, name, bulk);
    case AgentOp::get: return get(request, name);
    case AgentOp::make_directory: return target_->make_directory(name);
    case AgentOp::remove: return target_->remove(name);
    case AgentOp::remove_directory: return target_->remove_directory(name);
    case AgentOp::set_aside: return target_->set_aside(name);
    case AgentOp::list:
    case AgentOp::break_locks: return names(request, name);
    case AgentOp::each: return each(request, name, bulk);
    case AgentOp::identity: return target_->check_identity();
    case AgentOp::lock: return lock(request, name);
    case AgentOp::settle: return settle(request, bulk);
    case AgentOp::sum: return sum(request, bulk);
    case AgentOp::link: return target_->link(name, std::string(reinterpret_cast<const char*>(bulk.data()), bulk.size()));
    default: break;
  }
  if (AgentOp(request.op) == AgentOp::space) {
    const auto space = target_->space();
    return space.ok() ? Answered(space->total_bytes, space->free_bytes) : Answered(space.status());
  }
  const bool make = AgentOp(request.op) == AgentOp::make_striped;
  if (request.length > INT32_MAX) return Status(Kind::invalid, "that is no number of nodes", EINVAL);
  const auto stripes = make ? target_->make_striped(name, {request.offset, int(request.length), int(request.flags) - 1}) : target_->stripes(name);
  return stripes.ok() ? Answered(0, 0, target::encode_stripes(*stripes)) : Answered(stripes.status());
}

Result<std::shared_ptr<target::Object>> Session::open_object(const Request& request, const std::string& name) {
  const uint16_t mode = request.flags & 255;
  if (mode > uint16_t(target::OpenMode::create)) return Status(Kind::invalid, "that is no way to open", EINVAL);
  if (objects_.size() + locks_.size() >= most_handles) return Status(Kind::io, "one connection has too much open", EMFILE);
  return target_->open(name, target::OpenMode(mode), request.flags & 256 ? target::Pages::shared : target::Pages::own);
}

Session::Answered Session::open(const Request& request, const std::string& name) {
  const bool drawn = request.flags & 512;
  if (drawn && (request.handle < target::first_drawn_handle || objects_.contains(request.handle)))
    return Status(Kind::invalid, "that handle cannot be chosen", EINVAL);
  auto object = open_object(request, name);
  const uint32_t handle = drawn ? request.handle : ++last_handle_;
  if (object.ok()) objects_[handle] = std::move(*object);
  else if (drawn) add(unopened_, handle, object.status());
  return object.ok() ? Answered(handle) : Answered(object.status());
}

Status Session::no_handle(uint32_t handle) const {
  const auto found = unopened_.find(handle);
  return found != unopened_.end() ? found->second : Status(Kind::stale, "that handle is not of this connection", ESTALE);
}

Session::Answered Session::lock(const Request& request, const std::string& name) {
  if (request.flags > uint16_t(target::Hold::probe)) return Status(Kind::invalid, "that is no way to lock", EINVAL);
  if (objects_.size() + locks_.size() >= most_handles) return Status(Kind::io, "one connection has too much open", EMFILE);
  auto lock = target_->try_lock(name, target::Hold(request.flags));
  if (!lock.ok()) return lock.status();
  locks_[++last_handle_] = std::move(*lock);
  return Answered(last_handle_);
}

Session::Answered Session::settle(const Request& request, ByteView bulk) {
  std::vector<uint32_t> handles(bulk.size() / sizeof(uint32_t));
  if (!handles.empty()) std::memcpy(handles.data(), bulk.data(), handles.size() * sizeof(uint32_t));
  std::vector<std::shared_ptr<target::Object>> objects;
  for (const uint32_t handle : handles) {
    const auto found = objects_.find(handle);
    if (found == objects_.end()) return no_handle(handle);
    objects.push_back(found->second);
  }
  if (request.length > objects.size()) return Status(Kind::invalid, "so many handles are not there", EINVAL);
  const target::Target::Objects all(objects);
  return target_->settle(all.first(request.length), all.subspan(request.length), request.flags & 1);
}

Session::Answered Session::close(uint32_t handle) {
  return objects_.erase(handle) + locks_.erase(handle) + unopened_.erase(handle) == 1 ? Answered() : Answered(no_handle(handle));
}

Session::Answered Session::put(const Request& request, const std::string& name, ByteView bulk) {
  const bool last = AgentOp(request.op) == AgentOp::put;
  if (last && request.handle == 0) return target_->put(name, bulk, request.flags & 1);
  const uint32_t ticket = request.handle ? request.handle : ++last_ticket_;
  if (request.handle == 0) {
    Bytes all;
    all.reserve(std::min<uint64_t>(request.length, most_put_bytes));
    add(unput_, ticket, std::move(all));
  }
  const auto begun = unput_.find(ticket);
  if (begun == unput_.end()) return no_ticket();
  if (begun->second.size() + bulk.size() > most_put_bytes) return Status(Kind::invalid, "that is too much for a small object", EFBIG);
  begun->second.insert(begun->second.end(), bulk.begin(), bulk.end());
  if (!last) {
    keep_little(unput_);
    return unput_.contains(ticket) ? Answered(ticket) : Answered(no_ticket());
  }
  const Bytes content = std::move(begun->second);
  unput_.erase(begun);
  return target_->put(name, content, request.flags & 1);
}

Session::Answered Session::get(const Request& request, const std::string& name) {
  if (request.handle != 0) return get_piece(request, request.handle);
  auto content = target_->get(name, std::min<uint64_t>(request.length, most_bulk_bytes));
  if (content.ok()) {
    const uint64_t all = content->size();
    return Answered(all, 0, std::move(*content));
  }
  if (content.status().kind() != Kind::corrupt || request.length <= most_bulk_bytes) return content.status();
  const auto ticket = begin_to_get(request, name);
  return ticket.ok() ? get_piece(request, *ticket) : Answered(ticket.status());
}

// It is replaced whole, if at all: what is open stays as it is.
Result<uint32_t> Session::begin_to_get(const Request& request, const std::string& name) {
  auto object = target_->open(name, target::OpenMode::read);
  if (!object.ok()) return object.status();
  const auto bytes = (*object)->size();
  if (!bytes.ok()) return bytes.status();
  const uint64_t most = std::min<uint64_t>(request.length, most_put_bytes);
  if (*bytes > most) return Status(Kind::corrupt, fmt::format("{} is larger than the {} bytes it may have", name, most));
  add(got_, ++last_ticket_, Got{std::move(*object), *bytes});
  return last_ticket_;
}

Session::Answered Session::get_piece(const Request& request, uint32_t ticket) {
  const auto begun = got_.find(ticket);
  if (begun == got_.end() || request.offset > begun->second.bytes) return no_ticket();
  const uint64_t all = begun->second.bytes;
  Bytes piece(std::min<uint64_t>(all - request.offset, most_bulk_bytes));
  const iovec into{piece.data(), piece.size()};
  const auto got = begun->second.object->read(request.offset, {&into, 1});
  if (!got.ok()) return got.status();
  if (*got < piece.size()) return Status(Kind::stale, "a small object was cut while it was read", ESTALE);
  if (request.offset + piece.size() == all) given_ticket_ = ticket, given_by_ = request.number;
  return Answered(all, ticket, std::move(piece));
}

// The ticket that the request goes on with, or a new one.
Result<uint32_t> Session::begin_to_list(const Request& request, const std::string& name) {
  if (request.handle != 0) return request.handle;
  auto all = AgentOp(request.op) == AgentOp::break_locks ? target_->break_locks(name) : target_->list(name);
  if (!all.ok()) return all.status();
  add(listed_, ++last_ticket_, std::move(*all));
  return last_ticket_;
}

const std::vector<std::string>* Session::listed(uint32_t ticket, uint64_t offset) const {
  const auto begun = listed_.find(ticket);
  return begun == listed_.end() || offset > begun->second.size() ? nullptr : &begun->second;
}

Session::Answered Session::names(const Request& request, const std::string& name) {
  const auto ticket = begin_to_list(request, name);
  if (!ticket.ok()) return ticket.status();
  const std::vector<std::string>* all = listed(*ticket, request.offset);
  if (!all) return no_ticket();
  const uint64_t count = all->size();
  const auto from = all->begin() + std::ptrdiff_t(request.offset);
  auto end = from;
  for (size_t bytes = 0; end != all->end() && bytes + end->size() + 1 <= most_bulk_bytes; ++end) bytes += end->size() + 1;
  Bytes page = target::encode_names({from, end});
  Answered answered(count, *ticket, std::move(page));
  if ((answered.only_once = end == all->end())) listed_.erase(*ticket);
  return answered;
}

// What does not fit into a page is told to be large, or read once more for the next one.
Session::Answered Session::each(const Request& request, const std::string& name, ByteView bulk) {
  const auto ticket = begin_to_list(request, name);
  if (!ticket.ok()) return ticket.status();
  const std::vector<std::string>* all = listed(*ticket, request.offset);
  if (!all) return no_ticket();
  const target::Target::EachWish wish{name, std::string(reinterpret_cast<const char*>(bulk.data()), bulk.size()),
                                      std::min<uint64_t>(request.length, target::most_page_bytes)};
  Bytes page;
  uint64_t next = request.offset;
  while (next < all->size() && target::add_small(page, (*all)[next], target_->get(path_of_each(wish, (*all)[next]), wish.max_bytes))) ++next;
  Answered answered(all->size(), *ticket, std::move(page));
  if ((answered.only_once = next == all->size())) listed_.erase(*ticket);
  return answered;
}

}  // namespace holdfast::agent
