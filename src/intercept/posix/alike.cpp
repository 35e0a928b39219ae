#include "intercept/posix/alike.hpp"

#include "intercept/posix/decided.hpp"
#include "intercept/posix/real.hpp"

namespace holdfast::intercept::posix {

void Alike::name(int directory, const char*& path, const void* caller) {
  const KeepErrno keep;
  redundant::Replica* const replica = replica_for(caller);
  if (!replica) return;
  const OurCode ours_now;
  std::string named = file::named_alike(*replica, path);
  if (named == path || name_asked(*replica, directory, path).empty()) return;
  text_ = std::move(named);
  path = text_.c_str();
}

}  // namespace holdfast::intercept::posix
