#include "catalog/stub.hpp"

#include <charconv>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "catalog/text_codec.hpp"
#include "catalog/user_files.hpp"
#include "layout/sealed_text.hpp"

namespace holdfast::catalog {

namespace {

using Json = nlohmann::ordered_json;

// The words for people, with the first `named` targets.
std::string words(const layout::Manifest& manifest, size_t named) {
  const layout::Geometry& g = manifest.geometry;
  const std::string path = to_printable(manifest.path);
  std::string text(stub_line);
  text += fmt::format(
      "This is not the data: the file \"{}\" is protected by Holdfast ({}, {}).\n"
      "Programs started by `holdfast run` read and write it here. To get it out as a plain file:\n"
      "  holdfast export '{}' OUT\n"
      "To see its health: holdfast status '{}'\n",
      to_printable(name_of(manifest.path)), g.scheme.name(), layout::placement_name(g.placement), path, path);
  if (g.single_directory) {
    text += "Its data lie in the hidden directory beside it.\n";
  } else {
    text += "Its data lie on these targets:\n";
    for (size_t i = 0; i < named; ++i) text += "  " + to_printable(manifest.members[i].path) + "\n";
    if (named < manifest.members.size()) text += fmt::format("  and {} more\n", manifest.members.size() - named);
  }
  return text + "Moving this file is fine; editing it is not.\n";
}

std::string identity(const layout::Manifest& manifest, size_t named, uint32_t mode) {
  Json targets = Json::array();
  if (!manifest.geometry.single_directory)
    for (size_t i = 0; i < named; ++i) targets.push_back(to_printable(manifest.members[i].path));
  Json json{{"file", manifest.file_id},
            {"set", manifest.set_id},
            {"directory", to_printable(manifest.directory)},
            {"path", to_printable(manifest.path)},
            {"targets", std::move(targets)}};
  if (manifest.pool && named == manifest.members.size())  // no marker says who else there is
    for (const auto& member : manifest.members) json["uuids"].push_back(member.uuid);
  json["mode"] = fmt::format("{:04o}", mode & 07777);  // the last thing: mode_in_stub
  return json.dump();
}

std::string printable_at(const Json& object, const char* key) {
  auto found = object.find(key);
  return found != object.end() && found->is_string() ? from_printable(found->get_ref<const std::string&>()) : "";
}

// Where the line that closes a stub begins, less its newline.
size_t closing_line(std::string_view text) { return text.find("\n#holdfast-stub "); }

// Behind it.
size_t bytes_behind(std::string_view text) {
  const size_t line = closing_line(text);
  const size_t end = line == std::string_view::npos ? line : text.find('\n', line + 1);
  return end == std::string_view::npos ? 0 : text.size() - end - 1;
}

}  // namespace

std::string encode_stub(const layout::Manifest& manifest, uint32_t mode) {
  // Any one target leads to the manifest and so to all others: what does not fit may be left out.
  const size_t most = std::min<size_t>(manifest.members.size(), layout::max_members);
  size_t shown = most, known = most;
  while (true) {
    std::string text = layout::seal("stub", stub_format, words(manifest, shown) + identity(manifest, known, mode));
    if (text.size() <= max_stub_bytes || known == 0) return text;
    if (shown > 0) --shown;
    else --known;
  }
}

std::optional<uint32_t> mode_in_stub(std::string_view text) {
  // The last thing that the line of JSON says. Until then it said the targets: a list.
  constexpr std::string_view key = "\"mode\":\"", end = "\"}";
  const size_t line = closing_line(text);
  std::string_view before = text.substr(0, line);
  if (line == std::string_view::npos || !before.ends_with(end)) return {};
  before.remove_suffix(end.size());
  const size_t digits = before.size() - std::min<size_t>(before.size(), 4);
  uint32_t mode = 0;
  const auto [rest, error] = std::from_chars(before.data() + digits, before.data() + before.size(), mode, 8);
  if (!before.substr(0, digits).ends_with(key) || error != std::errc() || rest != before.data() + before.size()) return {};
  return mode;
}

Result<Stub> decode_stub(std::string_view text) {
  if (!text.starts_with(stub_line)) return Status(Kind::not_found, "not a stub");
  auto damaged = [] {
    return Status(Kind::corrupt,
                  "this stub was cut or edited; run: holdfast ls --targets DIR,... to find the file by its "
                  "targets, and remove the stub");
  };
  const size_t appended = bytes_behind(text);
  auto whole = layout::unseal("stub", stub_format, text.substr(0, text.size() - appended));
  if (!whole && whole.status().kind() == Kind::version) return whole.status();
  if (!whole || whole->empty()) return damaged();
  const size_t last_line = whole->substr(0, whole->size() - 1).rfind('\n');
  if (last_line == std::string_view::npos) return damaged();
  const Json json = Json::parse(whole->substr(last_line + 1), nullptr, false);
  if (!json.is_object()) return damaged();
  Stub stub;
  stub.appended = appended;
  stub.mode = mode_in_stub(text);
  stub.file_id = printable_at(json, "file");
  stub.set_id = printable_at(json, "set");
  stub.directory = printable_at(json, "directory");
  stub.path = printable_at(json, "path");
  auto targets = json.find("targets");
  if (targets != json.end() && targets->is_array() && targets->size() <= layout::max_members)
    for (const Json& target : *targets)
      if (target.is_string()) stub.targets.push_back(from_printable(target.get_ref<const std::string&>()));
  auto uuids = json.find("uuids");
  if (uuids != json.end() && uuids->is_array() && uuids->size() == stub.targets.size())
    for (const Json& uuid : *uuids) stub.uuids.push_back(uuid.is_string() ? uuid.get<std::string>() : "");
  if (stub.file_id.empty() || stub.path.empty()) return damaged();
  return stub;
}

}  // namespace holdfast::catalog
