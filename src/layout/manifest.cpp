#include "layout/manifest.hpp"

#include <sys/random.h>

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <limits>

#include <fmt/format.h>

#include "base/text_bytes.hpp"
#include "coding/checksum.hpp"
#include "layout/json_fields.hpp"
#include "layout/last_decoded.hpp"
#include "layout/random_source.hpp"
#include "layout/row_record.hpp"
#include "layout/sealed_text.hpp"

namespace holdfast::layout {

namespace {

constexpr size_t max_why_bytes = 512;   // longer reasons are cut when written
constexpr size_t max_name_bytes = 255;  // NAME_MAX
constexpr size_t run_digits = 16;

bool all_digits(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}
// One component that can be nothing but a directory below the target: promise 7.
bool is_directory_name(std::string_view text) {
  return !text.empty() && text.size() <= max_name_bytes && text.front() != '.' && text.find('/') == std::string_view::npos;
}
bool is_run(std::string_view text) { return text.size() == run_digits && lower_hex(text); }
// "<generation>.<rank>", numbers that fit 64 and 32 bits.
bool is_journal_name(std::string_view text) {
  const size_t dot = text.find('.');
  return dot != std::string_view::npos && dot <= 20 && text.size() - dot <= 11 && all_digits(text.substr(0, dot)) && all_digits(text.substr(dot + 1));
}

// Member by member: a list in braces is copied twice before it is an object.
Json geometry_to_json(const Geometry& g) {
  Json json;
  json["scheme"] = g.scheme.name();
  json["placement"] = placement_name(g.placement);
  json["single_directory"] = g.single_directory;
  json["members"] = g.members;
  json["start"] = g.start;
  json["unit_bytes"] = g.unit_bytes;
  json["block_bytes"] = g.block_bytes;
  return json;
}

// Where there are many, what is as usual is left out.
Json members_to_json(const std::vector<ManifestMember>& members, bool all) {
  Json list = Json::array();
  for (const ManifestMember& member : members) {
    Json& json = list.emplace_back();
    json["uuid"] = member.uuid;
    json["path"] = text_to_json(member.path);
    if (all || member.stale) json["stale"] = member.stale;
    if (all || !member.why.empty()) json["why"] = text_to_json(std::string_view(member.why).substr(0, max_why_bytes));
    if (!member.nodes.empty()) json["nodes"] = member.nodes;
  }
  return list;
}

Json path_state_to_json(const PathState& state) {
  Json json;
  json["device"] = state.device;
  json["inode"] = state.inode;
  json["size"] = state.size;
  json["change_ns"] = state.change_ns;
  return json;
}

// What all paths begin with.
std::string common_beginning(const std::vector<Roll::File>& files) {
  std::string common = files.empty() ? "" : files.front().path;
  for (const Roll::File& file : files) {
    const auto end = std::mismatch(common.begin(), common.end(), file.path.begin(), file.path.end()).first;
    common.erase(end, common.end());
  }
  return common;
}

// A line for each file, without what all begin with: there may be thousands.
Json roll_to_json(const Roll& roll) {
  const std::string below = common_beginning(roll.files);
  Json json;
  json["of_all"] = roll.of_all;
  json["below"] = text_to_json(below);
  Json& files = json["files"] = Json::array();
  for (const Roll::File& file : roll.files)
    files.push_back(text_to_json(fmt::format("{} {} {}", file.number, file.written, std::string_view(file.path).substr(below.size()))));
  return json;
}

// What a version says beside its checkpoint.
void file_to_json(const Version& version, Json& json) {
  json["rank"] = version.rank;
  json["ranks"] = version.ranks;
  json["number"] = version.number;
  json["file"] = text_to_json(version.file);
  if (version.written) json["written"] = version.written;
  if (version.turn) json["turn"] = version.turn;
  if (version.times) json["times"] = version.times;
  if (version.fewest) json["fewest"] = version.fewest;
  if (version.writers || version.writer) json["writer"] = version.writer;
  if (!version.writers) return;
  json["writers"] = version.writers;
  if (!version.stem.empty()) json["stem"] = text_to_json(version.stem);
  if (version.roll) json["roll"] = roll_to_json(*version.roll);
}

Json version_to_json(const Version& version) {
  Json json;
  json["run"] = version.run;
  json["attempt"] = version.attempt.number;
  if (version.attempt.id) json["attempt_id"] = id_text(version.attempt.id);
  json["step"] = version.step;
  file_to_json(version, json);
  return json;
}

Json pack_to_json(const std::vector<Packed>& files) {
  Json list = Json::array();
  for (const Packed& file : files) {
    Json& json = list.emplace_back();
    json["offset"] = file.offset;
    json["bytes"] = file.bytes;
    json["mode"] = file.mode;
    file_to_json(file.version, json);
  }
  return list;
}

void read_geometry(const Json& json, Geometry& g, std::string& complaint) {
  Fields fields(json, "geometry.", complaint);
  std::string scheme, placement;
  fields.text("scheme", scheme);
  fields.text("placement", placement);
  fields.flag("single_directory", g.single_directory);
  fields.small("members", g.members, 1, max_pool_members);
  fields.small("start", g.start, 0, max_start);
  fields.number("unit_bytes", g.unit_bytes, min_unit_bytes, max_unit_bytes);
  fields.small("block_bytes", g.block_bytes, min_unit_bytes, max_unit_bytes);
  if (!complaint.empty()) return;
  auto known_scheme = Scheme::parse(scheme);
  auto known_placement = parse_placement(placement);
  if (!known_scheme) return fields.complain("scheme", "is unknown");
  if (!known_placement) return fields.complain("placement", "is unknown");
  g.scheme = *known_scheme;
  g.placement = *known_placement;
  if (Status status = g.check(); !status.ok()) complaint = status.sentence();
}

void read_nodes(const Json& list, std::vector<uint32_t>& nodes, std::string& complaint) {
  for (const Json& entry : list) {
    if (!entry.is_number_unsigned() || entry.get<uint64_t>() > uint64_t(max_start)) {
      complaint = fmt::format("nodes has an entry that is not a number from 0 to {}", max_start);
      return;
    }
    nodes.push_back(entry.get<uint32_t>());
  }
}

void read_members(const Json& list, bool all, std::vector<ManifestMember>& members, std::string& complaint) {
  for (size_t i = 0; i < list.size() && complaint.empty(); ++i) {
    ManifestMember member;
    Fields fields(list[i], fmt::format("members[{}].", i), complaint);
    fields.text("uuid", member.uuid, is_id_or_empty);
    fields.text("path", member.path, is_address_or_empty);
    if (all || (list[i].is_object() && list[i].contains("stale"))) fields.flag("stale", member.stale);
    if (all || (list[i].is_object() && list[i].contains("why"))) fields.text("why", member.why);
    // Left out where it is empty, and by writers from before there was such a thing.
    if (complaint.empty() && list[i].contains("nodes"))
      if (const Json* nodes = fields.list("nodes", max_nodes)) read_nodes(*nodes, member.nodes, complaint);
    members.push_back(std::move(member));
  }
}

void read_generations(const Json& list, Manifest& m, std::string& complaint) {
  for (const Json& entry : list) {
    if (!entry.is_number_unsigned() || entry.get<uint64_t>() == 0 || entry.get<uint64_t>() >= m.next_generation) {
      complaint = "open_generations names a generation that cannot have been given out";
      return;
    }
    m.open_generations.push_back(entry.get<uint64_t>());
  }
}

void read_journals(const Json& list, Manifest& m, std::string& complaint) {
  for (const Json& entry : list) {
    if (!entry.is_string() || !is_journal_name(entry.get_ref<const std::string&>())) {
      complaint = "journals has an entry that is not <generation>.<rank>";
      return;
    }
    m.journals.push_back(entry.get_ref<const std::string&>());
  }
}

void read_path_state(const Json& json, PathState& state, std::string& complaint) {
  constexpr uint64_t any = std::numeric_limits<uint64_t>::max();
  Fields fields(json, "path_state.", complaint);
  fields.number("device", state.device, 0, any);
  fields.number("inode", state.inode, 0, any);
  fields.number("size", state.size, 0, any);
  fields.time("change_ns", state.change_ns);
}

constexpr uint64_t most_ranks = std::numeric_limits<uint32_t>::max();

template <class T>
bool take_number(std::string_view& text, T& into) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), into);
  if (error != std::errc() || end == text.data() + text.size() || *end != ' ') return false;
  text.remove_prefix(size_t(end - text.data()) + 1);
  return true;
}

void read_roll(const Json& json, Roll& roll, std::string& complaint) {
  Fields fields(json, "version.roll.", complaint);
  fields.flag("of_all", roll.of_all);
  std::string below, line;
  fields.text("below", below);
  const Json* const list = fields.list("files", max_rolled_files);
  if (!list) return;
  for (const Json& entry : *list) {
    Roll::File& file = roll.files.emplace_back();
    std::string_view rest;
    const bool sound = json_to_text(entry, line) && (rest = line, take_number(rest, file.number)) && take_number(rest, file.written);
    file.path = below + std::string(rest);
    if (!sound || file.number == 0 || !is_absolute_or_empty(file.path) || file.path.size() > max_text_bytes)
      return void(complaint = "version.roll.files has an entry that makes no sense");
  }
}

// What only checkpoints have that are whole by rolls.
void read_writers(const Json& json, Fields& fields, Version& v, std::string& complaint) {
  fields.small("writers", v.writers, 1, most_ranks);
  fields.small("writer", v.writer, 0, v.writers - 1);
  if (complaint.empty() && json.contains("stem")) fields.text("stem", v.stem);
  if (complaint.empty() && json.contains("roll"))
    if (const Json* roll = fields.find("roll")) read_roll(*roll, v.roll.emplace(), complaint);
}

void read_attempt_id(Fields& fields, Attempt& attempt) {
  std::string digits;
  fields.text("attempt_id", digits, is_attempt_id);
  (void)std::from_chars(digits.data(), digits.data() + digits.size(), attempt.id, 16);
}

void read_file(const Json& json, Fields& fields, Version& v, std::string& complaint) {
  const bool has_writers = json.is_object() && json.contains("writers");
  fields.small("ranks", v.ranks, 0, most_ranks);  // 0 without writers: of a file that is of no checkpoint
  fields.small("rank", v.rank, 0, has_writers ? v.ranks : std::max(v.ranks, 1u) - 1);
  fields.small("number", v.number, 1, most_ranks);
  fields.text("file", v.file, is_absolute_or_empty);
  // Left out by writers from before there was such a thing.
  if (complaint.empty() && json.contains("written")) fields.number("written", v.written, 1, max_offset);
  if (complaint.empty() && json.contains("turn")) fields.small("turn", v.turn, 1, most_ranks);
  if (complaint.empty() && json.contains("times")) fields.small("times", v.times, 1, most_ranks);
  if (complaint.empty() && json.contains("fewest")) fields.small("fewest", v.fewest, 1, most_ranks);
  if (complaint.empty() && has_writers) read_writers(json, fields, v, complaint);
  else if (complaint.empty() && json.contains("writer")) fields.small("writer", v.writer, 1, most_ranks);  // of another rank's file
}

void read_version(const Json& json, Version& v, std::string& complaint) {
  Fields fields(json, "version.", complaint);
  fields.text("run", v.run, is_run);
  fields.small("attempt", v.attempt.number, 1, most_ranks);
  fields.number("step", v.step, 0, max_offset);
  if (complaint.empty() && json.contains("attempt_id")) read_attempt_id(fields, v.attempt);
  read_file(json, fields, v, complaint);
}

// One after another, each within the bytes that there are.
void read_pack(const Json& list, Manifest& m, std::string& complaint) {
  uint64_t end = 0;
  for (const Json& entry : list) {
    if (!complaint.empty()) return;
    Fields fields(entry, "pack.", complaint);
    Packed& file = m.pack.emplace_back();
    file.version.run = m.version->run, file.version.attempt = m.version->attempt, file.version.step = m.version->step;
    fields.number("offset", file.offset, end, m.size);
    fields.number("bytes", file.bytes, 0, m.size - std::min(file.offset, m.size));
    fields.small("mode", file.mode, 0, 0777);
    read_file(entry, fields, file.version, complaint);
    end = file.offset + file.bytes;
  }
  if (m.pack.empty()) complaint = "it is a pack of no files";
}

// What the fields say together: every offset that the formula can give must be one that a file can have.
void check_whole(const Manifest& m, std::string& complaint) {
  const Geometry& g = m.geometry;
  if (m.members.size() != size_t(g.members)) complaint = fmt::format("it lists {} members and its geometry has {}", m.members.size(), g.members);
  else if (m.settled_epoch > m.epoch) complaint = fmt::format("epoch {} is called durable and the newest is {}", m.settled_epoch, m.epoch);
  else if (!g.single_directory && !is_directory_name(m.directory)) complaint = "directory is not a plain name";
  else if (g.single_directory && m.pool) complaint = "it is in one directory and on a pool";
  else if (g.is_wide() && (!m.pool || m.version)) complaint = fmt::format("it has {} members, and only a file on a pool can", g.members);
  else if (m.version && !m.pool) complaint = "it is a version of a checkpoint and on no pool";
  else if (m.version && (!m.journals.empty() || !m.open_generations.empty() || m.cut_to || m.lone))
    complaint = "a version of a checkpoint has writers";
  else if (g.single_directory && !m.directory.empty()) complaint = "directory is named for a file that has none";
  else if (m.rows > max_offset / (g.unit_bytes * uint64_t(g.scheme.width())) || m.rows > max_offset / record_slot_bytes(g))
    complaint = fmt::format("{} rows are more than any file can have", m.rows);
  else if (divide_up(m.size, g.row_bytes()) > max_offset / (g.unit_bytes * uint64_t(g.scheme.width())))
    complaint = fmt::format("{} bytes are more than any file can have", m.size);
}

void read_manifest(const Json& json, int format, Manifest& m, std::string& complaint) {
  Fields fields(json, "", complaint);
  fields.text("file_id", m.file_id, is_id);
  fields.text("set_id", m.set_id, is_id_or_empty);
  fields.text("path", m.path, is_absolute_or_empty);
  fields.text("directory", m.directory);
  fields.number("epoch", m.epoch, 0, max_offset);
  fields.number("settled_epoch", m.settled_epoch, 0, max_offset);
  fields.number("size", m.size, 0, max_offset);
  fields.number("rows", m.rows, 0, max_offset);
  fields.number("next_generation", m.next_generation, 1, max_offset);
  fields.small("mode", m.mode, 0, 07777);
  if (const Json* geometry = fields.find("geometry")) read_geometry(*geometry, m.geometry, complaint);
  if (const Json* list = fields.list("open_generations", max_open_generations)) read_generations(*list, m, complaint);
  if (const Json* list = fields.list("journals", max_journals)) read_journals(*list, m, complaint);
  if (format >= 2) fields.number("lone", m.lone, 0, max_offset);
  if (complaint.empty() && json.contains("cut_to")) fields.number("cut_to", m.cut_to.emplace(0), 0, max_offset);
  if (const Json* list = fields.list("members", max_pool_members)) read_members(*list, format != wide_manifest_format, m.members, complaint);
  if (const Json* state = fields.find("path_state")) read_path_state(*state, m.path_state, complaint);
  if (format >= pool_manifest_format) fields.flag("pool", m.pool);
  if (complaint.empty() && json.contains("job")) fields.text("job", m.job, is_run);
  if (format == version_manifest_format || format == pack_manifest_format)
    if (const Json* version = fields.find("version")) read_version(*version, m.version.emplace(), complaint);
  if (format == pack_manifest_format && m.version)
    if (const Json* list = fields.list("pack", max_packed_files)) read_pack(*list, m, complaint);
  if (complaint.empty() && m.geometry.is_wide() != (format == wide_manifest_format))
    complaint = fmt::format("a manifest of format {} cannot have {} members", format, m.geometry.members);
  if (complaint.empty()) check_whole(m, complaint);
}

}  // namespace

bool Manifest::is_synced(uint64_t generation) const {
  return generation != 0 && generation < next_generation &&
         std::find(open_generations.begin(), open_generations.end(), generation) == open_generations.end();
}

namespace {

int format_of(const Manifest& m) {
  if (m.geometry.is_wide()) return wide_manifest_format;
  if (!m.version) return m.pool ? pool_manifest_format : manifest_format;
  return m.pack.empty() ? version_manifest_format : pack_manifest_format;
}

}  // namespace

std::string encode(const Manifest& m) {
  assert(!m.within);  // a file of a pack has none
  Json json;
  json["file_id"] = m.file_id;
  json["set_id"] = m.set_id;
  json["path"] = text_to_json(m.path);
  json["directory"] = text_to_json(m.directory);
  json["geometry"] = geometry_to_json(m.geometry);
  json["epoch"] = m.epoch;
  json["settled_epoch"] = m.settled_epoch;
  json["size"] = m.size;
  json["rows"] = m.rows;
  json["next_generation"] = m.next_generation;
  json["open_generations"] = m.open_generations;
  json["journals"] = m.journals;
  json["lone"] = m.lone;
  json["members"] = members_to_json(m.members, !m.geometry.is_wide());
  json["path_state"] = path_state_to_json(m.path_state);
  json["mode"] = m.mode;
  if (m.cut_to) json["cut_to"] = *m.cut_to;
  if (m.pool) json["pool"] = true;
  if (!m.job.empty()) json["job"] = m.job;
  if (m.version) json["version"] = version_to_json(*m.version);
  if (!m.pack.empty()) json["pack"] = pack_to_json(m.pack);
  const bool is_long = m.geometry.is_wide() || !m.pack.empty();
  return seal("manifest", format_of(m), json.dump(is_long ? -1 : 1, ' ', false, Json::error_handler_t::replace));
}

namespace {

Result<Manifest> decode_anew(ByteView bytes) {
  auto damaged = [](const std::string& how) {
    return Status(Kind::corrupt, fmt::format("this copy of the manifest makes no sense: {}; run: holdfast repair", how));
  };
  if (bytes.size() > max_manifest_bytes) return damaged("it is larger than any manifest can be");
  const std::string_view sealed = chars_of(bytes);
  auto text = unseal("manifest", newest_manifest_format, sealed);
  if (!text) return text.status();
  int format = 1;
  while (!unseal("manifest", format, sealed).ok()) ++format;
  const Json json = Json::parse(*text, nullptr, false);
  if (json.is_discarded()) return damaged("it is not JSON");
  Manifest manifest;
  std::string complaint;
  read_manifest(json, format, manifest, complaint);
  if (!complaint.empty()) return damaged(complaint);
  return manifest;
}

// The members of a file hold the same text, and each commit reads them all. Who looks at a pool comes upon a few texts on each node.
LastDecoded<Manifest, 32>& last_decoded() {
  static auto* const last = new LastDecoded<Manifest, 32>;  // never destroyed: files are closed late, when a program's own objects have gone
  return *last;
}

}  // namespace

Result<Manifest> decode(ByteView text) { return last_decoded().or_else(text, decode_anew); }

bool disowns(const Manifest& manifest, std::string_view holder) {
  const auto at = std::find_if(manifest.members.begin(), manifest.members.end(), [&](const ManifestMember& m) { return m.uuid == holder; });
  return !holder.empty() && (at == manifest.members.end() || at->stale);
}

const Manifest* newest_of(std::span<const ManifestCopy> copies) {
  uint64_t epoch = 0;
  for (const ManifestCopy& copy : copies) epoch = std::max(epoch, copy.manifest->epoch);
  const Manifest* first = nullptr;
  for (const ManifestCopy& copy : copies) {
    if (copy.manifest->epoch != epoch) continue;
    if (!first) first = copy.manifest;
    const auto passed_over = [&](const ManifestCopy& other) { return other.manifest->epoch == epoch && disowns(*other.manifest, copy.holder); };
    if (std::none_of(copies.begin(), copies.end(), passed_over)) return copy.manifest;
  }
  return first;
}

uint64_t file_key(const std::string& file_id) { return coding::plain_checksum(bytes_of_text(file_id)); }

std::string name_of_nodes(const std::vector<uint32_t>& nodes) {
  std::string text;
  for (uint32_t node : nodes) text += fmt::format("{}{}", text.empty() ? "" : ", ", node);
  return nodes.empty() ? "" : fmt::format("{} {}", nodes.size() == 1 ? "node" : "nodes", text);
}

void (*random_source)(unsigned char* into, size_t bytes) = [](unsigned char* into, size_t bytes) {
  for (size_t have = 0; have < bytes;) {
    const ssize_t got = getrandom(into + have, bytes - have, 0);
    if (got > 0) have += size_t(got);
    else if (errno != EINTR) std::abort();  // a kernel without getrandom: no id would be safe to make up
  }
};

std::string random_id() {
  std::array<unsigned char, 16> random;
  random_source(random.data(), random.size());
  std::string id;
  for (unsigned char byte : random) id += fmt::format("{:02x}", byte);
  return id;
}

}  // namespace holdfast::layout
