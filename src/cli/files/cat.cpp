// holdfast cat PATH…: the file's bytes on standard output, also from a degraded file.
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <memory>

#include "cli/command.hpp"
#include "cli/files/copy.hpp"
#include "cli/files/versions.hpp"

namespace holdfast::cli {

namespace {
struct CatOptions {
  std::vector<std::string> paths;
  SettingsOptions settings;
};

int cat(const CatOptions& options) {
  auto settings = options.settings.load();
  if (!settings) return fail(settings.status());
  for (const std::string& path : options.paths) {
    auto opened = open_to_read(path_from_here(path), *settings);
    Status status = opened ? read_through(
                                 **opened, [](uint64_t, uint64_t) { return true; },
                                 [](uint64_t, ByteView piece) { return write_whole(STDOUT_FILENO, piece, "standard output"); })
                           : or_of_checkpoint(path, opened.status(), Asked::bytes, *settings);
    if (!status) return fail_for(path, status, *settings);
  }
  return exit_ok;
}
}  // namespace

void add_cat(CLI::App& app, int& code) {
  auto options = std::make_shared<CatOptions>();
  CLI::App* sub = app.add_subcommand("cat", "Write protected files to standard output");
  sub->add_option("PATH", options->paths, "Protected files")->required()->type_name("");
  options->settings.add_finding(*sub);
  sub->footer("Example:\n  holdfast cat out.dat | head -c 16 | xxd");
  sub->callback([options, &code] { code = cat(*options); });
}

}  // namespace holdfast::cli
