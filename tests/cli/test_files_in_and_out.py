"""import, export, cat, ls, rm and targets; and what ordinary tools do to a protected file's path."""
import os
import shutil
import signal
import stat
import subprocess
import time
import unittest

from command import CommandTest


class FilesInAndOut(CommandTest):
    def test_import_replaces_the_file_keeps_its_mode_and_export_gives_it_back(self):
        content = self.make_file()
        os.chmod(self.path("out.dat"), 0o640)
        targets = self.make_targets(6)
        self.holdfast("import", "out.dat", "--protect", "rs:4+2", "--targets", ",".join(targets))
        self.holdfast("export", "out.dat", "plain.dat")
        with open(self.path("plain.dat"), "rb") as f:
            self.assertEqual(f.read(), content)
        self.assertEqual(stat.S_IMODE(os.stat(self.path("plain.dat")).st_mode), 0o640)
        self.assertEqual([n for n in self.tree() if "import" in n or "export" in n], [])

    def import_in_place(self, name="out.dat", targets=None, expect=0):
        return self.holdfast("import", name, "--protect", "mirror:2", "--targets", ",".join(targets or self.make_targets(2)), expect=expect)

    def test_import_of_a_link_protects_what_it_leads_to(self):
        content = self.make_file("real.dat", size=1000)
        os.symlink("real.dat", self.path("link.dat"))
        self.import_in_place("link.dat")
        self.assertEqual(os.readlink(self.path("link.dat")), "real.dat")
        self.assertEqual((self.cat("real.dat"), self.cat("link.dat")), (content, content))

    def test_import_in_place_of_one_of_two_names_is_refused(self):
        content = self.make_file(size=1000)
        os.link(self.path("out.dat"), self.path("other.dat"))
        self.assert_one_sentence(self.import_in_place(expect=3).stderr, "2 names", "stay plain")
        with open(self.path("out.dat"), "rb") as f:
            self.assertEqual(f.read(), content)

    def test_import_keeps_times_and_owner(self):
        self.make_file(size=1000)
        os.utime(self.path("out.dat"), (1_000_000_000, 1_100_000_000))
        if os.geteuid() == 0:
            os.chown(self.path("out.dat"), 65534, 65534)
        before = os.stat(self.path("out.dat"))
        targets = self.make_targets(2)
        self.import_in_place(targets=targets)
        now = os.stat(self.path("out.dat"))
        self.assertEqual((now.st_uid, now.st_gid, int(now.st_mtime)), (before.st_uid, before.st_gid, 1_100_000_000))
        self.assertEqual({os.stat(os.path.join(root, n)).st_uid for t in targets for root, _, names in os.walk(t) for n in names if "out.dat" in root},
                         {before.st_uid})
        self.holdfast("verify", "out.dat")

    def test_a_file_that_is_open_for_writing_is_not_imported_in_place(self):
        self.make_file(size=1000)
        targets = self.make_targets(2)
        with open(self.path("out.dat"), "ab") as f:
            self.assert_one_sentence(self.import_in_place(targets=targets, expect=3).stderr, "is open for writing")
            f.write(b"more")
        self.import_in_place(targets=targets)
        self.assertTrue(self.cat().endswith(b"more"))

    def test_what_is_written_while_an_import_verifies_stays(self):
        """At the second time that the source has been read to its end it is compared, and only the stored file is read again."""
        for _ in range(10):
            name, size = "out.dat", 48 << 20
            self.make_file(name, size=size)
            running = self.begin("import", name, "--protect", "rs:2+1", "--targets", ",".join(self.make_targets(3, f"r{_}t")))
            if self.written_at_second_end(running.pid, self.path(name), size):
                self.assertNotEqual(running.wait(timeout=60), 0)
                with open(self.path(name), "rb") as f:
                    self.assertEqual(f.read()[size:], b"more")
                return
            running.wait(timeout=60)
            self.holdfast("rm", name, expect=None)
        self.fail("no write met the verification")

    @staticmethod
    def place_in(facts):
        with open(facts) as file:
            return int(file.read().split()[1])

    def written_at_second_end(self, process, path, size):
        inode, ends, was = os.stat(path).st_ino, 0, False
        while ends < 2:
            try:
                numbers = [n for n in os.listdir(f"/proc/{process}/fd") if os.readlink(f"/proc/{process}/fd/{n}") == path]
                places = [self.place_in(f"/proc/{process}/fdinfo/{n}") for n in numbers]
            except (FileNotFoundError, ProcessLookupError, PermissionError):
                if self.has_ended(process):
                    return False
                continue
            at_end = size in places
            ends, was = ends + (at_end and not was), at_end
        with open(path, "ab", buffering=0) as f:
            f.write(b"more")
            return os.fstat(f.fileno()).st_ino == inode

    def test_a_file_with_the_longest_name_goes_out_again(self):
        name = "n" * 245
        content = self.make_file(name, size=1000)
        self.import_in_place(name)
        self.holdfast("export", name, "x" * 250)
        self.holdfast("drain", name)
        for path in (name, "x" * 250):
            with open(self.path(path), "rb") as f:
                self.assertEqual(f.read(), content)

    def test_what_a_removal_left_is_told_from_the_new_file_of_its_path(self):
        _, targets = self.protect("mirror:2", 3)
        used = next(t for t in targets if os.path.isdir(t) and self.holds(t))
        os.rename(used, used + ".away")
        self.holdfast("rm", "out.dat")
        os.rename(used + ".away", used)
        self.make_file(size=1000, seed=2)
        self.holdfast("import", "out.dat", "--protect", "mirror:2", "--targets", ",".join(targets))
        done = self.holdfast("ls", used, expect=3)
        self.assertEqual(done.stdout.count("healthy"), 1, done.stdout)
        self.assert_one_sentence(done.stderr, "is left of a file", f"rm -r {used}/out.dat-")
        shutil.rmtree(done.stderr.split("rm -r ")[1].strip())
        self.assertEqual(self.holdfast("ls", used).stdout.count("out.dat"), 1)

    @staticmethod
    def holds(target):
        return any(name.startswith("out.dat") for name in os.listdir(target))

    def test_names_in_commands_to_type_again_are_quoted(self):
        self.make_file("a b.dat", size=1000)
        targets = self.make_targets(2)
        self.import_in_place("a b.dat", targets)
        shutil.rmtree(targets[1])
        self.assertIn(f"mend: holdfast repair '{self.path('a b.dat')}' --replace {targets[1]}=NEW", self.holdfast("status", "a b.dat", expect=1).stdout)

    def test_import_to_another_name_leaves_the_source(self):
        content, targets = self.make_file(), self.make_targets(2)
        self.holdfast("import", "out.dat", "safe.dat", "--protect", "mirror:2", "--targets", ",".join(targets))
        self.assertEqual(self.cat("safe.dat"), content)
        with open(self.path("out.dat"), "rb") as f:
            self.assertEqual(f.read(), content)

    def test_an_import_that_fails_leaves_the_source_as_it_was(self):
        content, targets = self.make_file(), self.make_targets(2)
        before = self.tree()
        for options, code in ((["--protect", "mirror:3", "--targets", ",".join(targets)], 3), ([], 3),
                              (["--protect", "mirror:2", "--targets", f"{targets[0]},nowhere"], 3)):
            done = self.holdfast("import", "out.dat", *options, expect=code)
            self.assert_one_sentence(done.stderr)
            self.assertEqual(self.tree(), before)
        with open(self.path("out.dat"), "rb") as f:
            self.assertEqual(f.read(), content)

    def test_an_interrupted_import_leaves_the_source_and_nothing_else(self):
        content, targets = self.make_file(size=96 << 20), self.make_targets(3)
        running = subprocess.Popen([self.binary, "import", "out.dat", "--protect", "rs:2+1", "--targets", ",".join(targets)],
                                   cwd=self.dir, env=self.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(running.communicate)
        while running.poll() is None and not any(len(os.listdir(t)) > 2 for t in targets):
            time.sleep(0.01)
        running.send_signal(signal.SIGINT)
        _, errors = running.communicate(timeout=60)
        if running.returncode == 0:  # it was done before it heard of the signal
            self.assertEqual(self.cat(), content)
            return
        self.assertEqual(running.returncode, 130, errors)
        with open(self.path("out.dat"), "rb") as f:
            self.assertEqual(f.read(), content)
        self.assertEqual(sorted(os.listdir(self.dir)), ["out.dat", "t0", "t1", "t2"])
        for target in targets:
            self.assertEqual([n for n in os.listdir(target) if n.startswith("out.dat")], [])

    def test_sizes_at_every_border(self):
        targets = self.make_targets(3)
        for size in (0, 1, 4095, 4096, 4097, 8192, 100_000):
            name = f"f{size}"
            content = self.make_file(name, size, seed=size)
            self.holdfast("import", name, "--protect", "rs:2+1", "--targets", ",".join(targets), "--striping-unit", "4096")
            self.assertEqual(self.cat(name), content, size)
            self.assertEqual(self.json("status", name)["files"][0]["size"], size)

    def test_a_sparse_file_stays_sparse_and_whole(self):
        with open(self.path("sparse"), "wb") as f:
            f.write(b"begin")
            f.seek(80 << 20)
            f.write(b"end")
        targets = self.make_targets(2)
        self.holdfast("import", "sparse", "kept", "--protect", "mirror:2", "--targets", ",".join(targets))
        self.holdfast("export", "kept", "back")
        self.assertLess(os.stat(self.path("back")).st_blocks * 512, 64 << 20)
        with open(self.path("sparse"), "rb") as a, open(self.path("back"), "rb") as b:
            self.assertEqual(a.read(), b.read())

    def test_import_of_what_is_protected_and_of_a_stub_is_refused(self):
        _, targets = self.protect("rs:2+1", 3)
        done = self.holdfast("import", "out.dat", "--protect", "rs:2+1", "--targets", ",".join(targets), expect=3)
        self.assert_one_sentence(done.stderr, "protected already")

    def test_an_edited_file_is_imported_again_as_it_was(self):
        for number, (scheme, count) in enumerate((("mirror:2", 2), ("rs:2+1", 3))):
            name = f"out{number}.dat"
            self.make_file(name)
            targets = self.make_targets(count, f"s{number}-")
            self.holdfast("import", name, "--protect", scheme, "--targets", ",".join(targets), "--striping-unit", "64k")
            os.unlink(self.path(name))
            content = self.make_file(name, 100_000, seed=7)
            self.holdfast("status", name, expect=2)
            self.assertIn(scheme, self.holdfast("import", name).stdout)
            self.assertEqual(self.cat(name), content)
            status = self.json("status", name)["files"][0]
            self.assertEqual(status["scheme"], scheme)
            self.assertEqual([m["path"] for m in status["members"]], targets)
            os.unlink(self.path(name))
            self.holdfast("rm", name)

    def test_status_of_a_file_in_one_directory(self):
        content = self.make_file()
        self.holdfast("import", "out.dat", "--protect", "rs:2+1", "--allow-shared-target", "--striping-unit", "64k")
        status = self.json("status", "out.dat")["files"][0]
        self.assertEqual((status["scheme"], status["size"], status["health"]), ("rs:2+1", len(content), "healthy"))
        text = self.holdfast("status", "out.dat").stdout
        self.assertIn(self.dir, text)
        with open(self.path("out.dat"), "rb") as f:
            self.assertEqual(f.read(), content)
        # Its redundancy is lost, then the plain file itself.
        os.unlink(self.object_of(self.path(".out.dat.holdfast"), "redundancy0"))
        self.assertIn("degraded", self.holdfast("status", "out.dat", expect=1).stdout)
        self.holdfast("repair", "out.dat")
        self.holdfast("status", "out.dat")
        self.holdfast("verify", "out.dat")

    def test_export_replaces_only_when_told_to(self):
        content, _ = self.protect("mirror:2", 2)
        self.make_file("there", 10)
        self.assert_one_sentence(self.holdfast("export", "out.dat", "there", expect=3).stderr, "--force")
        self.holdfast("export", "out.dat", "there", "--force")
        os.mkdir(self.path("directory"))
        self.holdfast("export", "out.dat", "directory")
        for name in ("there", "directory/out.dat"):
            with open(self.path(name), "rb") as f:
                self.assertEqual(f.read(), content)
        self.assert_one_sentence(self.holdfast("export", "out.dat", "out.dat", "--force", expect=3).stderr, "protected")
        self.assertEqual(self.cat(), content)

    def test_ls_lists_by_directory_and_by_target(self):
        _, targets = self.protect("mirror:2", 2)
        self.make_file("plain.dat", 10)
        for place in (".", self.dir, targets[0], "out.dat"):
            files = self.json("ls", place)["files"]
            self.assertEqual([f["path"] for f in files], [self.path("out.dat")], place)
        text = self.holdfast("ls").stdout
        for word in ("healthy", "mirror:2", "2.9 MiB", "out.dat"):
            self.assertIn(word, text)
        self.holdfast("ls", "nowhere", expect=3)

    def test_ls_names_a_file_that_cannot_be_judged_and_says_why(self):
        self.protect("rs:2+1", 3)
        os.unlink(self.path("out.dat"))
        self.make_file("out.dat", 10)
        done = self.holdfast("ls", expect=2)
        self.assertRegex(done.stdout, r"unknown.*out\.dat\n$")
        self.assert_one_sentence(done.stderr, "out.dat", "repair --revert")

    def test_rm_removes_the_file_everywhere(self):
        _, targets = self.protect("rs:2+1", 3)
        self.holdfast("rm", "out.dat")
        self.assertEqual(sorted(n for n in os.listdir(self.dir)), ["t0", "t1", "t2"])
        for target in targets:
            self.assertEqual([n for n in os.listdir(target) if "out.dat" in n], [])
        self.holdfast("rm", "out.dat", expect=3)
        self.holdfast("rm", "-f", "out.dat")
        self.make_file("plain.dat", 10)
        self.assert_one_sentence(self.holdfast("rm", "plain.dat", expect=3).stderr, "not a protected file")
        self.assertTrue(os.path.exists(self.path("plain.dat")))

    def test_rm_of_a_link_leaves_the_file(self):
        content, targets = self.protect("rs:2+1", 3)
        os.symlink("out.dat", self.path("link"))
        shutil.rmtree(targets[2])
        self.assertEqual(self.holdfast("rm", "link").stderr, "")
        self.assertFalse(os.path.lexists(self.path("link")))
        self.assertEqual(self.cat("out.dat"), content)

    def test_targets_shows_space_and_what_is_lost(self):
        _, targets = self.protect("mirror:2", 2)
        for args in (["--targets", ",".join(targets)], ["out.dat"], [targets[0]]):
            report = self.json("targets", *args)["sets"][0]
            self.assertEqual([t["state"] for t in report["targets"]], ["ok", "ok"])
            self.assertGreater(report["targets"][0]["free_bytes"], 0)
            self.assertEqual(report["targets"][0]["files"], 1)
        shutil.rmtree(targets[1])
        self.assertIn("lost", self.holdfast("targets", "out.dat", expect=1).stdout)
        self.assertEqual(self.holdfast("targets", expect=3).stdout, "")

    def test_looking_makes_no_targets(self):
        self.make_targets(2)
        before = self.tree()
        self.holdfast("targets", "--targets", "t0,t1", expect=3)
        self.holdfast("ls", "t0")
        self.holdfast("status", "out.dat", "--targets", "t0", expect=3)
        self.assertEqual(self.tree(), before)

    def test_a_manifest_of_other_settings_rules(self):
        content, _ = self.protect("mirror:2", 2)
        self.env.update(HOLDFAST_PROTECT="rs:4+2", HOLDFAST_PLACEMENT="interleaved", HOLDFAST_STRIPING_UNIT="64k")
        self.assertEqual(self.cat(), content)
        self.assertEqual(self.json("status", "out.dat")["files"][0]["scheme"], "mirror:2")


class OrdinaryTools(CommandTest):
    def test_a_moved_file_is_still_understood(self):
        content, _ = self.protect("rs:2+1", 3)
        shutil.move(self.path("out.dat"), self.path("moved.dat"))
        self.assertEqual(self.cat("moved.dat"), content)

    def test_the_stub_says_what_it_is_and_how_to_get_the_file_out(self):
        self.protect("rs:2+1", 3)
        with open(self.path("out.dat")) as f:
            text = f.read()
        self.assertIn("Holdfast", text)
        self.assertIn("holdfast export", text)

    def test_an_edited_path_is_refused_with_two_ways_out_and_revert_puts_it_back(self):
        content, targets = self.protect("rs:2+1", 3)
        with open(self.path("new"), "w") as f:
            f.write("something else\n")
        os.replace(self.path("new"), self.path("out.dat"))
        done = self.holdfast("cat", "out.dat", expect=None)
        self.assertNotEqual(done.returncode, 0)
        self.assert_one_sentence(done.stderr, "holdfast import", "repair --revert")
        self.holdfast("repair", "--revert", "out.dat")
        self.assertEqual(self.cat(), content)

    def test_an_edited_path_can_be_imported_instead(self):
        _, targets = self.protect("rs:2+1", 3)
        os.unlink(self.path("out.dat"))
        edited = self.make_file("out.dat", 5000, seed=7)
        self.holdfast("import", "out.dat", "--protect", "rs:2+1", "--targets", ",".join(targets))
        self.assertEqual(self.cat(), edited)


class Manifests(CommandTest):
    def manifests(self, *places):
        return [os.path.join(root, "manifest") for place in places for root, _, files in os.walk(place)
                if "manifest" in files]

    def test_damaged_on_as_many_targets_as_may_be_lost_they_are_passed_over(self):
        content, targets = self.protect("rs:2+1", 3)
        for name in self.manifests(targets[0]):
            with open(name, "r+b") as f:
                f.truncate(40)
        self.assertEqual(self.cat(), content)
        self.holdfast("repair", "out.dat")
        self.holdfast("status", "out.dat")

    def test_damaged_everywhere_they_are_refused_with_a_sentence(self):
        def truncate(text): return text[:50]
        def forge(text): return text.replace("rs:2+1", "rs:2+1 ").replace("out.dat", "../../x")
        def garbage(text): return "\0" * 300
        def huge(text): return text + "x" * (2 << 20)
        for i, damage in enumerate((truncate, forge, garbage, huge)):
            with self.subTest(damage.__name__):
                os.mkdir(self.path(str(i)))
                name = f"{i}/out.dat"
                self.make_file(name, 50_000)
                targets = self.make_targets(3, f"{i}/t")
                self.holdfast("import", name, "--protect", "rs:2+1", "--targets", ",".join(targets))
                for manifest in self.manifests(self.path(str(i))):
                    with open(manifest, newline="") as f:
                        text = f.read()
                    with open(manifest, "w", newline="") as f:
                        f.write(damage(text))
                done = self.holdfast("cat", name, expect=None)
                self.assertIn(done.returncode, (2, 3))
                self.assertEqual(done.stdout, "")
                self.assert_one_sentence(done.stderr, "out.dat")


if __name__ == "__main__":
    unittest.main()
