"""What the tests of `holdfast run --local` share: files on the directories of nodes, which are agents of one machine."""
import shutil

from command import OwnAgentsTest


class PooledTest(OwnAgentsTest):
    def run_on(self, hosts, script, *options, scheme="rs:2+1", expect=0):
        """With agents that `run` starts by a command: it stands for ssh."""
        return self.holdfast("run", "--protect", scheme, "--path", "*.dat", "--local", self.path("disk-{node}"), "--hosts", hosts,
                             "--with", "env ON={node}", *options, "--", "sh", "-c", script, expect=expect)

    def members(self, name="out.dat", expect=0):
        return {m["path"].split(":")[0]: m for m in self.json("status", name, expect=expect)["files"][0]["members"]}

    def lose(self, node):
        self.lose_agent(node)
        shutil.rmtree(self.path(f"disk-{node}"))
