#include "checkpoint/drained.hpp"

#include <algorithm>
#include <memory>
#include <sstream>
#include <tuple>

#include <fmt/format.h>

#include "base/node_path.hpp"
#include "catalog/entry.hpp"
#include "catalog/pool.hpp"
#include "catalog/user_files.hpp"
#include "checkpoint/local.hpp"
#include "checkpoint/pattern.hpp"

namespace holdfast::checkpoint {

namespace {

constexpr const char* first_line = "holdfast drained 5";
constexpr const char* first_line_without_versions = "holdfast drained 3";
constexpr const char* first_line_of_singles = "holdfast drained 4";  // files of no checkpoint
constexpr const char* first_line_without_id = "holdfast drained 2";  // of the attempt
constexpr const char* first_line_of_one = "holdfast drained 1";      // whose age was its first file's alone: that is not known by place
constexpr uint64_t most_bytes = 64 << 20;

std::string on_one_line(const std::string& path) {
  std::string out;
  for (const char c : path) out += c == '\n' ? "%0a" : c == '%' ? "%25" : std::string(1, c);
  return out;
}

std::string from_one_line(const std::string& text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i)
    if (text.compare(i, 3, "%0a") == 0) out += '\n', i += 2;
    else if (text.compare(i, 3, "%25") == 0) out += '%', i += 2;
    else out += text[i];
  return out;
}

std::string directory_of_records() { return fmt::format("{}/{}", local_directory, drained_directory); }

// A node that does not say which it has is none that has none.
Status read_records(target::Target& target, std::vector<DrainedCheckpoint>& found) {
  const auto names = target.list(directory_of_records());
  if (!names) return names.status().kind() == Kind::not_found ? Status() : names.status();
  for (const std::string& name : *names) {
    const auto text = target.get(directory_of_records() + "/" + name, most_bytes);
    if (!text) continue;
    auto drained = decode_drained(std::string(reinterpret_cast<const char*>(text->data()), text->size()));
    if (drained && drained->name() == name) found.push_back(std::move(*drained));
  }
  return {};
}

// `placed`: the files are, so a record of a drain before this one is of other files.
Status keep_on(target::Target& target, const DrainedCheckpoint& drained, const std::vector<std::string>& outdated, bool placed) {
  HF_TRY(target.make_directory(local_directory));
  HF_TRY(target.make_directory(directory_of_records()));
  const std::string text = encode(drained), at = directory_of_records() + "/" + drained.name();
  const Status kept = target.put(at, std::as_bytes(std::span(text)), false);
  if (!kept && !placed) return kept;
  if (!kept) (void)target.remove(at);  // better none than another one's
  for (const std::string& name : outdated) (void)target.remove(directory_of_records() + "/" + name);
  return kept;
}

}  // namespace

uint64_t DrainedCheckpoint::bytes() const {
  uint64_t all = 0;
  for (const DrainedFile& file : files) all += file.state.size;
  return all;
}

bool DrainedFile::still_there() const {
  const auto now = catalog::look(path, true);
  if (!now || !now->regular() || now->size != state.size) return false;
  const layout::PathState seen = now->path_state();
  const bool is_of_then = is_about_to_be() ? now->modified_ns == -state.change_ns : seen.change_ns == state.change_ns;
  return is_of_then && !catalog::is_another_file(state, seen, path);
}

bool DrainedCheckpoint::still_there() const {
  const auto is_there = [](const DrainedFile& file) { return file.still_there(); };
  return are_singles ? std::any_of(files.begin(), files.end(), is_there) : std::all_of(files.begin(), files.end(), is_there);
}

std::vector<DrainedCheckpoint> leave_out_what_has_changed(std::vector<DrainedCheckpoint>& all) {
  std::vector<DrainedCheckpoint> left, changed;
  for (DrainedCheckpoint& one : all) {
    auto& files = one.files;
    const auto gone = std::stable_partition(files.begin(), files.end(), [](const DrainedFile& file) { return file.still_there(); });
    const bool is_left = one.are_singles ? gone != files.begin() : gone == files.end();
    if (one.are_singles) files.erase(gone, files.end());
    else if (!is_left) files.erase(files.begin(), gone);
    if (is_left) left.push_back(std::move(one));
    else if (!one.are_singles) changed.push_back(std::move(one));
  }
  all = std::move(left);
  return changed;
}

std::optional<std::pair<layout::Attempt, uint32_t>> DrainedFile::number() const {
  const size_t dot = version.rfind('.');
  const auto attempt = dot == std::string::npos ? std::nullopt : layout::parse_attempt(version.substr(0, dot));
  std::istringstream words(dot == std::string::npos ? "" : version.substr(dot + 1));
  uint32_t count = 0;
  return attempt && words >> count ? std::optional(std::make_pair(*attempt, count)) : std::nullopt;
}

bool DrainedCheckpoint::has_versions() const {
  return std::none_of(files.begin(), files.end(), [](const DrainedFile& file) { return file.version.empty(); });
}

std::string version_drained(const layout::Version& version) { return fmt::format("{}.{}", text_of(version.attempt), version.number); }

bool DrainedCheckpoint::has(const Protected& file) const {
  return std::any_of(files.begin(), files.end(),
                     [&](const DrainedFile& one) { return one.path == file.version.file && one.version == version_drained(file.version); });
}

Ages DrainedCheckpoint::ages() const {
  if (written.empty()) return {{UINT32_MAX, {attempt, step, 0, ""}}};
  Ages all;
  for (const auto& [place, one] : written) all.emplace(place, Age{attempt, step, one.count, one.node});
  return all;
}

std::string DrainedCheckpoint::name() const {
  return are_singles ? fmt::format("{}.{}.files", run, text_of(attempt)) : fmt::format("{}.{}.{}", run, text_of(attempt), step);
}

namespace {

// `at`: the path of each. `placed`: it is their own.
Result<DrainedCheckpoint> record_of_files(const std::vector<layout::Manifest>& files, const std::vector<std::string>& at, bool placed) {
  DrainedCheckpoint drained;
  for (size_t i = 0; i < files.size(); ++i) {
    const layout::Version& version = *files[i].version;
    const auto state = catalog::look(at[i], true);
    if (!state && version.is_single()) continue;
    if (!state) return state.status();
    drained.run = version.run;
    drained.attempt = drained.files.empty() ? version.attempt : std::max(drained.attempt, version.attempt);
    drained.step = std::max(drained.step, version.step);
    drained.are_singles = version.is_single();
    drained.files.push_back({version.rank, state->path_state(), version.file, version_drained(version)});
    if (!placed) drained.files.back().state.change_ns = -std::max<int64_t>(state->modified_ns, 1);
  }
  return drained;
}

}  // namespace

Result<DrainedCheckpoint> drained_now(const std::vector<layout::Manifest>& files, const Ages& ages) {
  std::vector<std::string> own;
  for (const layout::Manifest& file : files) own.push_back(file.version->file);
  auto drained = record_of_files(files, own, true);
  if (!drained) return drained;
  for (const auto& [place, age] : ages)
    if (age.written) drained->written[place] = {age.written, age.node};
  return drained;
}

Result<DrainedCheckpoint> about_to_be_drained(const std::vector<layout::Manifest>& files, const std::vector<std::string>& grown) {
  return record_of_files(files, grown, false);
}

std::string encode(const DrainedCheckpoint& drained) {
  const char* const first = drained.are_singles ? first_line_of_singles : drained.has_versions() ? first_line : first_line_without_versions;
  std::string text = fmt::format("{}\n{} {} {} {}", first, drained.run, text_of(drained.attempt), drained.step, drained.files.size());
  for (const auto& [place, one] : drained.written) text += fmt::format(" {} {} {}", place, one.count, one.node);
  text += '\n';
  for (const DrainedFile& file : drained.files)
    text += fmt::format("{} {} {} {} {} {}{}\n", file.rank, file.state.device, file.state.inode, file.state.size, file.state.change_ns,
                        first == first_line_without_versions ? "" : file.version + " ", on_one_line(file.path));
  return text;
}

std::optional<DrainedCheckpoint> decode_drained(const std::string& text) {
  std::istringstream lines(text);
  std::string line, attempt;
  size_t count = 0;
  DrainedCheckpoint drained;
  if (!std::getline(lines, line)) return {};
  drained.are_singles = line == first_line_of_singles;
  const bool has_versions = drained.are_singles || line == first_line;
  if (!has_versions && line != first_line_without_versions && line != first_line_without_id && line != first_line_of_one) return {};
  const bool has_ages = line != first_line_of_one;
  if (!std::getline(lines, line)) return {};
  std::istringstream head(line);
  if (!(head >> drained.run >> attempt >> drained.step >> count)) return {};
  const auto which = layout::parse_attempt(attempt);
  if (!which || which->number == 0) return {};
  drained.attempt = *which;
  uint32_t place = 0;
  for (DrainedCheckpoint::Written one; has_ages && head >> place >> one.count >> one.node;) drained.written[place] = one;
  while (std::getline(lines, line)) {
    DrainedFile file;
    std::istringstream words(line);
    if (!(words >> file.rank >> file.state.device >> file.state.inode >> file.state.size >> file.state.change_ns)) return {};
    if ((has_versions && !(words >> file.version)) || words.get() != ' ') return {};
    std::getline(words, line);
    file.path = from_one_line(line);
    drained.files.push_back(std::move(file));
  }
  if (count == 0 || drained.files.size() != count) return {};
  return drained;
}

namespace {

// Each file stands for itself: one that was not drained this time, as it cannot be read any more, is there still. So is one that is only about to be replaced.
DrainedCheckpoint with_what_is_left(DrainedCheckpoint drained, const std::vector<DrainedCheckpoint>& before) {
  std::set<std::string> paths;
  for (const DrainedFile& file : drained.files)
    if (!file.is_about_to_be()) paths.insert(file.path);
  for (const DrainedCheckpoint& other : before)
    for (const DrainedFile& file : other.files)
      if (other.run == drained.run && other.are_singles && file.still_there() && paths.insert(file.path).second) drained.files.push_back(file);
  return drained;
}

}  // namespace

Status keep_record(const DrainedCheckpoint& now, const std::vector<std::string>& nodes, uint64_t deadline_ms, bool begins,
                   const layout::Attempt& running) {
  const layout::Attempt since = std::max(now.attempt, running);
  const auto pool = catalog::look_at_pool(nodes, deadline_ms);
  if (!pool) return pool.status();
  const auto found = records_of(*pool);
  // Here and not in a lane: storage that hangs at the user's path is no matter of the node's.
  const DrainedCheckpoint drained = now.are_singles ? with_what_is_left(now, found) : now;
  std::vector<std::string> outdated;
  for (const DrainedCheckpoint& other : found) {
    if (other.run != drained.run || other.name() == drained.name()) continue;
    const bool may_go = begins || other.attempt >= since;
    const bool is_taken_over = drained.are_singles && other.are_singles;
    if (is_taken_over || (may_go && !other.still_there())) outdated.push_back(other.name());
  }
  const bool placed = std::none_of(now.files.begin(), now.files.end(), [](const DrainedFile& file) { return file.is_about_to_be(); });
  std::vector<std::shared_ptr<target::Ticket>> asked;
  for (const catalog::Member& member : pool->members)
    if (member.usable()) asked.push_back(member.lane->submit([=, target = member.target] { return keep_on(*target, drained, outdated, placed); }));
  Status worst;
  for (const auto& ticket : asked)
    if (const Status kept = ticket->wait(); !kept) worst = kept;
  return worst;
}

Result<PlainFiles::Shown> PlainFiles::shown() {
  if (shown_) return *shown_;
  Shown some;
  const auto patterns = Patterns::parse(settings_.checkpoint, settings_.complete);
  // A file that is protected by itself is what the nodes have of it, else what stands at its path.
  some.all_ = !run_.from || (patterns && patterns->are_single());
  if (!some.all_ && run_.from->drained) {
    const auto known = record();
    if (!known) return known.status();
    auto paths = std::make_shared<std::set<std::string>>();
    for (const DrainedFile& file : known->files) paths->insert(file.path);
    some.paths_ = std::move(paths);
  }
  shown_ = some;
  return some;
}

Result<std::optional<PlainFiles::Number>> PlainFiles::drained(const std::string& path, bool anew) {
  if (!catalog::look(path, true)) return std::optional<Number>();
  if (anew || !records_) {
    const auto pool = catalog::look_at_pool(settings_.local, settings_.deadline_ms);
    if (!pool) return pool.status();
    size_t answered = 0;
    auto records = records_of(*pool, &answered);
    if (answered == 0) return Status(Kind::lost, "no node says which files were drained");
    records_ = std::move(records);
  }
  for (const DrainedCheckpoint& one : *records_)
    for (const DrainedFile& file : one.files)
      if (one.run == run_.id && file.path == path && file.still_there()) return file.number();
  return std::optional<Number>();
}

Result<DrainedCheckpoint> PlainFiles::record() const {
  const std::string name = DrainedCheckpoint{run_.id, run_.from->attempt, run_.from->step, {}}.name();
  const auto here = catalog::read_small(fmt::format("{}/{}/{}", parse_node_path(own_).path, directory_of_records(), name), most_bytes);
  if (auto record = here ? decode_drained(*here) : std::nullopt; record && record->name() == name) return std::move(*record);
  const auto pool = catalog::look_at_pool(settings_.local, settings_.deadline_ms);
  if (!pool) return pool.status();
  std::optional<DrainedCheckpoint> best;
  for (DrainedCheckpoint& one : records_of(*pool))
    if (one.name() == name && (!best || one.still_there())) best = std::move(one);
  if (best) return std::move(*best);
  return Status(Kind::lost, fmt::format("no node that answers knows which files checkpoint {} has, which is drained", run_.from->step));
}

std::vector<DrainedCheckpoint> records_of(const catalog::TargetSet& pool, size_t* answered) {
  std::vector<std::pair<std::shared_ptr<std::vector<DrainedCheckpoint>>, std::shared_ptr<target::Ticket>>> asked;
  for (const catalog::Member& member : pool.members) {
    if (!member.usable()) continue;
    auto records = std::make_shared<std::vector<DrainedCheckpoint>>();
    asked.emplace_back(records, member.lane->submit([records, target = member.target] { return read_records(*target, *records); }));
  }
  std::vector<DrainedCheckpoint> list;
  for (auto& [records, ticket] : asked) {
    if (!ticket->wait()) continue;
    if (answered) ++*answered;
    for (DrainedCheckpoint& one : *records)
      if (std::find(list.begin(), list.end(), one) == list.end()) list.push_back(std::move(one));
  }
  std::stable_sort(list.begin(), list.end(), [](const DrainedCheckpoint& a, const DrainedCheckpoint& b) {
    return std::tie(a.run, a.attempt, a.step) < std::tie(b.run, b.attempt, b.step);
  });
  return list;
}

}  // namespace holdfast::checkpoint
