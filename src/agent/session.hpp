// The agent's side of one connection: requests in, answers out, on the directories that it serves. Pure: no sockets, threads or clock.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "agent/sum.hpp"
#include "target/agent_protocol.hpp"
#include "target/target.hpp"

namespace holdfast::agent {

// What an agent serves: by the name under which it is asked for, how the directory is opened for a client whose new objects get these permissions.
using OpenServed = std::function<Result<std::shared_ptr<target::Target>>(uint32_t mode)>;
using Served = std::map<std::string, OpenServed>;

// Objects and locks that a client has open end with its session.
class Session {
 public:
  explicit Session(std::shared_ptr<const Served> served, OpenPeer open_peer = {}) : served_(std::move(served)), open_peer_(std::move(open_peer)) {}

  struct Reply {
    target::AgentAnswer answer;  // as it goes out; the two lengths fit
    std::string sentence;
    Bytes bulk;
    std::shared_ptr<Sum> sum;  // what follows in the place of `bulk`, made while it is sent
    bool only_once = false;    // it was the last piece of something, which is gone now
    // For who has no socket: all of the sum at once, as any other answer.
    void make_sum();
  };
  static Reply reply_of(const Status& status);
  // What a request takes up. Little is free.
  struct Memory {
    uint64_t moving = 0;  // with its answer, until that is sent
    uint64_t begun = 0;   // until the last of the requests that it begins has come
  };
  static Memory memory_for(const target::AgentRequest& request);
  // `request` is sensible(); `name` and `bulk` are as long as it says.
  Reply answer(const target::AgentRequest& request, const std::string& name, ByteView bulk);
  bool holds_locks() const { return !locks_.empty(); }
  bool has_open() const { return holds_locks() || !objects_.empty(); }
  // That of `served` which it is attached to; empty before that.
  const std::string& directory() const { return directory_; }
  // What is kept of requests and answers of several pieces, and giving that up: who goes on with it hears that it is gone.
  uint64_t begun_bytes() const;
  void forget_begun();
  // Lets go of all that it has open. It is asked nothing any more.
  void end();

 private:
  using Request = target::AgentRequest;
  struct Answered;  // a status, two numbers and bytes
  struct Got {      // a small object that is not so small: read a piece at a time
    std::shared_ptr<target::Object> object;
    uint64_t bytes;
  };
  static Reply reply_of(Answered done);
  Answered carry_out(const Request& request, const std::string& name, ByteView bulk);
  Answered several(const Request& request, ByteView bulk);
  Answered attach(const Request& request, const std::string& name);
  Answered on_target(const Request& request, const std::string& name, ByteView bulk);
  Answered on_object(const Request& request, ByteView bulk);
  Answered open(const Request& request, const std::string& name);
  Result<std::shared_ptr<target::Object>> open_object(const Request& request, const std::string& name);
  Status no_handle(uint32_t handle) const;
  Answered read(target::Object& object, const Request& request);
  Answered put(const Request& request, const std::string& name, ByteView bulk);
  Answered get(const Request& request, const std::string& name);
  Answered get_piece(const Request& request, uint32_t ticket);
  Result<uint32_t> begin_to_get(const Request& request, const std::string& name);
  Answered names(const Request& request, const std::string& name);
  Answered each(const Request& request, const std::string& name, ByteView bulk);
  Result<uint32_t> begin_to_list(const Request& request, const std::string& name);
  const std::vector<std::string>* listed(uint32_t ticket, uint64_t offset) const;
  Answered lock(const Request& request, const std::string& name);
  Answered settle(const Request& request, ByteView bulk);
  Answered checksums(target::Object& object, const Request& request, ByteView bulk);
  Answered sum(const Request& request, ByteView bulk);
  Answered close(uint32_t handle);

  const std::shared_ptr<const Served> served_;
  const OpenPeer open_peer_;
  std::shared_ptr<IdlePeer> idle_peer_ = std::make_shared<IdlePeer>();
  std::shared_ptr<target::Target> target_;
  std::string directory_;
  std::string attached_;  // to that directory, with these flags
  uint16_t attached_flags_ = 0;
  std::map<uint32_t, std::shared_ptr<target::Object>> objects_;
  std::map<uint32_t, std::unique_ptr<target::Lock>> locks_;
  std::map<uint32_t, Status> unopened_;  // by a handle of the client's choice: why it is none
  uint32_t last_handle_ = 0;
  // What comes in several requests or goes out in several answers, by the ticket that the first answer gives.
  std::map<uint32_t, Bytes> unput_;
  std::map<uint32_t, Got> got_;
  std::map<uint32_t, std::vector<std::string>> listed_;
  uint32_t last_ticket_ = 0;
  // Of which the last piece was given, as the answer to that request. It may be asked for once more.
  uint32_t given_ticket_ = 0, given_by_ = 0;
};

}  // namespace holdfast::agent
