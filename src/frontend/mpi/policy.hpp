// Which files are protected: decided by one rank at open, for all.
#pragma once
#include <map>
#include <string>

#include "base/config.hpp"
#include "frontend/mpi/errors.hpp"
#include "layout/manifest.hpp"
#include "real_mpi.h"

namespace holdfast::frontend {

enum class Way : int {
  native,  // MPI's own
  locate,  // protected already
  create,  // about to be
  fail,
};

struct Decision {
  Way way = Way::native;
  Fault fault;  // for Way::fail
};

// Looks at the path and the policy. Says once on stderr why a file that the policy names stays unprotected.
Decision decide(const std::string& path, int amode, const Settings& settings);

// The access modes that contradict themselves.
Fault check_amode(int amode);

std::map<std::string, std::string> hints_in_force(const Settings& settings, const layout::Manifest& manifest);

}  // namespace holdfast::frontend
