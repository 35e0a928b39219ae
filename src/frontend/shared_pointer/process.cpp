#include "frontend/shared_pointer/process.hpp"

#include <cstring>
#include <map>
#include <mutex>

#include "service/helper_process.hpp"
#include "service/pointer_link.hpp"

namespace holdfast::frontend {

namespace {

using service::Op;
using service::PointerLink;
using service::PointerService;
using transport::Secret;

// What this process runs and what it is connected to; both go with the last file that uses them.
struct Known {
  std::mutex mutex;
  std::weak_ptr<PointerService> as_process, as_thread;
  uint64_t files = 0;
  std::map<Secret, std::weak_ptr<PointerLink>> links;
};
Known& known() {
  static auto* made = new Known;
  return *made;
}

class ServedPointer : public SharedPointer {
 public:
  ServedPointer(std::shared_ptr<PointerService> service, std::shared_ptr<PointerLink> link, uint64_t file)
      : service_(std::move(service)), link_(std::move(link)), file_(file) {}
  ~ServedPointer() override {
    if (service_) link_->ask(Op::forget, file_, 0);  // rank 0: numbers are not used twice
  }
  int64_t fetch_add(int64_t etypes) override { return link_->ask(Op::fetch_add, file_, etypes); }
  int64_t load() override { return link_->ask(Op::load, file_, 0); }
  bool store(int64_t etypes) override { return link_->ask(Op::store, file_, etypes) >= 0; }
  Status failure() const override { return link_->failure(); }
  const char* algorithm() const override { return "process"; }

 private:
  std::shared_ptr<PointerService> service_;  // on rank 0
  std::shared_ptr<PointerLink> link_;
  uint64_t file_;
};

// What rank 0 tells the others.
struct Invitation {
  Secret secret{};
  uint64_t file = 0;
  char endpoints[service::kEndpointsBytes] = "";  // empty: there is no server
};

std::shared_ptr<PointerService> running_service(const ServiceWish& wish, std::string& endpoints, std::string& remark) {
  std::lock_guard lock(known().mutex);
  for (const bool as_thread : {wish.as_thread, true}) {
    std::weak_ptr<PointerService>& slot = as_thread ? known().as_thread : known().as_process;
    std::shared_ptr<PointerService> service = slot.lock();
    if (!service) {
      auto started = PointerService::start(as_thread ? std::string() : service::helper_program("pointer-server"));
      if (!started) {
        remark = "no server process could be started (" + started.status().sentence() + "); a thread of rank 0 keeps the pointer";
        continue;
      }
      service = std::move(*started);
    }
    auto listening = service->listen(wish.reach);
    if (!listening) {
      remark = listening.status().sentence() + "; a thread of rank 0 keeps the pointer";
      continue;
    }
    slot = service;
    endpoints = *listening;
    return service;
  }
  return nullptr;
}

std::shared_ptr<PointerLink> link_to(const Invitation& invitation, uint64_t deadline_ms) {
  if (invitation.endpoints[0] == 0) return nullptr;
  std::lock_guard lock(known().mutex);
  std::weak_ptr<PointerLink>& slot = known().links[invitation.secret];
  if (auto there = slot.lock(); there && there->connected()) return there;
  auto link = std::make_shared<PointerLink>();
  if (!link->connect(invitation.endpoints, invitation.secret, deadline_ms).ok()) return nullptr;
  slot = link;
  return link;
}

}  // namespace

std::unique_ptr<SharedPointer> make_process_pointer(MPI_Comm comm, const ServiceWish& wish, std::string& remark) {
  int rank = 0;
  real.Comm_rank(comm, &rank);
  Invitation invitation;
  std::shared_ptr<PointerService> service;
  if (rank == 0) {
    std::string endpoints;
    service = running_service(wish, endpoints, remark);
    if (service) invitation.secret = service->secret();
    std::strncpy(invitation.endpoints, endpoints.c_str(), sizeof invitation.endpoints - 1);
    std::lock_guard lock(known().mutex);
    invitation.file = ++known().files;
  }
  real.Bcast(&invitation, sizeof invitation, MPI_BYTE, 0, comm);
  auto link = link_to(invitation, wish.deadline_ms);
  int mine = link != nullptr, all = 0;
  real.Allreduce(&mine, &all, 1, MPI_INT, MPI_MIN, comm);
  if (service) service->hush();
  if (!all) {
    if (rank == 0) remark = "not every rank could reach the server process";
    return nullptr;
  }
  if (wish.alive) *wish.alive = std::make_shared<std::pair<std::shared_ptr<PointerService>, std::shared_ptr<PointerLink>>>(service, link);
  return std::make_unique<ServedPointer>(std::move(service), std::move(link), invitation.file);
}

}  // namespace holdfast::frontend
