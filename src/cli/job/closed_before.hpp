// What an attempt had closed when its `run` was killed: the program may have gone on for a while, without anybody who protects its files.
#pragma once
#include <string>

#include "base/config.hpp"
#include "checkpoint/run.hpp"
#include "checkpoint/survey.hpp"

namespace holdfast::cli {

// Protects it now, where its nodes live; `run`: of the attempt that begins next. False where there is nothing of the kind: then the survey is as it was.
bool protect_what_was_closed(const checkpoint::Survey& survey, const checkpoint::Run& run, const Settings& settings, const std::string& with);

}  // namespace holdfast::cli
