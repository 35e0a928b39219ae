// Paths with the process's number in them: `log.4711` of one replica is `log.4712` of its twin. All of them mean the file of the rank's first process.
#pragma once
#include <atomic>
#include <string>

#include "redundant/twins/replica.hpp"

namespace holdfast::file {

// The program has asked for its number. Before that a number in a path is another one by chance, such as that of a step.
inline std::atomic<bool> program_has_its_number{false};
void program_asks_for_its_number();

// `path` with the number of the rank's first process in the place of this one's. The directory where the program began stays as it is.
std::string named_alike(const redundant::Replica& replica, std::string path);
std::string named_alike(const redundant::Replica::ProcessNumbers& numbers, std::string path);

}  // namespace holdfast::file
