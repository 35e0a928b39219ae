// One file, several openers: jobs of one to three ranks come and go, write and read; repair, verify and status run beside them; members
// fail, come back and are replaced; processes are killed and the power fails. All of it from one seed; what is read is held against
// openers_model.hpp. No scenario is written for one bug: what happens next is always the seed's choice.
#pragma once
#include <array>
#include <deque>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "sim/openers_model.hpp"
#include "sim/openers_site.hpp"

namespace holdfast::sim {

// How often something happened that a schedule is for. The test asks for at least so many of each.
enum class Seen : uint8_t {
  operations,
  schedules_with_two_writers,
  commits_beside_a_writer,  // another opener had unsynced bytes
  folds_over_others,        // of bytes in a row where another opener has synced since this one looked
  folds_with_warm_caches,   // the opener had read the whole file before it wrote parts
  opens_beside_a_commit,
  collective_writes_beside_a_writer,
  overlapping_writes,
  holes_preallocated,
  holes_filled,
  cuts,
  repairs_beside_writers,
  repairs_that_mended_beside_writers,
  verifies_beside_writers,
  openers_killed,
  first_ranks_killed_alone,
  tools_killed,
  power_failures,
  members_failed,
  members_failed_for_one_process,
  members_timed_out,
  members_replaced,
  members_that_came_back,
  sidecars_hidden,
  losses_of_well_members,
  exports,
  replacements_asked,
  replacements_in_peace,  // nobody has the file open, members are hurt
  second_files_mended,
  replacements_of_members_that_answer,
  replacements_done,
  replacements_cut_short,
  removals,
  removals_cut_short,
  files_whole_after_that,  // nothing of the removal had come about
  power_failures_while_created,
  power_failures_while_removed,
  creators_killed,
  single_directories,
  links_at_the_path,
  power_failures_with_unsynced_names,
  schedules_on_nodes,  // which remember what they have read
  agents_restarted,
  sessions_lost,
  connections_reset,
  sums_of_agents,
  threads_begun,
  reads_beside_writes_of_threads,
  cuts_beside_others,
  requests_that_took_long,
  resets_while_carried_out,
  takeovers_that_waited,
  late_requests_refused,
  late_requests_taken,
  sessions_in_place_of_lost_ones,
  ways_cut,
  calls_without_a_way,
  sessions_expired,
  openers_cut_off,
  calls_of_who_was_cut_off,
  processes_stopped,
  stopped_in_a_commit,
  found_busy_beside_a_stopped_one,
  forks,
  children_of_the_dead,
  calls_given_up,
  let_in_after_calls_of_before,
  count
};
inline constexpr std::array<const char*, size_t(Seen::count)> seen_names = {"operations",
                                                                            "schedules with two writers",
                                                                            "commits beside a writer",
                                                                            "folds over others' bytes",
                                                                            "folds with warm caches",
                                                                            "opens beside a commit",
                                                                            "collective writes beside a writer",
                                                                            "overlapping writes",
                                                                            "holes preallocated",
                                                                            "holes filled",
                                                                            "cuts",
                                                                            "repairs beside writers",
                                                                            "repairs that mended beside writers",
                                                                            "verifies beside writers",
                                                                            "openers killed",
                                                                            "first ranks killed alone",
                                                                            "tools killed",
                                                                            "power failures",
                                                                            "members failed",
                                                                            "members failed for one process",
                                                                            "members timed out",
                                                                            "members emptied",
                                                                            "members that came back",
                                                                            "sidecars hidden",
                                                                            "losses of well members",
                                                                            "exports",
                                                                            "replacements asked for",
                                                                            "replacements in peace",
                                                                            "second files mended",
                                                                            "replacements of members that answer",
                                                                            "replacements done",
                                                                            "replacements cut short",
                                                                            "removals",
                                                                            "removals cut short",
                                                                            "files whole after that",
                                                                            "power failures while created",
                                                                            "power failures while removed",
                                                                            "creators killed",
                                                                            "single directories",
                                                                            "links at the path",
                                                                            "power failures with unsynced names",
                                                                            "schedules on several nodes",
                                                                            "agents started again",
                                                                            "sessions with agents lost",
                                                                            "connections to agents reset",
                                                                            "sums that agents asked each other for",
                                                                            "threads begun",
                                                                            "reads beside writes of threads",
                                                                            "cuts beside others",
                                                                            "requests that took long",
                                                                            "connections reset while a request is carried out",
                                                                            "takeovers that waited for calls",
                                                                            "late requests refused",
                                                                            "late requests taken",
                                                                            "sessions in the place of lost ones",
                                                                            "ways to agents cut",
                                                                            "calls without a way",
                                                                            "sessions expired",
                                                                            "openers cut off",
                                                                            "failed calls of who was cut off",
                                                                            "processes stopped",
                                                                            "stopped in a commit",
                                                                            "locks busy beside a stopped process",
                                                                            "forks",
                                                                            "children whose parent had died",
                                                                            "calls given up that were not answered in time",
                                                                            "sessions that waited for calls of lost ones"};

struct Coverage {
  std::array<uint64_t, size_t(Seen::count)> counts{};
  uint64_t& operator[](Seen what) { return counts[size_t(what)]; }
  void add(const Coverage& other) {
    for (size_t i = 0; i < counts.size(); ++i) counts[i] += other.counts[i];
  }
};

// What may happen at all; a test of a mend that is taken out looks at parts of it.
struct Features {
  bool tools = true, faults = true, kills = true, power = true, several = true, sidecar = true;
  bool overlaps = true, cuts = true, fast_close = true, atomic = true;
  bool replacements = true, removals = true, nodes = true;
  bool atomic_power = false;  // atomic writes before a power failure: see docs/testing.md
  bool all_atomic = false;    // to see what is the simulator's own: then nothing is left of what openers share outside the lock
  bool threads = false;       // ranks write and read alone in several threads at once
  bool agents = false;        // the targets are directories that node agents serve
  bool pools = false;         // the targets are directories of a pool, not a set; no replacements of sets then
  bool wide = false;          // the file goes round more members than a set can have
  bool refusals = false;      // a read beside a writer may be refused: to look for wrong bytes alone
  bool moves = false;         // all targets can move objects; else those of every fourth dozen of seeds
  bool far = false;           // calls on targets that belong together are made as one, as those of agents are
  bool cuts_beside = false;   // a file is cut also while others have it open
  bool network = false;       // agents are reached over a network: calls take long, ways are cut, processes stop and fork
  bool harsh = false;         // all moods at once, and worse: what meets only rarely meets in few rows, and most of what happens is cut short

  // "tools,kills": only these; from SIM_ONLY.
  static Features from(const char* text) {
    Features chosen;
    if (!text) return chosen;
    const std::string only = std::string(",") + text + ",";
    const std::pair<const char*, bool Features::*> all[] = {{"tools", &Features::tools},
                                                            {"faults", &Features::faults},
                                                            {"kills", &Features::kills},
                                                            {"power", &Features::power},
                                                            {"several", &Features::several},
                                                            {"sidecar", &Features::sidecar},
                                                            {"overlaps", &Features::overlaps},
                                                            {"cuts", &Features::cuts},
                                                            {"fast_close", &Features::fast_close},
                                                            {"atomic", &Features::atomic},
                                                            {"atomic_power", &Features::atomic_power},
                                                            {"replacements", &Features::replacements},
                                                            {"removals", &Features::removals},
                                                            {"nodes", &Features::nodes},
                                                            {"all_atomic", &Features::all_atomic},
                                                            {"threads", &Features::threads},
                                                            {"agents", &Features::agents},
                                                            {"pools", &Features::pools},
                                                            {"refusals", &Features::refusals},
                                                            {"moves", &Features::moves},
                                                            {"cuts_beside", &Features::cuts_beside},
                                                            {"network", &Features::network},
                                                            {"harsh", &Features::harsh}};
    for (const auto& [name, member] : all) chosen.*member = only.find(std::string(",") + name + ",") != std::string::npos;
    return chosen;
  }
};

// What a phase is rich in, so that what is rare comes about often enough to meet: most often as usual.
struct Mood {
  uint64_t whole_rows = 2;  // of eight writes
  uint64_t fresh_rows = 0;  // of eight writes, those that begin where nobody has written, if there is such a row
  uint64_t syncs = 2;       // beside ten other steps
  uint64_t alone = 3;       // calls that a rank makes by itself in one step, at most
  uint64_t comers = 4;      // one in so many times that something happens an opener comes
  uint64_t tools = 5;       // one in so many of the others
  uint64_t kills = 15;
  bool only_repairs = false;
  uint64_t hurts = 2;           // one in so many times that nothing else happens
  uint64_t kills_within = 60;   // calls from the decision on
  uint64_t fails_within = 100;  // the same
  uint64_t power = 0;           // one in so many times that something was made durable the power fails at once; 0: only at the phase's end
};

// What one opener of the file is about to do, and what its ranks have agreed on.
struct RunningOpener {
  RunningOpener(int number, int ranks, bool writes, uint64_t seed) : number(number), ranks(ranks), writes(writes), seed(seed), group(ranks) {}
  int number, ranks;
  bool writes;
  uint64_t seed;
  Schedule::Group group;
  std::vector<int> processes;
  int ended = 0;
  bool warm = false, atomic = false;
  int model = -1;
  bool cut_off = false;  // from more members than may be lost: its calls may fail
  bool has_failed = false;
  std::map<uint64_t, uint64_t> sizes;  // by operation: what set_size is called with; `never`: a sync in its place
  uint64_t end_of_file = 0;
};

class OpenersWorld {
 public:
  static constexpr char path[] = "/data/out.dat";
  static constexpr char still_path[] = "/data/still.dat";  // another file of the same target set, which nobody writes
  static constexpr uint64_t export_tool = 3;

  explicit OpenersWorld(uint64_t seed, Features features = {});

  // Runs it all. Empty, or what was found.
  std::string run();
  const std::string& failure() const { return failure_; }
  std::string last_operations() const;
  Coverage& coverage() { return coverage_; }
  uint64_t trace() const { return schedule_.trace(); }

 private:
  using File = engine::ProtectedFile;
  using Random = std::mt19937_64;
  struct Entry {
    int process;
    const char* what;
    uint64_t from, to;
    std::string outcome;
  };

  struct Actor;
  struct Inherited;
  // How a file is kept; without members of its own it is kept in one directory.
  struct Way {
    Setting setting;
    bool single = false;
  };
  static Way way_of(uint64_t seed);

  // openers_world.cpp: what happens to the world
  void direct();
  void make_file();
  void create_in_a_crowd();
  void phase();
  void choose_mood();
  void choose_harsh_mood();
  void launch_opener(int ranks = 0, const std::function<void()>& begins = {});
  void launch_tool();
  void disturb();
  void kill_somebody();
  void hurt_a_member();
  void hurt_place(int place, Kind kind);
  void hide_sidecar();
  void make_members_whole();
  void replace_in_peace();
  void make_still_file();
  void check_still_file(const char* when);
  void mend_still_file();
  int onto_new_place(int member);
  void take_stock(const catalog::Located& located);
  void remove_file();
  bool remove_once();
  void check_removed();
  bool is_plain_after_removal() const;
  void check_plain();
  void unlink_at_path();
  void check_half_removed();
  bool power_fails_within(uint64_t turns);
  std::vector<std::string> members_of_set(std::set<int>* lost = nullptr);
  void wait_for_all();
  void cut_power();
  void lose_power();
  void settle_down();
  void check_whole(const char* when);
  void lose_who_was_well();
  int living_openers() const;

  // openers_weather.cpp: what happens between processes and agents
  void trouble_the_network();
  void cut_ways(int process, const std::vector<int>& places, int turns);
  void cut_from_victims();
  void cut_off_an_opener();
  void cut_off(RunningOpener& opener, bool expires);
  void stop_somebody();
  RunningOpener* lone_opener();
  RunningOpener* opener_of(int process) const;
  bool is_cut_off(int process) const;
  void fork_off(Actor& actor);
  void begin_child(int parent, Inherited& copies);
  void come_again(Actor& actor);
  Result<std::shared_ptr<target::Target>> attach_when_there_is_a_way();
  void count_network();

  // openers_ranks.cpp: what openers and tools do
  void run_rank(RunningOpener& opener, int rank);
  void use_file(RunningOpener& opener, int rank);
  void run_tool(uint64_t what);
  void repair_beside(const char* which);
  void replace_beside();
  void verify_beside();
  void look_at_status();
  void export_file();
  bool writers_are_there() const;
  bool step(Actor& actor);
  void independent(Actor& actor);
  void in_threads(Actor& actor);
  void read_alone_or_write(Actor& actor);
  bool may_cut(const RunningOpener& opener) const;
  void write(Actor& actor, bool collective, uint64_t rounds);
  void begin_write(Actor& actor, const std::vector<uint32_t>& cells, uint64_t id);
  void read(Actor& actor, bool collective, bool whole);
  void sync(Actor& actor);
  void set_size(Actor& actor);
  void agreed_size(Actor& actor);
  uint64_t choose_row(Random& random) const;
  std::vector<uint32_t> choose_cells(Random& random, int process);
  std::vector<Extent> extents_of(std::vector<uint32_t> cells, Random& random) const;
  void count_commit(int opener);

  // What a living process was told. A failure that nothing explains is a finding.
  bool went_well(const char* what, uint64_t from, uint64_t to, const Status& status);
  void found(const std::string& what);
  bool has_lost_a_rank(int process) const;
  bool is_contested(uint64_t from, uint64_t to) const;
  void made_durable();
  void check_read(const char* what, int process, std::span<const Extent> extents, ByteView bytes, uint64_t got, const OpenersModel::Look& look = {});
  uint64_t random(uint64_t below) { return random_() % below; }
  bool one_in(uint64_t n) { return random_() % n == 0; }

  // The catalog's functions, as the running process calls them.
  Result<catalog::Located> locate();
  Result<std::unique_ptr<File>> open(exchange::Exchange& ranks, bool write);
  const layout::Geometry& geometry() const { return geometry_; }

  uint64_t seed_;
  Features features_;
  Random random_;
  Way way_;
  Site site_{seed_};
  const catalog::ReplacedEnvironment in_site_{site_};
  Settings settings_;
  layout::Geometry geometry_;
  OpenersModel model_;
  Schedule schedule_;
  Coverage coverage_;
  std::string failure_;
  std::deque<Entry> last_;
  std::vector<std::unique_ptr<RunningOpener>> openers_;
  std::set<int> processes_;  // that have not ended
  std::set<int> tools_;      // of those
  Mood mood_;
  std::vector<int> victims_;  // members that may be hurt in this phase: no more than the scheme bears
  std::vector<int> places_;   // by member: where it is, as the operator knows it
  std::map<int, int> fresh_;  // by member: the directory that was begun in its place, in this phase
  std::set<int> reachable_;   // processes that have found the file, and may lose the way to its path
  std::vector<std::pair<int, std::shared_ptr<target::MemoryDirectory>>> taken_out_;
  uint64_t writes_ = 0, operations_ = 0, target_operations_ = 0;
  uint64_t parts_ = 2, run_ = 1;   // how cells are dealt out to processes now
  int set_size_by_ = -1;           // opener; one at a time, for two leave the size unsaid
  uint64_t size_limit_ = never;    // while it runs nobody writes beyond
  int alone_ = -1;                 // the opener that cuts: nobody else may come
  std::multiset<int> committing_;  // processes in a commit
  bool cuts_off_ = false;          // in this phase openers are cut off from more members than may be lost, and no members are hurt
  std::multiset<int> forking_;     // parents whose child has not begun yet
  int place_of_forks_ = -1;        // another agent's directory: what processes have open there when they fork
  int exporting_ = 0;              // tools that read as an opener does
  bool stopping_ = false, torn_ = false, two_writers_ = false, power_fails_ = false, power_failed_ = false;
  bool still_file_ = false;  // there is one
  int half_removed_ = 0;     // so many files may be left on targets, in part, of what was removed or cut short
  std::string file_id_;      // of the file that the model knows
  bool litter_ = false;      // a creation or a removal may have been cut short
};

}  // namespace holdfast::sim
