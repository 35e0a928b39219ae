// What the replicas of a redundant job read.
#pragma once
#include <string>

namespace holdfast {

struct ReplicaSettings {
  std::string read_protocol = "auto", write_protocol = "auto";  // how they share the work on a file
  std::string clock = "decided";                                // whose time they see
};

}  // namespace holdfast
