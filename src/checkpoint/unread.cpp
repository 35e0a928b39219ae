#include "checkpoint/unread.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "catalog/pool.hpp"
#include "engine/maintenance.hpp"

namespace holdfast::checkpoint {

namespace {

bool can_be_read(const layout::Manifest& manifest, const Settings& settings) {
  const auto report = engine::verify(catalog::locate_version(manifest, settings), settings, [](uint64_t, uint64_t) { return true; });
  return report && report->lost_rows == 0;
}

void forget_notes(const std::vector<Unread>& notes, const Settings& settings) {
  const auto pool = notes.empty() ? Result<catalog::TargetSet>(Status(Kind::lost, "")) : catalog::look_at_pool(settings.local, settings.deadline_ms);
  if (!pool) return;
  for (const catalog::Member& member : pool->members)
    for (const Unread& note : notes)
      if (member.usable() && member.path == note.node)
        (void)member.lane->run([target = member.target, at = fmt::format("{}/{}/{}", directory_of_attempt(note.run, note.attempt), unread_directory,
                                                                         note.file_id)] { return target->remove(at); });
}

}  // namespace

std::set<std::string> damaged_of(const Survey& survey, const Settings& settings) {
  std::set<std::string> damaged;
  std::vector<Unread> refuted;
  for (const catalog::FoundVersion& one : survey.versions) {
    std::vector<Unread> notes;
    std::copy_if(survey.unread.begin(), survey.unread.end(), std::back_inserter(notes),
                 [&](const Unread& note) { return note.file_id == one.manifest.file_id; });
    if (notes.empty() || !one.readable()) continue;  // not readable: more nodes are lost than its scheme bears, which is another matter
    if (can_be_read(one.manifest, settings)) refuted.insert(refuted.end(), notes.begin(), notes.end());
    else damaged.insert(one.manifest.file_id);
  }
  forget_notes(refuted, settings);
  return damaged;
}

Result<Survey> survey_to_begin(const std::string& run, const Settings& settings, std::set<std::string>& damaged) {
  damaged.clear();
  auto survey = Surveyor(settings.local, settings.deadline_ms).look(run);
  if (survey) damaged = damaged_of(*survey, settings);
  return damaged.empty() ? std::move(survey) : Surveyor(settings.local, settings.deadline_ms, damaged).look(run);
}

const Protected* damaged_file(const Checkpoint& one, const std::set<std::string>& damaged) {
  for (const auto& [place, file] : one.files)
    if (damaged.contains(file.file_id)) return &file;
  return nullptr;
}

}  // namespace holdfast::checkpoint
