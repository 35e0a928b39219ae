// A target whose node's agent does not answer is not known to be lost.
#pragma once
#include "engine/members.hpp"
#include "target/address.hpp"

namespace holdfast::engine {

// What a sentence says of all members that are missing.
inline const char* what_missing_ones_are(const Members& members) {
  for (int member = 0; member < members.count(); ++member)
    if (!members.available(member) && target::is_unreached(members.path(member))) return "lost or out of reach";
  return "lost";
}

}  // namespace holdfast::engine
