"""From a row of the table to C++: the links that a call goes through, and the doors by which it arrives.

A link is a static function with the signature of the call. It may call the next one: the links behind it, and in the
end the library underneath. MPI_X and PMPI_X have a chain each, because what lies underneath differs. All of it is known when the
library is built: the compiler puts the links of a call into its door.
"""
import sys
from dataclasses import dataclass

from mpi_table import Function


@dataclass
class Door:
    """One exported function: MPI_X, PMPI_X, or the large twin of either."""
    function: Function
    symbol: str
    large: bool
    below: str  # what is called behind the last link

    @property
    def arguments(self):
        return self.function.declare(self.large)

    @property
    def names(self):
        return self.function.names()

    @property
    def short(self):
        return self.symbol.removeprefix("P").removeprefix("MPI_")


def observe_access(door, words):
    direction, place, manner = words[0], words[1], words[2] if len(words) > 2 else ""
    names = {a.name for a in door.function.arguments}
    kind = f"{direction}s_{place}"
    at = "offset" if "offset" in names else "-1"
    at_pointer = "true" if at == "-1" and place in ("independent", "collective") else "false"
    status = "status" if "status" in names else "nullptr"
    return (f"observe_access({{{'true' if direction == 'write' else 'false'}, Counter::{kind}, "
            f"Counter::{f'{direction}s_{manner}' if manner else kind}, fh, {at}, {at_pointer}, count, datatype, {status}}}, ")


def observer(door, words):
    """The observer and its arguments."""
    if words[0] in ("read", "write"):
        if words[1] == "end":
            return f"observe_end_of_split({'true' if words[0] == 'write' else 'false'}, fh, "
        return observe_access(door, words)
    about_files = {"open": "observe_open(filename, fh, ", "close": "observe_close(fh, ", "delete": "observe_delete(filename, ",
                   "view": "observe_view(fh, disp, etype, filetype, "}
    return about_files.get(words[0], f"observe_call(fh, Counter::{words[0]}, ")


def observe(door, words, following):
    """The profile stands around the call; it may hand in a status of its own."""
    look = observer(door, words)
    with_status = look.startswith("observe_access")
    status = ("MPI_Status* status" if "status}" in look else "MPI_Status*") if with_status else ""
    served = "served_with_status" if with_status else "served_by"
    return [f"  if (observes()) [[unlikely]] {{",
            f"    auto call = [&]({status}) {{ return {following}({door.names}); }};",
            f"    return {look}{served}<decltype(call)>, &call);",
            "  }",
            f"  return {following}({door.names});"]


def count(door, words, following):
    """The profile takes the time; the call stays as it is."""
    return [f"  if (!counts()) [[likely]] return {following}({door.names});",
            f"  const CountedCall counted(MpiCalls::{words[0]});",
            f"  return {following}({door.names});"]


def part(door, side):
    """What a collective call sends or receives: buffer, counts, displacements and types, by the names that the standard gives them."""
    names = [a.name for a in door.function.arguments]

    def find(*wanted):
        return next((n for n in wanted if n in names), None)
    buffer = find(side + "buf", "buffer")
    count = find(side + "counts", side + "count", "counts", "count", "recvcounts", "recvcount")
    kind = find(side + "types", side + "type", "datatype")
    if not (buffer and count and kind):
        sys.exit(f"{door.function.name}: sends=, but no {side} buffer, count and datatype among {', '.join(names)}")
    # `displs` belongs to the side that has an array of counts.
    place = find("sdispls" if side == "send" else "rdispls") or ("displs" if "displs" in names and side + "counts" in names else None)
    return f"{{{buffer}, {count}, {place or '{}'}, Types({kind})}}"


def sent_by(door, how):
    """Arguments that say what is sent."""
    names = {a.name for a in door.function.arguments}
    if how == "message":
        wanted = [next((n for n in either if n in names), None)
                  for either in (("sendbuf", "buf"), ("sendcount", "count"), ("sendtype", "datatype"), ("dest",), ("sendtag", "tag"), ("comm",))]
        if None in wanted:
            sys.exit(f"{door.function.name}: sends=message, but not all of a message is among {', '.join(sorted(names))}")
        return ", ".join(wanted)
    root = "root" if "root" in names else "MPI_UNDEFINED"
    nothing = "{nullptr, 0, {}, Types(MPI_DATATYPE_NULL)}"
    parts = [nothing, nothing] if how == "nothing" else [part(door, "send"), part(door, "send" if "buffer" in names else "recv")]
    return f"Gives::{how}, {', '.join(parts)}, {root}, comm"


def sends(door, words, following):
    """What the program sends is looked at before it goes."""
    call = f"{following}({door.names})"
    passes = f"  if (!compared_messages()) [[likely]] return {call};"
    look = f'caught("{door.function.name}", [&] {{ %s; return MPI_SUCCESS; }});'
    if words[0] == "start":
        requests = "count, array_of_requests" if "count" in {a.name for a in door.function.arguments} else "1, request"
        return [passes, f"  {look % f'started({requests})'}", f"  return {call};"]
    if words[0] == "forget":
        return [passes, f"  {look % 'forgotten(request)'}", f"  return {call};"]
    by = f'  static constexpr SentBy by("{door.function.name}");'
    if words[1:] == ["init"]:
        return [passes, by, f"  const auto code = {call};",
                f"  if (code == MPI_SUCCESS) {look % f'kept(by, *request, {sent_by(door, words[0])})'}", "  return code;"]
    return [passes, by, f"  {look % f'sent(by, {sent_by(door, words[0])})'}", f"  return {call};"]


def under_way(door):
    """As long as the call goes on threads that make such a one at the same time are known."""
    links = door.function.links
    if links.get("sends") == ["message"]:
        _, count, _, dest, tag, comm = sent_by(door, "message").split(", ")
        return [f"  const Sends under_way(replica_of_program(), {dest}, {tag}, {comm}, {count});"]
    if links.get("count") == ["collective"] or "init" in links.get("sends", []):
        return ["  const CallsAll under_way(replica_of_program(), comm);"]
    return []


def kept_for_all(door):
    """A call of all ranks that is made later, each time that its request is started."""
    return ["  if (code == MPI_SUCCESS && replica_of_program()) CallsAll::keep(*request, comm);"] if "init" in door.function.links.get("sends", []) else []


def hears(door):
    """Whether other ranks may have told this process something by the end of the call: a flag or a number says so, or the call waits for it."""
    links, names = door.function.links, {a.name for a in door.function.arguments}
    said = next((n for n in ("flag", "outcount") if n in names), None)
    waits = links["redundant"][0] == "together" or links.get("count") in (["wait"], ["window"]) or ("source" in names and "request" not in names)
    return [f"  const Hears hears({said});"] if said else ["  const Hears hears;"] if waits else []


def redundant(door, words, following):
    """Before and after calls by which other ranks learn what this one knows; by hand where answers are decided."""
    call = f"{following}({door.names})"
    passes = f"  if (!is_replica()) [[likely]] return {call};"
    if words == ["keeps"]:
        _, count, _, dest, tag, comm = sent_by(door, "message").split(", ")
        return [passes, f"  const auto code = {call};",
                f"  if (code == MPI_SUCCESS && replica_of_program()) Sends::keep(*request, {dest}, {tag}, {comm}, {count});", "  return code;"]
    if words[0] not in ("sends", "together"):
        return hears(door) + by_hand("redundant")(door, words, following)
    remarks = [f'  redundant_not_repeatable("{door.function.name}");'] if "unrepeatable" in words[1:] else []
    if words[0] == "sends":
        return [passes, *hears(door), *remarks, "  redundant_before_send();", *under_way(door), f"  return {call};"]
    return [passes, *hears(door), *remarks, *under_way(door), "  const bool leads = redundant_before_together();", f"  const auto code = {call};",
            "  redundant_after_together(leads);", *kept_for_all(door), "  return code;"]


def by_hand(link):
    """A function of this call's own, which is told of the next one."""
    def body(door, words, following):
        return [f"  return {link}_{door.short}({', '.join(filter(None, [following, door.names]))});"]
    return body


def declare_by_hand(link, door):
    following = f"{door.function.returns} (*next)({door.arguments})"
    return f"{door.function.returns} {link}_{door.short}({', '.join(filter(None, [following, door.arguments]))});"


def not_served(door, how):
    """When the front end does not serve the call, as C++; empty where it always does."""
    if how in ("requests", "hook", "always"):
        return {"requests": "!hf_requests_outstanding()", "hook": "in_hook()", "always": ""}[how]
    for argument in door.function.arguments:
        if argument.kind == "FILE":
            ask = "hf_is_ours" if how == "pointer" else "hf_is_protected"
            return f"!{ask}({'*' if argument.small.endswith('*') else ''}{argument.name})"
    sys.exit(f"{door.function.name}: frontend={how}, but it takes no MPI_File")


def narrow_outputs(door):
    """Results that MPI_X takes as a narrower type than the hf_ function: (declarations, arguments, stores)."""
    before, passed, after = [], [], []
    for a in door.function.arguments:
        if not door.large and a.small != a.large and a.small.endswith("*"):
            wide = a.large.rstrip("*").strip()
            before.append(f"  {wide} wide_{a.name} = 0;")
            passed.append(f"&wide_{a.name}")
            after.append(f"  if (code == MPI_SUCCESS) *{a.name} = static_cast<{a.small[:-1]}>(wide_{a.name});")
        else:
            passed.append(a.name)
    return before, passed, after


def frontend(door, words, following):
    """hf_X serves the call, or lets it pass; counts are as wide for it as the standard has them."""
    condition = not_served(door, words[0])
    out = []
    if len(words) > 1:
        out += [f"  if ({condition}) {{",
                f"    if (const int refused = hf_before_native(fh, HF_{words[1].upper()}); refused != MPI_SUCCESS) return refused;",
                f"    return {following}({door.names});",
                "  }"]
    elif condition:
        out += [f"  if ({condition}) return {following}({door.names});"]
    before, passed, after = narrow_outputs(door)
    scope = "hooked" if words[0] == "hook" else "guarded"
    call = f'{scope}("{door.symbol}", [&] {{ return hf_{door.function.short}({", ".join(passed)}); }})'
    if after:
        return out + before + [f"  const int code = {call};"] + after + ["  return code;"]
    return out + [f"  return {call};"]


# The chain: what a call goes through, in this order. A link that is added here has a column of its name in the table.
LINKS = {"observe": observe, "count": count, "sends": sends, "redundant": redundant, "frontend": frontend}
BY_HAND = ("redundant",)
IN_PASSING = ("sends", "together", "keeps")  # words of a link by hand for which no function of the call's own is written
# Those of the default library, which has the doors of the calls that the front end serves. All others are in the library with
# all calls alone.
BY_DEFAULT = ("observe", "frontend")


def chain_of(function, links):
    unknown = set(function.links) - set(LINKS) - {"door"}
    if unknown:
        sys.exit(f"{function.name}: no such link: {', '.join(sorted(unknown))}; there are {', '.join(LINKS)}")
    return [link for link in LINKS if link in function.links and link in links]


def waits_in(door):
    """The call's name, where it waits for ranks of the job alone: calls on files take their time, and others may come from outside of the job."""
    symbol = door.symbol.removeprefix("P")
    others = ("MPI_Comm_spawn", "MPI_Comm_accept", "MPI_Comm_connect", "MPI_Comm_join")
    elsewhere = ("MPI_File_", "MPI_Register_datarep", "MPI_Init", "MPI_Session_init", "MPI_Abort")
    if symbol.startswith(others):
        return "holdfast::InMpi::others_come()"
    return "nullptr" if symbol.startswith(elsewhere) else f'"{symbol}"'


def door_cpp(door, links):
    """The links, the last one first, and the exported function before them."""
    returns, out, following = door.function.returns, [], door.below
    chain = chain_of(door.function, links)
    for link in reversed(chain):
        body = LINKS[link](door, door.function.links[link], following)
        following = f"{link}_{door.symbol}"
        out += [f"static {returns} {following}({door.arguments}) {{"] + body + ["}"]
    return "\n".join(out + [
        f'HF_EXPORT {returns} entry_{door.symbol}({door.arguments}) asm("{door.symbol}");',
        f"static_assert(are_one_call<decltype(&entry_{door.symbol}), decltype({door.below})>);",
        f"{returns} entry_{door.symbol}({door.arguments}) {{",
        f"  if (passes()) return {door.below}({door.names});" if chain else "  need_real_mpi();",
        *([f"  const holdfast::InMpi in_mpi({waits_in(door)});"] if "redundant" in links else []),
        f"  return {following}({door.names});",
        "}"])
