// Which threads of this process use a path. Where several do, a difference between replicas may be one of their order.
#pragma once
#include <string>

namespace holdfast::file {

// This thread makes a call on the path, or on a file that was opened by it.
void note_thread_on(const std::string& path);
// For the end of a sentence about a difference there; empty where one thread makes all calls.
std::string said_of_threads_on(const std::string& path);

}  // namespace holdfast::file
