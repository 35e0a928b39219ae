#include "cli/redundant/hub_link.hpp"

#include <fcntl.h>
#include <linux/sockios.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <vector>

#include "catalog/user_files.hpp"
#include "cli/job/program.hpp"
#include "service/helper_process.hpp"

namespace holdfast::cli {

using redundant::Frame;
using redundant::Word;

Status HubLink::start(redundant::TeamOrders& orders, const std::string& gathered) {
  if (!transport::draw(orders.secret)) return Status(Kind::io, "the kernel gives no random numbers");
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return Status::from_errno(errno, "socketpair");
  control_.reset(ends[0]);
  raw::Fd theirs(ends[1]);
  const auto self = catalog::read_link("/proc/self/exe");
  const std::string program = directory_of(self ? *self : "") + "/../libexec/holdfast/replica-hub";
  std::vector<std::string> words;
  std::vector<int> descriptors{theirs.get(), STDOUT_FILENO, STDERR_FILENO};
  raw::Fd file;
  if (!gathered.empty()) {
    file.reset(raw::openat(AT_FDCWD, gathered.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC));
    if (!file) return Status::from_errno(errno, gathered);
    (void)raw::flock(file.get(), LOCK_SH);  // the hub's as well, as long as it lives
    words.emplace_back("gather");
    descriptors.push_back(file.get());
  }
  HF_TRY(service::start_helper(program, words, descriptors));
  Frame begin;
  begin.word = Word::begin;
  begin.number = uint64_t(orders.teams), begin.subject = uint64_t(orders.reach), begin.epoch = uint32_t(orders.deadline_ms);
  begin.rank = uint32_t(orders.relaunches), begin.team = orders.rehearses;
  begin.payload.assign(orders.secret.begin(), orders.secret.end());
  tell(begin);
  theirs.reset();
  while (orders.hub.empty()) {
    const bool there = hear([&](const Frame& frame) {
      if (frame.word == Word::listens) orders.hub = std::string(redundant::text_of(frame.payload));
    });
    if (!there) return Status(Kind::io, "the process that joins the teams has not come up (" + program + ")");
  }
  return Status();
}

void HubLink::tell(const Frame& frame) {
  const Bytes bytes = encode(frame);
  (void)::send(control_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
}

bool HubLink::is_behind() const {
  int bytes = 0;
  return control_ && ::ioctl(control_.get(), SIOCOUTQ, &bytes) == 0 && bytes > 0;
}

bool HubLink::hear(const std::function<void(const Frame&)>& each) {
  std::byte buffer[16 << 10];
  const ssize_t got = ::recv(control_.get(), buffer, sizeof buffer, 0);
  if (got < 0 && errno == EINTR) return true;
  if (got <= 0 || !reader_.add(ByteView(buffer, size_t(got)))) return false;
  while (const auto frame = reader_.next()) each(*frame);
  return true;
}

}  // namespace holdfast::cli
