// A program's process starts its node's agent again, where that is gone with whoever would do so.
#include "frontend/posix/own_code.hpp"
#include "service/helper_process.hpp"
#include "target/agent_again.hpp"
#include "target/agent_registry.hpp"

namespace holdfast::intercept::posix {

namespace {

Status start(const std::string& orders) {
  const frontend::posix::OurCode ours_now;
  const auto begun = service::start_with_orders(service::helper_program("agent"), orders);
  if (!begun.ok()) return begun.status();
  return begun->said == target::agent_serves ? Status() : Status(Kind::busy, begun->said);
}

__attribute__((constructor(102))) void agents_at_load() { target::set_agent_starter(start); }

}  // namespace

}  // namespace holdfast::intercept::posix
