// A directory that somebody else has opened, as a target.
#pragma once
#include <functional>

#include "base/raw_syscalls.hpp"
#include "target/directory.hpp"

namespace holdfast::target {

// `path`: where it is on its node. It may lead elsewhere or nowhere for this process (a container). Then `look` opens what is there on the node now,
// to tell whether it is still this directory. It gives nothing where nobody can tell: then it is believed to be. `label`: for messages.
using LookThere = std::function<Result<raw::Fd>()>;
Result<raw::Fd> open_to_hold(const std::string& path);
std::shared_ptr<Target> hold_directory(raw::Fd directory, const std::string& path, const std::string& label, const DirectoryOptions& options,
                                       LookThere look);

}  // namespace holdfast::target
