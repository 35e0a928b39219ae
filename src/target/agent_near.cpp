#include "target/agent_near.hpp"

#include <sys/socket.h>

#include <cstring>
#include <sstream>

#include "target/agent_protocol.hpp"
#include "target/agent_registry.hpp"
#include "target/kernel_calls.hpp"
#include "transport/link.hpp"

namespace holdfast::target {

namespace {

constexpr uint64_t patience_ms = 2000;  // on the way that is left then nothing was lost

std::string of_this_node(const std::string& endpoints) {
  std::string near;
  std::istringstream lines(endpoints);
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with("unix ")) near += line + "\n";
  return near;
}

// Room for one descriptor.
union Control {
  cmsghdr aligned;
  char bytes[CMSG_SPACE(sizeof(int))];
};

// The whole header, and what came with its first byte.
Result<raw::Fd> receive_header(int socket, AgentAnswer& answer) {
  Control control{};
  iovec room{&answer, sizeof answer};
  msghdr message{};
  message.msg_iov = &room, message.msg_iovlen = 1;
  message.msg_control = &control, message.msg_controllen = sizeof control;
  const ssize_t got = restarted([&] { return recvmsg(socket, &message, MSG_CMSG_CLOEXEC | MSG_WAITALL); });
  raw::Fd came;
  for (cmsghdr* one = CMSG_FIRSTHDR(&message); got > 0 && one; one = CMSG_NXTHDR(&message, one)) {
    if (one->cmsg_level != SOL_SOCKET || one->cmsg_type != SCM_RIGHTS || one->cmsg_len != CMSG_LEN(sizeof(int))) continue;
    int descriptor = -1;
    std::memcpy(&descriptor, CMSG_DATA(one), sizeof descriptor);
    came.reset(descriptor);
  }
  if (got != ssize_t(sizeof answer) || !sensible(answer)) return Status(Kind::io, "the agent hands nothing over", EPROTO);
  return came;
}

}  // namespace

bool is_own_user(int socket) {
  ucred peer{};
  socklen_t bytes = sizeof peer;
  return getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) == 0 && peer.pid != 0 && peer.uid == geteuid();
}

bool send_with_descriptor(int socket, ByteView header, int descriptor) {
  Control control{};
  iovec all{const_cast<std::byte*>(header.data()), header.size()};
  msghdr message{};
  message.msg_iov = &all, message.msg_iovlen = 1;
  message.msg_control = &control, message.msg_controllen = sizeof control;
  cmsghdr* one = CMSG_FIRSTHDR(&message);
  one->cmsg_level = SOL_SOCKET, one->cmsg_type = SCM_RIGHTS, one->cmsg_len = CMSG_LEN(sizeof descriptor);
  std::memcpy(CMSG_DATA(one), &descriptor, sizeof descriptor);
  return restarted([&] { return sendmsg(socket, &message, MSG_NOSIGNAL); }) == ssize_t(header.size());
}

Result<raw::Fd> ask_for_directory(const AgentNote& note, const transport::Secret& secret, const std::string& directory, bool& answered) {
  answered = false;
  const std::string near = of_this_node(note.endpoints);
  if (near.empty()) return Status(Kind::unsupported, "the agent has no socket of its node");
  transport::Link link;
  HF_TRY(link.connect(near, agent_agreement(secret, note.id), patience_ms));
  if (!is_own_user(link.descriptor())) return Status(Kind::access, "the agent is another user's", EACCES);
  AgentRequest request;
  request.op = uint16_t(AgentOp::directory), request.name_bytes = uint32_t(directory.size());
  const iovec out[] = {{&request, sizeof request}, {const_cast<char*>(directory.data()), directory.size()}};
  HF_TRY(link.send(out));
  AgentAnswer answer;
  auto came = receive_header(link.descriptor(), answer);
  if (!came.ok()) return came;
  answered = true;
  HF_TRY(status_of(answer, "the agent hands nothing over"));
  struct stat found;
  if (!*came || raw::fstat(came->get(), &found) != 0 || !S_ISDIR(found.st_mode)) return Status(Kind::io, "the agent hands no directory over", EPROTO);
  return came;
}

}  // namespace holdfast::target
