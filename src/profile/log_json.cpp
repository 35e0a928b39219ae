// The log's content as JSON. Counters stand by their names and where they are not zero; what a reader does not know it passes over,
// what is missing is zero.
#include <algorithm>
#include <map>

#include "layout/json_fields.hpp"
#include "profile/log.hpp"

namespace holdfast::profile {

using layout::Fields;
using layout::Json;
using layout::text_to_json;

namespace {

constexpr uint64_t any = UINT64_MAX;
constexpr size_t most_entries = 1u << 24;

size_t interface_index(const std::string& name) {
  return size_t(std::find(interface_names.begin(), interface_names.end(), name) - interface_names.begin());
}

Json counters_to_json(const Counters& counters) {
  Json out = Json::object();
  for (size_t i = 0; i < counter_count; ++i)
    if (counters.at(i)) out[std::string(counter_infos[i].name)] = counters.at(i);
  return out;
}

// Columns, which deflate well: {"rank": [...], "opens": [...], ...}.
Json ranks_to_json(const std::vector<RankCounters>& ranks) {
  Json out = Json::object();
  for (const RankCounters& r : ranks) out["rank"].push_back(r.rank);
  for (size_t i = 0; i < counter_count; ++i) {
    if (std::all_of(ranks.begin(), ranks.end(), [&](const RankCounters& r) { return r.counters.at(i) == 0; })) continue;
    Json& column = out[std::string(counter_infos[i].name)];
    for (const RankCounters& r : ranks) column.push_back(r.counters.at(i));
  }
  return out;
}

Json common_to_json(const std::vector<CommonValue>& values) {
  Json out = Json::array();
  for (const CommonValue& v : values) out.push_back(Json::array({v.value, v.count}));
  return out;
}

Json file_to_json(const FileUse& f) {
  return {{"path", text_to_json(f.path)},
          {"interface", interface_names[size_t(f.interface)]},
          {"scheme", text_to_json(f.scheme)},
          {"shared_pointer", text_to_json(f.pointer)},
          {"alignment", f.alignment},
          {"total", counters_to_json(f.total)},
          {"ranks", ranks_to_json(f.ranks)},
          {"common_read_sizes", common_to_json(f.read_sizes)},
          {"common_write_sizes", common_to_json(f.write_sizes)},
          {"common_read_strides", common_to_json(f.read_strides)},
          {"common_write_strides", common_to_json(f.write_strides)}};
}

Json texts_to_json(const std::vector<std::string>& texts) {
  Json out = Json::array();
  for (const std::string& text : texts) out.push_back(text_to_json(text));
  return out;
}

Json job_to_json(const Job& job) {
  Json out{{"command", texts_to_json(job.command)},
           {"program", text_to_json(job.program)},
           {"scheme", text_to_json(job.scheme)},
           {"holdfast", job.holdfast},
           {"start_ns", job.start_ns},
           {"duration_ns", job.duration_ns},
           {"ranks", job.ranks},
           {"nodes", texts_to_json(job.nodes)},
           {"complete", job.complete},
           {"damaged_pieces", job.damaged_pieces}};
  if (job.exit_code >= 0) out["exit_code"] = job.exit_code;
  if (!job.id.empty()) out["id"] = text_to_json(job.id);
  if (!job.mpi.empty()) out["mpi"] = text_to_json(job.mpi);
  return out;
}

Json mpi_calls_to_json(const MpiUses& uses) {
  Json out = Json::object();
  for (size_t i = 0; i < mpi_calls_kinds; ++i)
    if (uses[i].calls) out[std::string(mpi_calls_names[i])] = {{"calls", uses[i].calls}, {"ns", uses[i].ns}};
  return out;
}

Json process_to_json(const Process& p) {
  Json out{{"rank", p.rank},
           {"pid", p.pid},
           {"node", text_to_json(p.node)},
           {"program", text_to_json(p.program)},
           {"start_ns", p.start_ns},
           {"duration_ns", p.duration_ns},
           {"ended", p.ended}};
  if (p.mpi_calls) out["mpi_calls"] = mpi_calls_to_json(*p.mpi_calls);
  return out;
}

// ------------------------------------------------------------------------------------------------------------- back

class Reader {
 public:
  Result<Log> read(std::string_view text) {
    const Json json = Json::parse(text, nullptr, false);
    if (json.is_discarded()) return Status(Kind::corrupt, "the log is damaged: its content is no JSON");
    Fields fields(json, "", complaint_);
    if (const Json* job = fields.find("job")) read_job(*job);
    each(fields, "processes", [&](const Json& one) { read_process(one); });
    each(fields, "files", [&](const Json& one) { read_file(one); });
    if (const Json* line = fields.find("time_line")) read_time_line(*line);
    each(fields, "operations", [&](const Json& one) { read_operation(one); });
    fields.number("operations_lost", log_.operations_lost, 0, any);
    if (!complaint_.empty()) return Status(Kind::corrupt, "the log is damaged: " + complaint_);
    return std::move(log_);
  }

 private:
  template <class Take>
  void each(Fields& fields, const char* key, Take take) {
    const Json* list = fields.list(key, most_entries);
    if (!list) return;
    for (const Json& one : *list)
      if (complaint_.empty()) take(one);
  }

  // Ranks are numbers from -1 (not known) on.
  bool rank_of(const Json& json, int64_t& rank) {
    if (!json.is_number_integer() || (json.is_number_unsigned() && json.get<uint64_t>() > INT32_MAX) || json.get<int64_t>() < -1) {
      if (complaint_.empty()) complaint_ = "a rank is not a number from -1 to 2147483647";
      return false;
    }
    rank = json.get<int64_t>();
    return true;
  }

  void read_texts(Fields& fields, const char* key, std::vector<std::string>& into) {
    each(fields, key, [&](const Json& one) {
      std::string text;
      if (!layout::json_to_text(one, text)) fields.complain(key, "holds what is no text");
      else into.push_back(std::move(text));
    });
  }

  void read_job(const Json& json) {
    Fields fields(json, "job: ", complaint_);
    Job& job = log_.job;
    read_texts(fields, "command", job.command);
    fields.text("program", job.program);
    fields.text("scheme", job.scheme);
    fields.text("holdfast", job.holdfast);
    fields.number("start_ns", job.start_ns, 0, any);
    fields.number("duration_ns", job.duration_ns, 0, any);
    fields.small("ranks", job.ranks, 0, INT32_MAX);
    read_texts(fields, "nodes", job.nodes);
    fields.flag("complete", job.complete);
    fields.number("damaged_pieces", job.damaged_pieces, 0, any);
    if (!complaint_.empty()) return;
    if (json.contains("id")) fields.text("id", job.id);
    if (json.contains("mpi")) fields.text("mpi", job.mpi);
    if (json.contains("exit_code")) fields.small("exit_code", job.exit_code, 0, 255);
  }

  void read_process(const Json& json) {
    Fields fields(json, "a process: ", complaint_);
    Process p;
    if (const Json* rank = fields.find("rank"); !rank || !rank_of(*rank, p.rank)) return;
    fields.small("pid", p.pid, 0, UINT32_MAX);
    fields.text("node", p.node);
    fields.text("program", p.program);
    fields.number("start_ns", p.start_ns, 0, any);
    fields.number("duration_ns", p.duration_ns, 0, any);
    fields.flag("ended", p.ended);
    if (json.contains("mpi_calls")) p.mpi_calls = mpi_calls_of(json["mpi_calls"]);
    log_.processes.push_back(std::move(p));
  }

  MpiUses mpi_calls_of(const Json& json) {
    MpiUses uses;
    const Fields whole(json, "mpi_calls: ", complaint_);
    for (size_t i = 0; i < mpi_calls_kinds && complaint_.empty(); ++i) {
      const std::string name(mpi_calls_names[i]);
      if (!json.contains(name)) continue;
      Fields fields(json[name], name + ": ", complaint_);
      fields.number("calls", uses[i].calls, 0, any);
      fields.number("ns", uses[i].ns, 0, any);
    }
    return uses;
  }

  void read_counters(Fields& fields, const Json& json, Counters& into) {
    if (!json.is_object()) return fields.complain("total", "is not an object");
    for (size_t i = 0; i < counter_count; ++i) {
      const auto found = json.find(std::string(counter_infos[i].name));
      if (found == json.end()) continue;
      if (!found->is_number_unsigned()) return fields.complain("total", "has a value that is no count");
      into.at(i) = found->get<uint64_t>();
    }
  }

  void read_ranks(Fields& fields, const Json& json, std::vector<RankCounters>& into) {
    if (!json.is_object() || !json.contains("rank") || !json["rank"].is_array() || json["rank"].size() > most_entries)
      return fields.complain("ranks", "is not a table of ranks");
    for (const Json& one : json["rank"]) {
      into.emplace_back();
      if (!rank_of(one, into.back().rank)) return;
    }
    for (size_t i = 0; i < counter_count; ++i) {
      const auto column = json.find(std::string(counter_infos[i].name));
      if (column == json.end()) continue;
      if (!column->is_array() || column->size() != into.size()) return fields.complain("ranks", "has columns of different lengths");
      for (size_t row = 0; row < into.size(); ++row) {
        if (!(*column)[row].is_number_unsigned()) return fields.complain("ranks", "has a value that is no count");
        into[row].counters.at(i) = (*column)[row].get<uint64_t>();
      }
    }
  }

  void read_common(Fields& fields, const char* key, std::vector<CommonValue>& into) {
    each(fields, key, [&](const Json& one) {
      if (!one.is_array() || one.size() != 2 || !one[0].is_number_integer() || !one[1].is_number_unsigned())
        return fields.complain(key, "is not a list of values with their counts");
      into.push_back({one[0].get<int64_t>(), one[1].get<uint64_t>()});
    });
  }

  void read_file(const Json& json) {
    Fields fields(json, "a file: ", complaint_);
    FileUse f;
    fields.text("path", f.path);
    std::string interface;
    fields.text("interface", interface);
    if (const size_t index = interface_index(interface); index < interface_count) f.interface = Interface(index);
    else fields.complain("interface", "is not known");
    fields.text("scheme", f.scheme);
    fields.text("shared_pointer", f.pointer);
    fields.number("alignment", f.alignment, 0, any);
    if (const Json* total = fields.find("total")) read_counters(fields, *total, f.total);
    if (const Json* ranks = fields.find("ranks")) read_ranks(fields, *ranks, f.ranks);
    read_common(fields, "common_read_sizes", f.read_sizes);
    read_common(fields, "common_write_sizes", f.write_sizes);
    read_common(fields, "common_read_strides", f.read_strides);
    read_common(fields, "common_write_strides", f.write_strides);
    log_.files.push_back(std::move(f));
  }

  void read_steps(Fields& fields, const char* key, std::vector<uint64_t>& into) {
    each(fields, key, [&](const Json& one) {
      if (!one.is_number_unsigned()) return fields.complain(key, "has a value that is no count");
      into.push_back(one.get<uint64_t>());
    });
  }

  void read_time_line(const Json& json) {
    Fields fields(json, "time_line: ", complaint_);
    TimeLine& line = log_.time_line;
    fields.number("step_ns", line.step_ns, 0, any);
    uint64_t steps = 0;
    fields.number("steps", steps, 0, 1u << 20);
    each(fields, "rows", [&](const Json& one) {
      Fields row_fields(one, "time_line: a row: ", complaint_);
      TimeLine::Row row;
      if (const Json* rank = row_fields.find("rank"); !rank || !rank_of(*rank, row.rank)) return;
      read_steps(row_fields, "read", row.read);
      read_steps(row_fields, "written", row.written);
      if (row.read.size() != steps || row.written.size() != steps) row_fields.complain("steps", "differ in number");
      line.rows.push_back(std::move(row));
    });
  }

  // [rank, file, kind, begin, duration, offset, bytes]
  void read_operation(const Json& json) {
    Operation o;
    const bool shape = json.is_array() && json.size() == 7 && json[2].is_string() &&
                       std::all_of(json.begin() + 3, json.end(), [](const Json& n) { return n.is_number_unsigned(); });
    if (!shape || !json[1].is_number_unsigned() || json[1].get<uint64_t>() >= log_.files.size()) {
      if (complaint_.empty()) complaint_ = "an operation is not a list of seven values, or of no file";
      return;
    }
    if (!rank_of(json[0], o.rank)) return;
    o.file = json[1].get<uint32_t>();
    const std::string& kind = json[2].get_ref<const std::string&>();
    for (size_t i = 0; i < counter_count; ++i)
      if (counter_infos[i].name == kind) o.kind = Counter(i);
    o.begin_ns = json[3].get<uint64_t>(), o.duration_ns = json[4].get<uint64_t>();
    o.offset = json[5].get<uint64_t>(), o.bytes = json[6].get<uint64_t>();
    log_.operations.push_back(o);
  }

  Log log_;
  std::string complaint_;
};

}  // namespace

std::string to_json_text(const Log& log) {
  Json out{{"job", job_to_json(log.job)}, {"processes", Json::array()}, {"files", Json::array()}};
  for (const Process& p : log.processes) out["processes"].push_back(process_to_json(p));
  for (const FileUse& f : log.files) out["files"].push_back(file_to_json(f));
  Json line{{"step_ns", log.time_line.step_ns},
            {"steps", log.time_line.rows.empty() ? 0 : log.time_line.rows[0].read.size()},
            {"rows", Json::array()}};
  for (const TimeLine::Row& row : log.time_line.rows) line["rows"].push_back({{"rank", row.rank}, {"read", row.read}, {"written", row.written}});
  out["time_line"] = std::move(line);
  Json operations = Json::array();
  for (const Operation& o : log.operations)
    operations.push_back(Json::array({o.rank, o.file, counter_infos[size_t(o.kind)].name, o.begin_ns, o.duration_ns, o.offset, o.bytes}));
  out["operations"] = std::move(operations);
  out["operations_lost"] = log.operations_lost;
  return out.dump();
}

Result<Log> from_json_text(std::string_view text) { return Reader().read(text); }

}  // namespace holdfast::profile
