"""holdfast run --replicas: files that each replica has for itself, on a disk that is full for one of them or for all."""
import os
import shutil
import subprocess
import tempfile
import unittest

from replicated import ReplicatedTest

PROGRAM = os.environ.get("HOLDFAST_REPLICAS_PROGRAM", "")
ENTER = ["unshare", "--mount"] if os.geteuid() == 0 else ["unshare", "--map-root-user", "--mount"]


@unittest.skipUnless(subprocess.run([*ENTER, "true"], capture_output=True).returncode == 0, "no mounts of one's own here")
class OwnFailuresOfReplicas(ReplicatedTest):
    def fill(self, teams, how, replicas=2):
        """A tmpfs with room, and one with little of each of these teams. Below /tmp a name with the process's number is each replica's own."""
        place = tempfile.mkdtemp(prefix="holdfast-own-", dir="/tmp")
        self.addCleanup(shutil.rmtree, place, ignore_errors=True)
        mounts = " && ".join(f"mkdir {place}/{name} && mount -t tmpfs -o size={size} none {place}/{name}" for name, size in (("free", "8m"), *((f"full{team}", "64k") for team in teams)))
        command = [self.binary, "run", "--replicas", str(replicas), PROGRAM, "fills", f"{place}/free", f"{place}/full", teams, how]
        done = subprocess.run([*ENTER, "sh", "-c", f'{mounts} && exec "$@"', "sh", *command], cwd=self.dir, env=self.env, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 0, done.stderr)
        return self.read("out"), done.stderr

    def test_who_fails_alone_is_ended_and_the_others_go_on(self):
        for how, teams, replicas in (("write", "0", 2), ("stream", "1", 2), ("allocate", "02", 3)):
            with self.subTest(how=how, teams=teams):
                out, err = self.fill(teams, how, replicas)
                self.assertEqual(out, "written\n")
                for team in teams:
                    self.assertRegex(err, f"rank 0 of team {team} could not do what its twins could: /tmp/.*/full{team}/scratch[.][0-9]+: "
                                          "(No space left on device|a write was cut short)")
                self.assertEqual(err.count("could not do"), len(teams), err)

    def test_what_fails_in_all_is_the_programs_matter(self):
        for how in ("write", "stream", "allocate"):
            with self.subTest(how=how):
                out, err = self.fill("01", how)
                self.assertEqual(out, "No space left on device\n")


if __name__ == "__main__":
    unittest.main()
