"""Which find databases come with the MIOpen that is loaded."""
import os
import tempfile
import unittest

from support_mem import AgentTest

from fpt_agent import databases

MAPS = """55d000000000-55d000001000 r--p 00000000 08:01 12 /usr/bin/python3.12
7f0000000000-7f0000001000 r-xp 00000000 00:00 0
7f1000000000-7f1000001000 r-xp 00000000 08:01 34 %s/lib/libMIOpen.so.1.0
"""


class Databases(AgentTest):
    def setUp(self):
        super().setUp()
        self.folder = tempfile.mkdtemp()
        self.maps = os.path.join(self.folder, "maps")
        with open(self.maps, "w", encoding="utf-8") as out:
            out.write(MAPS % self.folder)

    def put(self, folder, *names):
        os.makedirs(folder, exist_ok=True)
        for name in names:
            open(os.path.join(folder, name), "w", encoding="utf-8").close()

    def test_beside_the_loaded_library(self):
        self.assertIsNone(databases.of_loaded(self.maps, {}), "no folder is not no database")
        folder = os.path.join(self.folder, "share", "miopen", "db")
        self.put(folder, "gfx110060.HIP.fdb.txt", "gfx1030_36.HIP.fdb.txt", "gfx90a6e.HIP.fdb.txt", "gfx120140.db.txt", "x.fdb.txt")
        self.assertEqual(databases.of_loaded(self.maps, {}), ["gfx1030", "gfx1100", "gfx90a"])

    def test_where_the_variable_says(self):
        folder = os.path.join(self.folder, "own")
        self.put(folder, "gfx115128.HIP.fdb.txt")
        self.assertEqual(databases.of_loaded("/no/such", {"MIOPEN_SYSTEM_DB_PATH": folder}), ["gfx1151"])

    def test_nothing_is_known_without_the_library(self):
        with open(self.maps, "w", encoding="utf-8") as out:
            out.write("7f0000000000-7f0000001000 r-xp 00000000 08:01 1 /usr/lib/libc.so.6\n")
        self.assertIsNone(databases.of_loaded(self.maps, {}))
        self.assertIsNone(databases.of_loaded("/no/such", {}))


if __name__ == "__main__":
    unittest.main()
