// What a program of Holdfast says to its user: a line that cannot be written ends nothing, least of all a job. For programs only (src/cli and the
// helper processes): fmt::print() throws where a log lies on a full disk, or who read it has gone. Any thread may call these.
#pragma once
#include <fmt/format.h>

#include <utility>

#include "base/status.hpp"

namespace holdfast {

// In one write to standard error. What cannot be written is lost: there is no other place to say so.
void say_text(fmt::string_view format, fmt::format_args arguments);
// To standard output; that it cannot be written is remembered until shown() is asked.
void show_text(fmt::string_view format, fmt::format_args arguments);

template <typename... T>
void say(fmt::format_string<T...> format, T&&... arguments) {
  say_text(format, fmt::make_format_args(arguments...));
}

template <typename... T>
void show(fmt::format_string<T...> format, T&&... arguments) {
  show_text(format, fmt::make_format_args(arguments...));
}

// Whether all of standard output has arrived, whoever of this process wrote it by stdio; with the errno of the first failure.
Status shown();

}  // namespace holdfast
