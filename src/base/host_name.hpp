// What this node calls itself.
#pragma once
#include <unistd.h>

#include <string>

namespace holdfast {

inline std::string host_name() {
  char name[256] = "";
  (void)::gethostname(name, sizeof name - 1);
  return name;
}

}  // namespace holdfast
