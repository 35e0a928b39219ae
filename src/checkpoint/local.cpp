#include "checkpoint/local.hpp"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <cstring>
#include <functional>
#include <map>
#include <tuple>

#include <fmt/format.h>

#include "base/process_facts.hpp"
#include "catalog/environment.hpp"
#include "catalog/user_files.hpp"
#include "checkpoint/parts.hpp"
#include "checkpoint/shared.hpp"
#include "coding/checksum.hpp"
#include "coding/xxh3.hpp"

namespace holdfast::checkpoint {

using catalog::Descriptor;

namespace {

constexpr size_t longest_name = 255;  // NAME_MAX
constexpr const char* boot_id = "/proc/sys/kernel/random/boot_id";
constexpr size_t most_boot_bytes = 64;
constexpr int directories_below_node = 3;
constexpr size_t most_dropped = 32, most_dropped_of_many = 1024;  // names of each rank: more than any program writes in turn
constexpr const char* past_directory = "past";                    // of a team
constexpr size_t most_past = 8;                                   // files of a rank
constexpr std::string_view kind_letters = "wra";                  // by LocalName::Kind

std::string escaped(const std::string& path) {
  std::string out;
  for (const char c : path)
    if (c == '/') out += '|';
    else if (c == '|' || c == '%') out += fmt::format("%{:02x}", unsigned(c));
    else out += c;
  return out;
}

std::optional<std::string> unescaped(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out += text[i] == '|' ? '/' : text[i];
      continue;
    }
    unsigned code = 0;
    const auto digits = text.substr(i + 1, 2);
    if (digits.size() != 2 || std::from_chars(digits.data(), digits.data() + 2, code, 16).ptr != digits.data() + 2) return {};
    out += char(code);
    i += 2;
  }
  return out;
}

template <class Number>
bool take(std::string_view& text, Number& into, std::string_view behind) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), into);
  if (error != std::errc()) return false;
  text.remove_prefix(size_t(end - text.data()));
  if (!text.starts_with(behind)) return false;
  text.remove_prefix(behind.size());
  return true;
}

// A note that another rank gives the number to what it writes; else of what was there.
bool is_announced(const LocalName& name) { return is_of_another_rank(name) && name.written == 0; }

bool is_never_seen(State state) { return state == State::torn || state == State::together || state == State::dropped || state == State::evicted; }

}  // namespace

std::string directory_of_attempt(const std::string& run, const layout::Attempt& attempt) {
  return fmt::format("{}/{}/{}", local_directory, run, text_of(attempt));
}

const char* state_name(State state) {
  switch (state) {
    case State::writing: return "writing";
    case State::together: return "together";
    case State::closed: return "closed";
    case State::protecting: return "protecting";
    case State::kept: return "protected";
    case State::twin: return "twin";
    case State::restored: return "restored";
    case State::failed: return "failed";
    case State::torn: return "torn";
    case State::hidden: return "hidden";
    case State::dropped: return "dropped";
    case State::evicted: return "evicted";
  }
  return "";
}

Result<std::string> encode(const LocalName& name) {
  const std::string by = name.writers || name.writer ? fmt::format(".{}{}of{}", kind_letters[name.kind], name.writer, name.writers) : "";
  std::string times = name.times || name.fewest ? fmt::format(".{}", name.times) : "";
  if (name.fewest) times += fmt::format(".{}", name.fewest);
  std::string text =
      fmt::format("{}.{}of{}.{}.{}.{}{}{}~{}", name.step, name.rank, name.ranks, name.number, name.written, name.turn, times, by, escaped(name.file));
  if (text.size() + std::strlen(why_begins) <= longest_name) return text;
  return Status(Kind::invalid,
                fmt::format("{}: the path has {} bytes, which is too long for a checkpoint; choose a shorter one", name.file, name.file.size()),
                ENAMETOOLONG);
}

std::optional<LocalName> decode_local_name(const std::string& text) {
  std::string_view rest = text;
  LocalName name;
  if (!take(rest, name.step, ".") || !take(rest, name.rank, "of") || !take(rest, name.ranks, ".") || !take(rest, name.number, "")) return {};
  // Writers from before there was such a thing leave it out.
  if (rest.starts_with('.') && (rest.remove_prefix(1), !take(rest, name.written, ""))) return {};
  const auto is_number = [&] { return rest.size() > 1 && rest[0] == '.' && rest[1] >= '0' && rest[1] <= '9'; };
  if (is_number() && (rest.remove_prefix(1), !take(rest, name.turn, ""))) return {};
  if (is_number() && (rest.remove_prefix(1), !take(rest, name.times, ""))) return {};
  if (is_number() && (rest.remove_prefix(1), !take(rest, name.fewest, ""))) return {};
  if (rest.size() > 1 && rest[0] == '.') {
    const size_t kind = kind_letters.find(rest[1]);
    rest.remove_prefix(2);
    if (kind == std::string_view::npos || !take(rest, name.writer, "of") || !take(rest, name.writers, "")) return {};
    name.kind = LocalName::Kind(kind);
  }
  if (!rest.starts_with('~')) return {};
  rest.remove_prefix(1);
  auto file = unescaped(rest);
  if (!file || file->empty()) return {};
  name.file = std::move(*file);
  return name;
}

LocalFiles::LocalFiles(const std::string& node_directory, const std::string& run, const layout::Attempt& attempt, int team)
    : below_(directory_of_attempt(run, attempt)),
      directory_(fmt::format("{}/{}", node_directory, below_)),
      team_(team == no_team ? "" : fmt::format("{}{}/", team_begins, team)),
      turns_(std::make_shared<Turns>(fmt::format("{}/{}", directory_, turns_file))) {}

std::string LocalFiles::below_attempt(State state) const { return (state == State::writing ? team_ : "") + state_name(state); }

Status LocalFiles::make() const {
  const bool made = catalog::look(boot_note(), false) && (team_.empty() || catalog::look(fmt::format("{}/{}", directory_, team_), false));
  return made ? Status() : make_all();
}

Status LocalFiles::make_all() const {
  // Below the node's directory, which must be there: where it is not, a mount may be missing.
  std::vector<std::string> directories;
  for (std::string at = directory_; directories.size() < directories_below_node; at = catalog::parent_of(at)) directories.push_back(at);
  std::reverse(directories.begin(), directories.end());
  for (const State state : all_states)
    if (!is_rare(state)) directories.push_back(directory_ + "/" + state_name(state));
  for (const char* const beside : {parts_directory, shared_directory, sealed_directory, ranks_directory})
    directories.push_back(fmt::format("{}/{}", directory_, beside));
  if (!team_.empty()) {
    directories.push_back(fmt::format("{}/{}", directory_, team_));
    directories.push_back(fmt::format("{}/{}", directory_, below_attempt(State::writing)));
    directories.push_back(fmt::format("{}/{}{}", directory_, team_, past_directory));
  }
  directories.push_back(fmt::format("{}/{}{}", directory_, team_, openers_directory));
  for (const std::string& directory : directories)
    if (catalog::environment().mkdirat(AT_FDCWD, directory.c_str(), 0700) != 0 && errno != EEXIST) return Status::from_errno(errno, directory);
  if (catalog::look(boot_note(), false)) return {};
  const bool has_any = has_files();
  return catalog::look(boot_note(), false) || has_any ? Status() : note_boot();  // files without one: it was lost, and the protector is to see that
}

int LocalFiles::make_for_program(const std::string& path, mode_t mode) const {
  constexpr int flags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC;
  const int made = open_for_program(path, flags, mode);
  if (made >= 0 || errno != ENOENT) return made;
  // Somebody has removed the directory, and left the note that says that it was made.
  const Status again = make_all();
  return again ? open_for_program(path, flags, mode) : (errno = again.to_errno(), -1);
}

// Before any file is begun there, by whoever comes first, and durable. What is written is to be told from what was written before the node lost power.
Status LocalFiles::note_boot() const {
  const auto now = catalog::read_beginning(boot_id, most_boot_bytes);
  if (!now) return {};  // nobody says
  HF_TRY(catalog::replace_file(boot_note(), scratch(), *now, 0600, true));
  std::string at = directory_;
  for (int up = 0; up < directories_below_node; ++up) HF_TRY(catalog::sync_directory(at = catalog::parent_of(at)));
  return {};
}

// A file is begun after the note: where it was there before the note was looked for and is not found, the note was lost.
Result<bool> LocalFiles::was_started_anew() const {
  const bool has_any = has_files();
  const auto now = catalog::read_beginning(boot_id, most_boot_bytes), before = catalog::read_beginning(boot_note(), most_boot_bytes);
  if (!before && before.status().kind() != Kind::not_found) return before.status();
  return now && (before ? *before != *now : has_any);
}

// Of programs. Empty ones may have been put here by other nodes before anybody made the directories.
bool LocalFiles::has_files() const {
  const auto is_note = [](State state) { return state == State::hidden || state == State::dropped || state == State::evicted; };
  return std::any_of(std::begin(all_states), std::end(all_states), [&](State state) { return !is_note(state) && !list(state).empty(); });
}

std::string LocalFiles::scratch() const {
  static std::atomic<unsigned> count{0};
  return fmt::format("{}/{}{}.{}", directory_, scratch_begins, ::getpid(), ++count);
}

std::string LocalFiles::path(State state, const LocalName& name) const {
  const auto text = encode(name);
  return text ? fmt::format("{}/{}/{}", directory_, below_attempt(state), *text) : "";
}

std::string LocalFiles::directory_of(State state) const { return fmt::format("{}/{}", directory_, below_attempt(state)); }

std::string LocalFiles::path_of_why(const LocalName& name) const {
  const auto text = encode(name);
  return text ? fmt::format("{}/{}/{}{}", directory_, below_attempt(State::failed), why_begins, *text) : "";
}

std::string LocalFiles::on_its_node(State state, const std::string& name) const { return fmt::format("{}/{}/{}", below_, state_name(state), name); }

namespace {

// Below an open one; AT_FDCWD: by its whole path.
Descriptor open_directory(int above, const std::string& path) {
  return Descriptor(catalog::environment().openat(above, path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0));
}

std::vector<LocalName> decoded(const std::vector<std::string>& entries) {
  std::vector<LocalName> names;
  for (const std::string& entry : entries)
    if (auto name = decode_local_name(entry)) names.push_back(std::move(*name));
  std::sort(names.begin(), names.end(),
            [](const LocalName& a, const LocalName& b) { return std::tie(a.step, a.rank, a.number) < std::tie(b.step, b.rank, b.number); });
  return names;
}

std::vector<LocalName> names_of(const Descriptor& directory) {
  const auto entries = directory ? catalog::list_directory(directory.get(), "") : Result<std::vector<std::string>>(Status(Kind::not_found, ""));
  return entries ? decoded(*entries) : std::vector<LocalName>();
}

}  // namespace

LocalFiles LocalFiles::with_open_directories() const {
  LocalFiles same = *this;
  same.open_ = std::make_shared<OpenDirectories>(directory_);
  return same;
}

// In their order: a file that goes on to its next state meanwhile is seen in one of them.
std::vector<std::vector<std::string>> LocalFiles::names_in(const std::vector<std::string>& directories) const {
  return open_ ? open_->list(directories) : OpenDirectories(directory_).list(directories);
}

std::vector<LocalName> LocalFiles::list(State state) const { return names_of(open_directory(AT_FDCWD, directory_ + "/" + below_attempt(state))); }

Status LocalFiles::put_into(State state, const std::function<Status()>& put) const {
  const Status first = put();
  if (first.kind() != Kind::not_found || !is_rare(state)) return first;
  const bool made = catalog::environment().mkdirat(AT_FDCWD, fmt::format("{}/{}", directory_, state_name(state)).c_str(), 0700) == 0;
  return made || errno == EEXIST ? put() : first;  // another one may just have made it
}

Status LocalFiles::move(const LocalName& name, State from, State to) const {
  return put_into(to, [&] { return catalog::move(path(from, name), path(to, name)); });
}

// On a full disk there is room for a name at most, and one that fails may take no more either.
Status LocalFiles::say_why(const LocalName& name, const std::string& why) const {
  const std::string at = path_of_why(name);
  if (at.empty()) return encode(name).status();
  const Status noted = put_into(State::failed, [&] { return catalog::replace_file(at, scratch(), why + "\n", 0600, false); });
  if (noted) return noted;
  return put_into(State::failed, [&] { return catalog::make_file(at, 0600); });
}

std::string LocalFiles::why(const LocalName& name) const {
  const auto text = catalog::read_beginning(path_of_why(name), most_why_bytes);
  return text ? why_in(*text) : "";
}

void LocalFiles::forget_why(const LocalName& name) const { (void)catalog::unlink_file(path_of_why(name)); }

std::string why_in(std::string note) {
  while (!note.empty() && note.back() == '\n') note.pop_back();
  return note.empty() ? why_unsaid : std::move(note);
}

Status LocalFiles::hide(const LocalName& name) const {
  HF_TRY(make());
  return put_into(State::hidden, [&] { return catalog::make_file(path(State::hidden, name), 0600); });
}

Status LocalFiles::evict(const LocalName& name, State from) const {
  HF_TRY(put_into(State::evicted, [&] { return catalog::make_file(path(State::evicted, name), 0600); }));
  return catalog::unlink_file(path(from, name));
}

// What stays the same of a file while it is open: its step and its place in the order may change.
std::string opener_begins(const LocalName& name) {
  return fmt::format("{:016x}.{}~", coding::xxh3(name.file.data(), name.file.size(), 0), name.number);
}

bool is_untouched(State state, const LocalName& name, const std::set<std::string>& noted) {
  return may_be_untouched(state) && !noted.empty() && noted.contains(opener_begins(name));
}

namespace {

std::string opener_of(int process, uint64_t began_ticks) { return fmt::format("{}.{}", process, began_ticks); }

}  // namespace

std::string process_name(int process) {
  const auto facts = process_facts(process);
  return opener_of(process, facts ? facts->began_ticks : 0);
}

std::string this_process() { return process_name(::getpid()); }

bool is_running(const std::string& process) {
  const int number = std::atoi(process.c_str());
  const auto facts = process_facts(number);
  return facts && opener_of(number, facts->began_ticks) == process;
}

std::string LocalFiles::opener(const LocalName& name, const std::string& who) const {
  return fmt::format("{}/{}{}/{}{}", directory_, team_, openers_directory, opener_begins(name), who);
}

// A link that leads nowhere is made by one call, an empty file by several.
Status LocalFiles::opened(const LocalName& name, const std::string& who) const {
  const std::string note = opener(name, who);
  if (catalog::environment().symlinkat(state_name(State::writing), AT_FDCWD, note.c_str()) == 0 || errno == EEXIST) return {};
  return catalog::make_file(note, 0600);  // where there are no links
}

void LocalFiles::no_longer(const LocalName& name, const std::string& who) const { (void)catalog::unlink_file(opener(name, who)); }

Status LocalFiles::note_unread(const std::string& file_id, const std::string& why) const {
  HF_TRY(make());
  const std::string directory = fmt::format("{}/{}", directory_, unread_directory);
  if (const Status made = catalog::make_directory(directory); !made && made.kind() != Kind::exists) return made;
  return catalog::replace_file(fmt::format("{}/{}", directory, file_id), scratch(), why, 0600, false);
}

std::vector<std::string> LocalFiles::openers(const LocalName& name) const {
  std::vector<std::string> all;
  const std::string begins = opener_begins(name);
  const auto names = names_in({team_ + openers_directory});
  for (const std::string& entry : names.front())
    if (entry.starts_with(begins)) all.push_back(entry.substr(begins.size()));
  return all;
}

bool LocalFiles::is_open_to_others(const LocalName& name, const std::string& who) const {
  const auto all = openers(name);
  return std::any_of(all.begin(), all.end(), [&](const std::string& one) { return one != who; });
}

Result<Turns::Turn> LocalFiles::take_turn(const std::string& file, std::chrono::milliseconds patience) const {
  return turns_->take(file, patience, [this] { return make_all(); });
}

// In another namespace of processes one that lives is not seen: then the kernel says that somebody writes. It also says so for a moment of one that was
// killed: what shares its descriptors ends after it.
void LocalFiles::forget_dead(const LocalName& name) const {
  constexpr std::chrono::milliseconds look_again(5), longest(500);
  std::vector<std::string> all = openers(name), dead = all;
  std::erase_if(dead, is_running);
  if (dead.empty()) return;
  for (auto waited = look_again; has_writers(path(State::writing, name)); waited += look_again) {
    if (dead.size() < all.size() || waited > longest) return;
    catalog::environment().wait(look_again);
  }
  for (const std::string& who : dead) no_longer(name, who);
}

LocalFiles::Listed LocalFiles::listed() const {
  Listed now;
  std::vector<std::string> directories;
  for (const State state : all_states) directories.push_back(below_attempt(state));
  directories.insert(directories.begin(), untouched_directory);  // a note is there before its copy
  const auto names = names_in(directories);
  const std::set<std::string> untouched(names.front().begin(), names.front().end());
  now.notes_ = names.front();
  for (const std::string& text : names[1 + size_t(State::failed)])
    if (text.starts_with(why_begins)) now.notes_.push_back(text);
  for (const State state : all_states)
    for (LocalName& name : decoded(names[1 + size_t(state)])) {
      const bool is_such = is_untouched(state, name, untouched);
      now.all_.push_back({.state = state, .name = std::move(name), .is_untouched = is_such});
    }
  return now;
}

bool LocalFiles::Listed::is_noted(const LocalName& name) const {
  if (notes_.empty()) return false;
  const auto text = encode(name);
  const std::string begins = opener_begins(name), why = text ? why_begins + *text : "";
  return std::any_of(notes_.begin(), notes_.end(), [&](const std::string& note) { return note.starts_with(begins) || note == why; });
}

// A copy that only waits for being written, where another node has written meanwhile.
bool LocalFiles::Listed::is_followed(const LocalFile& copy) const {
  return std::any_of(all_.begin(), all_.end(), [&](const LocalFile& one) {
    return &one != &copy && one.name.file == copy.name.file && one.name.kind == LocalName::of_user && one.name.number >= copy.name.number;
  });
}

uint32_t LocalFiles::Listed::last_evicted(const std::string& file) const {
  uint32_t last = 0;
  for (const LocalFile& one : all_)
    if (one.state == State::evicted && one.name.file == file && one.name.kind == LocalName::of_user) last = std::max(last, one.name.number);
  return last;
}

bool LocalFiles::Listed::has_failed_before(const LocalFile& file) const {
  if (file.state != State::failed) return false;
  return std::any_of(all_.begin(), all_.end(), [&](const LocalFile& one) {
    return one.state == State::dropped && one.name.file == file.name.file && one.name.number > file.name.number && !is_announced(one.name);
  });
}

// What is older than a version whose copy gave way is not the newest: that one is in the pool. Nor is what could not be protected, and is older than a
// version that was dropped.
std::optional<LocalFile> LocalFiles::Listed::newest(const std::string& file) const {
  const LocalFile* best = nullptr;
  std::optional<uint32_t> hidden;
  const uint32_t evicted = last_evicted(file);
  for (const LocalFile& one : all_) {
    if (is_never_seen(one.state) || one.name.file != file || one.name.kind != LocalName::of_user) continue;
    if (one.state == State::hidden) hidden = std::max(hidden.value_or(0), one.name.number);
    else if (one.of_version() < evicted || has_failed_before(one)) continue;
    else if ((!best || best->name.number < one.name.number) && !(one.is_untouched && is_followed(one))) best = &one;
  }
  if (!best || (hidden && *hidden >= best->of_version())) return {};
  LocalFile found = *best;
  found.is_overtaken = std::any_of(all_.begin(), all_.end(), [&](const LocalFile& one) {
    return one.state == State::dropped && one.name.file == file && one.name.number > found.name.number && one.name.writer != found.name.writer;
  });
  return found;
}

std::optional<uint32_t> LocalFiles::Listed::hidden_number(const std::string& file) const {
  if (newest(file)) return {};
  std::optional<uint32_t> number;
  for (const LocalFile& one : all_)
    if (one.state == State::hidden && one.name.file == file) number = std::max(number.value_or(0), one.name.number);
  return number && *number >= last_evicted(file) ? number : std::nullopt;
}

std::optional<uint32_t> LocalFiles::Listed::evicted_number(const std::string& file) const {
  const uint32_t evicted = last_evicted(file);
  return evicted == 0 || newest(file) || hidden_number(file) ? std::nullopt : std::optional(evicted);
}

std::optional<uint32_t> LocalFiles::Listed::dropped_number(const std::string& file) const {
  const auto all = dropped();
  const auto found = all.find(file);
  return found == all.end() ? std::nullopt : std::optional(found->second);
}

std::map<std::string, uint32_t> LocalFiles::Listed::dropped() const {
  std::map<std::string, uint32_t> all;
  for (const LocalFile& one : all_)
    if (one.state == State::dropped && one.name.kind == LocalName::of_user) all[one.name.file] = std::max(all[one.name.file], one.name.number);
  for (const LocalFile& one : all_)
    if (const auto found = all.find(one.name.file); found != all.end() && found->second < one.name.number) all.erase(found);
  return all;
}

uint32_t LocalFiles::Listed::last_number(const std::string& file) const {
  uint32_t last = 0;
  for (const LocalFile& one : all_)
    if (one.name.file == file) last = std::max(last, one.name.number);
  return last;
}

uint64_t LocalFiles::Listed::last_written() const {
  uint64_t last = 0;
  for (const LocalFile& one : all_) last = std::max(last, one.name.written);
  return last;
}

uint64_t LocalFiles::Listed::newest_step() const {
  uint64_t newest = 0;
  for (const LocalFile& one : all_) newest = std::max(newest, one.name.step);
  return newest;
}

std::optional<LocalName> LocalFiles::Listed::last_of_rank(uint32_t rank, uint32_t writer) const {
  std::optional<LocalName> last;
  const auto order = [](const LocalName& name) { return std::pair(name.written, name.number); };
  for (const LocalFile& one : all_) {
    const bool is_of_rank = one.name.kind == LocalName::of_user && one.name.rank == rank && one.name.writer == writer;
    if (one.state != State::restored && !one.is_untouched && is_of_rank && one.name.written && (!last || order(*last) < order(one.name)))
      last = one.name;
  }
  return last;
}

bool LocalFiles::Listed::has_of(const std::string& file, uint32_t before_number, uint64_t written) const {
  return std::any_of(all_.begin(), all_.end(),
                     [&](const LocalFile& one) { return one.name.file == file && one.name.number < before_number && one.name.written == written; });
}

// What has failed or is torn is no version, and never becomes one.
std::optional<LocalName> LocalFiles::Listed::before_in_its_place(const LocalName& name, const std::string& except) const {
  for (const auto& [state, other, untouched, overtaken] : all_) {
    const bool becomes_one = is_written_here(state) && state != State::together && state != State::failed && state != State::torn;
    const bool has_its_place = other.kind == LocalName::of_user && other.step == name.step && other.rank == name.rank && other.file != name.file;
    if (!becomes_one || !has_its_place || other.file == except || other.written >= name.written) continue;
    const auto removed = hidden_number(other.file);
    if (!removed || *removed < other.number) return other;
  }
  return {};
}

std::optional<uint64_t> LocalFiles::Listed::last_step(const std::string& file, uint32_t before_number) const {
  std::optional<uint64_t> last;
  for (const LocalFile& one : all_)
    if (one.name.file == file && one.name.number < before_number) last = std::max(last.value_or(0), one.name.step);
  return last;
}

LocalFiles::Seen LocalFiles::Listed::see() const {
  using Numbers = std::map<std::string, uint32_t>;
  Numbers newest, hidden, evicted;
  for (const LocalFile& one : all_) {
    if ((is_never_seen(one.state) && one.state != State::evicted) || one.name.kind != LocalName::of_user || has_failed_before(one)) continue;
    uint32_t& number = (one.state == State::hidden ? hidden : one.state == State::evicted ? evicted : newest)[one.name.file];
    number = std::max(number, one.of_version());
  }
  const auto number_in = [](const Numbers& numbers, const std::string& file) {
    const auto found = numbers.find(file);
    return found == numbers.end() ? 0 : found->second;
  };
  Seen seen;
  for (const auto& [file, number] : hidden)
    if (std::max(number_in(newest, file), number_in(evicted, file)) <= number) seen.removed.emplace(file, number);
  for (const auto& [file, number] : newest)
    if (!seen.removed.count(file) && number >= number_in(evicted, file)) seen.there.insert(file);
  seen.dropped = dropped();
  return seen;
}

void LocalFiles::forget_hidden(const std::string& file, uint32_t before_number) const {
  for (const LocalName& name : list(State::hidden))
    if (name.file == file && name.number < before_number) (void)catalog::unlink_file(path(State::hidden, name));
}

void LocalFiles::forget_dropped() const {
  std::map<std::tuple<uint32_t, uint32_t, LocalName::Kind>, std::vector<LocalName>> by_rank;
  for (LocalName& name : list(State::dropped)) {
    if (last_number(name.file) > name.number) (void)catalog::unlink_file(path(State::dropped, name));
    else by_rank[{name.rank, name.writer, name.kind}].push_back(std::move(name));
  }
  for (auto& [rank, names] : by_rank) {
    std::sort(names.begin(), names.end(),
              [](const LocalName& a, const LocalName& b) { return std::tie(a.written, a.step, a.number) > std::tie(b.written, b.step, b.number); });
    const bool are_many = names.front().writers > 0 && names.front().kind == LocalName::of_user;
    for (size_t i = are_many ? most_dropped_of_many : most_dropped; i < names.size(); ++i) (void)catalog::unlink_file(path(State::dropped, names[i]));
  }
}

void LocalFiles::forget_teams() const {
  const auto entries = catalog::list_directory(directory_);
  if (!entries) return;
  for (const std::string& team : *entries) {
    if (!team.starts_with(team_begins)) continue;
    for (const char* part : {state_name(State::writing), openers_directory, past_directory}) {
      const std::string directory = fmt::format("{}/{}/{}", directory_, team, part);
      if (const auto files = catalog::list_directory(directory))
        for (const std::string& file : *files) (void)catalog::unlink_file(directory + "/" + file);
    }
  }
}

Status LocalFiles::keep_past(const std::string& copy, const LocalName& name) const {
  const std::string directory = fmt::format("{}/{}{}", directory_, team_, past_directory);
  const auto text = encode(name);
  if (!text) return text.status();
  HF_TRY(catalog::move(copy, directory + "/" + *text));
  std::vector<LocalName> kept = names_of(open_directory(AT_FDCWD, directory));
  std::erase_if(kept, [&](const LocalName& one) { return one.rank != name.rank || one.writer != name.writer; });
  std::sort(kept.begin(), kept.end(), [](const LocalName& a, const LocalName& b) { return a.written > b.written; });
  for (size_t i = most_past; i < kept.size(); ++i)
    if (const auto old = encode(kept[i])) (void)catalog::unlink_file(directory + "/" + *old);
  return {};
}

std::string LocalFiles::past(const std::string& file, uint32_t number) const {
  const std::string directory = fmt::format("{}/{}{}", directory_, team_, past_directory);
  for (const LocalName& one : names_of(open_directory(AT_FDCWD, directory)))
    if (const auto text = encode(one); text && one.file == file && one.number == number) return directory + "/" + *text;
  return "";
}

void LocalFiles::forget_past() const {
  const std::string directory = fmt::format("{}/{}{}", directory_, team_, past_directory);
  if (const auto entries = catalog::list_directory(directory))
    for (const std::string& entry : *entries) (void)catalog::unlink_file(directory + "/" + entry);
}

int open_for_program(const std::string& path, int flags, mode_t mode) { return catalog::environment().open_for_program(path.c_str(), flags, mode); }

Result<Content> content_of(const std::string& path) {
  const Descriptor file = catalog::open_to_read(path);
  if (!file) return Status::from_errno(errno, path);
  coding::RunningChecksum sum(0);
  Bytes piece(1 << 20);
  for (uint64_t at = 0;;) {
    const auto got = catalog::read_at(file.get(), path, at, piece);
    if (!got) return got.status();
    if (*got == 0) return Content{at, sum.value()};
    sum.add(ByteView(piece).first(*got));
    at += *got;
  }
}

bool has_writers(const std::string& path) {
  const Descriptor file(catalog::environment().openat(AT_FDCWD, path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW, 0));
  return file && catalog::environment().has_writers(file.get());
}

Status link_file(const std::string& from, const std::string& to) {
  if (catalog::environment().linkat(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str()) == 0) return {};
  return Status::from_errno(errno, fmt::format("giving {} the name {}", from, to));
}

Status copy_into(const std::string& from, int to, Content* content) {
  const Descriptor source = catalog::open_to_read(from);
  if (!source) return Status::from_errno(errno, from);
  coding::RunningChecksum sum(0);
  std::string piece(1 << 20, '\0');
  for (uint64_t at = 0;;) {
    const auto got = catalog::read_at(source.get(), from, at, std::as_writable_bytes(std::span(piece)));
    if (!got) return got.status();
    if (*got == 0 && content) *content = {at, sum.value()};
    if (*got == 0) return {};
    if (content) sum.add(std::as_bytes(std::span(piece)).first(*got));
    HF_TRY(catalog::write_all(to, "a copy of " + from, piece.substr(0, *got)));
    at += *got;
  }
}

Status copy_file(const std::string& from, const std::string& to, Content* content) {
  const auto state = catalog::look(from, true);
  if (!state) return state.status();
  const Descriptor copy(catalog::environment().openat(AT_FDCWD, to.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!copy) return Status::from_errno(errno, to);
  (void)catalog::environment().fchmod(copy.get(), state->mode & 0777);
  HF_TRY(copy_into(from, copy.get(), content));
  if (content) catalog::environment().say_as_of(AT_FDCWD, from.c_str(), copy.get(), true);
  return {};
}

}  // namespace holdfast::checkpoint
