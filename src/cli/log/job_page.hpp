// The page of `holdfast report --html`: job_page.html, put into the command by the build. HOLDFAST_LOG in it gives way to the log.
#pragma once

namespace holdfast::cli {
extern const char job_page[];
}
