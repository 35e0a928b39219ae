#include "target/agent_session.hpp"

#include <algorithm>
#include <utility>

#include "base/vectors.hpp"
#include "target/companion.hpp"

namespace holdfast::target {

namespace {

constexpr size_t most_posted = 64;
constexpr int most_connections = 4;  // for one question: whoever breaks them all does so at each

// The first `bytes` of the vectors; nothing where they have no room for so many.
std::optional<std::vector<iovec>> first(std::span<const iovec> vectors, uint64_t bytes) {
  std::vector<iovec> some;
  for (const iovec& one : vectors) {
    if (bytes == 0) break;
    some.push_back({one.iov_base, size_t(std::min<uint64_t>(one.iov_len, bytes))});
    bytes -= some.back().iov_len;
  }
  if (bytes != 0) return std::nullopt;
  return some;
}

bool connection_broke(const Status& status) { return status.kind() == Kind::io && status.sys_errno() != EPROTO; }

}  // namespace

Status send_request(AgentLine& line, AgentRequest& request, const std::string& name, std::span<const iovec> bulk) {
  request.name_bytes = uint32_t(name.size()), request.bulk_bytes = uint32_t(total_bytes(bulk));
  std::vector<iovec> out{{&request, sizeof request}, {const_cast<char*>(name.data()), name.size()}};
  out.insert(out.end(), bulk.begin(), bulk.end());
  return line.send(out);
}

// Who goes on wants to know how far the session has come.
Status send_begin(AgentLine& line, std::span<const SessionId> ids, bool go_on) {
  AgentRequest request;
  request.op = uint16_t(AgentOp::begin), request.flags = go_on, request.quiet = !go_on;
  const iovec bulk{const_cast<SessionId*>(ids.data()), ids.size_bytes()};
  return send_request(line, request, "", {&bulk, 1});
}

Status receive_header(AgentLine& line, uint32_t number, AgentAnswer& answer) {
  const iovec head{&answer, sizeof answer};
  HF_TRY(line.receive({&head, 1}));
  return answer.number == number && sensible(answer) ? Status() : senseless_answer();
}

Status senseless_answer() { return Status(Kind::io, "the agent's answer makes no sense", EPROTO); }

void LostSessions::note(const SessionId& id) {
  constexpr size_t most = 16;
  if (std::find(ids_.begin(), ids_.end(), id) != ids_.end()) return;
  if (ids_.size() == most) ids_.erase(ids_.begin());
  ids_.push_back(id);
}

SessionChannel::SessionChannel(const SessionId& id, std::vector<SessionId> instead, OpenLine open)
    : id_(id), instead_(std::move(instead)), open_(std::move(open)), owner_(process_id()) {}

Status SessionChannel::begin() {
  std::lock_guard lock(mutex_);
  Status status = over_connections([] { return Status(); });
  over_ = !status.ok();
  return status;
}

bool SessionChannel::broken() const {
  std::lock_guard lock(mutex_);
  return over_;
}

// A forked child has a copy of the descriptor: two processes' questions on one connection would get each other's answers. The parent may have held
// the mutex when it forked.
bool SessionChannel::inherited() const { return owner_ != process_id(); }

bool SessionChannel::has_ended() const {
  std::unique_lock lock(mutex_, std::try_to_lock);
  return lock && (over_ || !line_ || line_->has_ended());
}

void SessionChannel::close_in_child() {
  if (line_) line_->close_in_child();
}

Status SessionChannel::ask(AgentRequest request, const std::string& name, std::span<const iovec> bulk, AgentAnswer& answer, std::string& sentence,
                           std::span<const iovec> into) {
  if (inherited()) return Status(Kind::io, "the connection is the parent process's", EIO);
  std::lock_guard lock(mutex_);
  Status status = ask_alone(request, name, bulk, answer, sentence, into);
  if (!status.ok()) give_up();
  return status;
}

// Who asks after that finds the session lost, and told of.
void SessionChannel::give_up() {
  if (tell_) std::exchange(tell_, {})();
  over_ = true;
  line_.reset();
}

// Nothing answers it. So that what would have to be sent again stays little, one in many is waited for.
void SessionChannel::post(AgentRequest request, const std::string& name) {
  if (inherited()) return;
  std::lock_guard lock(mutex_);
  post_alone(std::move(request), name);
}

void SessionChannel::enter() { ++users_; }

// Who enters meanwhile asks after it that something be attached.
void SessionChannel::leave() {
  if (inherited() || --users_ > 0) return;
  std::lock_guard lock(mutex_);
  if (users_ > 0 || !line_) return;
  AgentRequest rest;
  rest.op = uint16_t(AgentOp::nothing);
  post_alone(rest, "");
}

void SessionChannel::post_alone(AgentRequest request, const std::string& name) {
  if (over_) return;
  if (posted_.size() >= most_posted) {
    AgentRequest nothing;
    nothing.op = uint16_t(AgentOp::nothing);
    AgentAnswer answer;
    std::string sentence;
    if (!ask_alone(nothing, "", {}, answer, sentence, {}).ok()) return give_up();
  }
  request.number = ++number_, request.quiet = 1;
  posted_.push_back({request, name});
  if (line_ && send_request(*line_, request, name, {}).ok()) return;
  line_.reset();
  // Not with the next question: others may wait for the lock that this lets go of.
  if (!over_connections([] { return Status(); }).ok()) give_up();
}

Status SessionChannel::ask_alone(AgentRequest& request, const std::string& name, std::span<const iovec> bulk, AgentAnswer& answer,
                                 std::string& sentence, std::span<const iovec> into) {
  if (over_) return Status(Kind::io, "there is no session with the agent any more", EIO);
  request.number = ++number_;
  return over_connections([&]() -> Status {
    HF_TRY(send_request(*line_, request, name, bulk));
    HF_TRY(receive(request.number, answer, sentence, into));
    forget_posted(request.number);
    return {};
  });
}

// Again on the next connection, where one breaks in it.
Status SessionChannel::over_connections(const std::function<Status()>& talk) {
  for (int connections = 1;; ++connections) {
    Status status = line_ ? Status() : go_on();
    if (status.ok()) status = talk();
    if (status.ok() || !connection_broke(status) || !line_ || connections == most_connections) return status;
    line_.reset();
  }
}

// Without a line there is nobody to go on with.
Status SessionChannel::open_line(bool go_on) {
  auto fresh = open_();
  if (!fresh.ok()) return fresh.status();
  line_ = std::move(*fresh);
  std::vector<SessionId> ids{id_};
  if (!go_on) ids.insert(ids.end(), instead_.begin(), instead_.end());
  return send_begin(*line_, ids, go_on);
}

// What was posted is sent again as far as it was not carried out. The question that follows has its own number: the agent carries it out, or answers
// it as before. Until the first answer the agent need not have heard of the session: that begins anew, and whatever of it there is ends.
Status SessionChannel::go_on() {
  const bool is_known = incarnation_ != 0;
  HF_TRY(open_line(is_known));
  if (is_known) {
    AgentAnswer answer;
    std::string sentence;
    HF_TRY(receive(0, answer, sentence, {}));
    if (Status status = status_of(answer, std::move(sentence)); !status.ok()) return Status(Kind::io, status.sentence(), EPROTO);
    forget_posted(uint32_t(answer.value));
  }
  for (Posted& one : posted_) HF_TRY(send_request(*line_, one.request, one.name, {}));
  return {};
}

void SessionChannel::forget_posted(uint32_t last) {
  while (!posted_.empty() && int32_t(posted_.front().request.number - last) <= 0) posted_.pop_front();
}

Status SessionChannel::receive(uint32_t number, AgentAnswer& answer, std::string& sentence, std::span<const iovec> into) {
  HF_TRY(receive_header(*line_, number, answer));
  auto room = first(into, answer.bulk_bytes);
  if (!room || (incarnation_ != 0 && answer.incarnation != incarnation_)) return senseless_answer();
  incarnation_ = answer.incarnation;
  sentence.resize(answer.sentence_bytes);
  room->insert(room->begin(), iovec{sentence.data(), sentence.size()});
  return line_->receive(*room);
}

}  // namespace holdfast::target
