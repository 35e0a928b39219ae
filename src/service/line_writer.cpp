#include "service/line_writer.hpp"

#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

namespace holdfast::service {

namespace {

constexpr size_t longest_line = 1 << 20;  // what has no end by then is written as it is

// Local time to the millisecond: 2026-03-01T09:30:00.125
std::string now_text() {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  tm parts{};
  localtime_r(&now.tv_sec, &parts);
  char text[32];
  const size_t length = strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &parts);
  std::snprintf(text + length, sizeof text - length, ".%03ld", now.tv_nsec / 1000000);
  return text;
}

bool write_whole(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t done = ::write(fd, text.data(), text.size());
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) return false;
    text.remove_prefix(size_t(done));
  }
  return true;
}

}  // namespace

void LineWriter::take(std::string_view text) {
  const std::string prefix = "[" + now_text() + " " + origin_ + "] ";
  std::string whole = std::move(begun_);
  whole += text;
  size_t from = 0;
  std::string lines;
  for (size_t end; (end = whole.find('\n', from)) != std::string::npos; from = end + 1) lines += prefix + whole.substr(from, end + 1 - from);
  if (whole.size() - from >= longest_line) {
    lines += prefix + whole.substr(from) + "\n";
    from = whole.size();
  }
  begun_ = whole.substr(from);
  write(lines, std::string_view(whole).substr(0, from));
}

void LineWriter::end() {
  if (!begun_.empty()) take("\n");
}

// One call for all lines: those of several ranks do not mix, for the file was opened to be appended to.
void LineWriter::write(const std::string& lines, std::string_view as_they_came) {
  if (lines.empty()) return;
  if (!failed_ && write_whole(file_, lines)) return;
  if (!failed_) {
    static constexpr char told[] = "holdfast: the file of --gather-output cannot be written any more; the output goes on here\n";
    (void)write_whole(otherwise_, told);
  }
  failed_ = true;
  (void)write_whole(otherwise_, as_they_came);
}

}  // namespace holdfast::service
