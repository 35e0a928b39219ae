// The ranks' standard output and error in one file of the job, line by line. The C library writes to descriptors 1 and 2 by ways that cannot be
// watched, so they become pipes. A small process beside each rank (libexec/holdfast/gather-output) moves whole lines to the file. It outlives the
// rank by what is still in the pipes: nothing of a killed rank's output is lost.
#pragma once
#include <string>

#include "base/status.hpp"

namespace holdfast::service {

// `file` exists; each line is appended to it as "[TIME rank LABEL out] text", or "err" for standard error; TIME is when the line
// came. Where it cannot be written any more the text goes on to where it would have gone without.
Status gather_output(const std::string& helper, const std::string& file, const std::string& label);

// Waits until every rank's lines are in the file, at most `milliseconds`; false: some are still to come (a process that
// the job has left behind holds its output open).
bool gathered(const std::string& file, int milliseconds);

}  // namespace holdfast::service
