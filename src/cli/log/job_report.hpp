// The forms of a job's report.
#pragma once
#include <string>

#include "profile/log.hpp"

namespace holdfast::cli {

void print_job(const profile::Log& log, size_t files);
bool is_empty(const profile::Log& log);             // no process has counted anything
std::string job_line(const profile::Log& log);      // "4 ranks on 1 node, 2026-11-21 10:58:03, 12.4 s, exit status 0"
std::string command_line(const profile::Log& log);  // as typed
double seconds_of(uint64_t ns);

std::string csv_of(const profile::Log& log);    // a line for each file and rank, a column for each counter
std::string trace_of(const profile::Log& log);  // Chrome's trace events
std::string page_of(const profile::Log& log);   // HTML, all in one file

}  // namespace holdfast::cli
